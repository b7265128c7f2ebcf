package canal

import "sync"

// tableCacheBytes bounds what is remembered of table maps: some ten thousand tables.
const tableCacheBytes = 8 << 20

// tableCache remembers table maps by the bytes of their events, which name the table id: a
// table that was altered gets another id and is looked at anew. It holds two
// generations: when the young one has used half the room, it becomes the old one, and
// the old one is forgotten but for what was asked for meanwhile.
type tableCache struct {
	mu    sync.RWMutex
	half  int
	used  int
	young map[string]*tableMap
	old   map[string]*tableMap
}

func newTableCache(limit int) *tableCache {
	return &tableCache{half: limit / 2, young: map[string]*tableMap{}}
}

// find returns the table map with that body, or nil. It does not allocate.
func (c *tableCache) find(body []byte) *tableMap {
	c.mu.RLock()
	t := c.young[string(body)]
	old := c.old[string(body)]
	c.mu.RUnlock()
	if t == nil && old != nil {
		c.add(body, old)
		return old
	}
	return t
}

// add remembers t, which must not change any more.
func (c *tableCache) add(body []byte, t *tableMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := t.bytes() + len(body)
	if c.used+size > c.half {
		c.old, c.young, c.used = c.young, map[string]*tableMap{}, 0
	}
	if _, known := c.young[string(body)]; !known {
		c.used += size
	}
	c.young[string(body)] = t
}

// bytes estimates the memory that t takes.
func (t *tableMap) bytes() int {
	const perMap, perField, perColumn, perLabel = 300, 80, 150, 40
	n := perMap + len(t.fields)*perField + len(t.strides)*16
	if t.table != nil {
		for i := range t.table.Columns {
			c := &t.table.Columns[i]
			n += perColumn + len(c.Name) + len(c.SourceType)
			for _, label := range c.Labels {
				n += perLabel + 2*len(label)
			}
		}
	}
	return n
}
