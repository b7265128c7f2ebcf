package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// What is kept of automatic entries, by age.
const (
	keepAll  = time.Hour      // every one
	keepSome = 24 * time.Hour // the first of each minute; before that, the first of each hour
)

// blockEntries is how many entries are packed together once there are so many.
const blockEntries = 256

// author makes the entries of one process.
type author struct {
	holder Holder
	saved  bool // something was saved before
}

// entry is the entry for a save of r over before, nil where there is none, and r as it is
// to be saved. m describes it if a person asked for it.
func (a *author) entry(id uint64, before, r *Record, m *Move) (*Record, *Entry) {
	e := &Entry{ID: entryID(id), Action: ActionSave, By: a.holder}
	switch {
	case m != nil:
		moved := *r
		moved.WrittenAt, moved.WrittenBy = time.Now().UTC(), a.holder.writtenBy()
		r = &moved
		e.Action, e.Manual, e.Reason, e.Before = m.Action, true, m.Reason, before
		if before != nil {
			e.From = &before.Position
		}
		if m.By != (Holder{}) {
			e.By = m.By
		}
	case before != nil && !sameServer(before, r):
		e.Action = ActionFailover
	case !a.saved:
		e.Action = ActionStart
	}
	if e.At = r.WrittenAt.UTC(); r.WrittenAt.IsZero() {
		e.At = time.Now().UTC()
	}
	e.Record = *r
	return r, e
}

// sameServer reports whether two records are of one server, upgraded perhaps.
func sameServer(a, b *Record) bool {
	return a.Server.Flavor == b.Server.Flavor && a.Server.UUID == b.Server.UUID && (a.Server.UUID != "" || a.Server.ServerID == b.Server.ServerID)
}

// part is a piece of a history as stores keep it, under its key: the number of its first
// entry. It is one entry, told by its difference from the one before, or a block of them.
type part struct {
	Key  uint64
	Data []byte
}

// change is what one entry does to the parts of a history. Parts are dropped before others
// are put.
type change struct {
	Drop []uint64 `json:"drop,omitempty"`
	Put  []part   `json:"put,omitempty"`
}

// journal is a history as its writer sees it. New entries become parts of their own, the
// tail; a full tail is packed into a block, and blocks are thinned out as they age. So a
// save writes some hundred bytes, and a week of two saves a second takes a few hundred
// thousand.
type journal struct {
	blocks []block // oldest first
	tail   []part  // of one entry each
	last   *Entry  // the newest; the next one is told by its difference from it
}

// block is a part of several entries, and what its head says of it.
type block struct {
	part
	head blockHead
	// damaged ones are left as they are.
	damaged bool
}

// openJournal goes on from the parts that a store has. What of them cannot be read is in
// the error, a *HistoryError without its place; the journal goes on behind it.
func openJournal(parts []part) (*journal, error) {
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Key, b.Key) })
	j := &journal{}
	var damage error
	for _, p := range parts {
		if !isBlock(p.Data) {
			entries, err := unpack(p.Data, j.tailEnd())
			if err != nil {
				damage = partDamage(p.Key, err)
				j.blocks, j.tail, j.last = append(j.blocks, block{part: p, damaged: true}), nil, nil
				continue
			}
			j.tail, j.last = append(j.tail, p), &entries[len(entries)-1]
			continue
		}
		// A tail before a block was left by damage between them.
		j.shelve()
		head, _, err := readHead(p.Data)
		if err != nil {
			damage = partDamage(p.Key, err)
		}
		j.blocks = append(j.blocks, block{part: p, head: head, damaged: err != nil})
	}
	return j, damage
}

func partDamage(key uint64, err error) error {
	return &HistoryError{Detail: fmt.Sprintf("what begins with entry %d: %v", key, err)}
}

// tailEnd is the entry that the next part of the tail is told by; nil where it begins one.
func (j *journal) tailEnd() *Entry {
	if len(j.tail) == 0 {
		return nil
	}
	return j.last
}

// shelve makes blocks of the tail's parts, as they are.
func (j *journal) shelve() {
	for _, p := range j.tail {
		j.blocks = append(j.blocks, block{part: p, damaged: true})
	}
	j.tail = nil
}

// next is the number that the next entry gets.
func (j *journal) next() uint64 {
	n := uint64(0)
	if j.last != nil {
		n = j.last.number()
	}
	for i := range j.blocks {
		n = max(n, j.blocks[i].Key, j.blocks[i].head.LastID)
	}
	return n + 1
}

// append adds an entry and says what that does to the parts.
func (j *journal) append(e *Entry) (change, error) {
	data, err := pack([]Entry{*e}, j.tailEnd())
	if err != nil {
		return change{}, err
	}
	p := part{Key: e.number(), Data: data}
	if len(j.tail)+1 < blockEntries {
		j.tail, j.last = append(j.tail, p), e
		return change{Put: []part{p}}, nil
	}
	full := append(slices.Clone(j.tail), p)
	entries, err := unpackAll(full)
	if err != nil {
		return change{}, err
	}
	b, err := packBlock(entries, 0)
	if err != nil {
		return change{}, err
	}
	c := change{Put: []part{b.part}}
	for _, old := range j.tail[1:] {
		c.Drop = append(c.Drop, old.Key)
	}
	j.blocks, j.tail, j.last = append(j.blocks, b), nil, e
	return c, j.thin(e.At, &c)
}

// thin thins out what has come of age.
func (j *journal) thin(now time.Time, c *change) error {
	for level, age := range []time.Duration{keepAll, keepSome} {
		for i := 0; i < len(j.blocks); i++ {
			b := &j.blocks[i]
			if b.damaged || b.head.Level != level || now.Sub(b.head.Last) <= age {
				continue
			}
			first, entries := i, []Entry(nil)
			if i > 0 && !j.blocks[i-1].damaged && j.blocks[i-1].head.Level == level+1 && j.blocks[i-1].head.Entries < blockEntries {
				first = i - 1
			}
			var err error
			for k := first; k <= i && err == nil; k++ {
				var some []Entry
				some, err = unpack(j.blocks[k].Data, nil)
				entries = append(entries, some...)
			}
			if err != nil {
				b.damaged = true
				continue
			}
			thinned, err := packBlock(thinOut(entries, now), level+1)
			if err != nil {
				return err
			}
			for k := first; k <= i; k++ {
				if key := j.blocks[k].Key; key != thinned.Key {
					c.drop(key)
				}
			}
			c.put(thinned.part)
			j.blocks = slices.Replace(j.blocks, first, i+1, thinned)
			i = first
		}
	}
	return nil
}

// parts are all parts.
func (j *journal) parts() []part {
	all := make([]part, 0, len(j.blocks)+len(j.tail))
	for i := range j.blocks {
		all = append(all, j.blocks[i].part)
	}
	return append(all, j.tail...)
}

// drop forgets what was to be put under a key too.
func (c *change) drop(key uint64) {
	c.Put = slices.DeleteFunc(c.Put, func(p part) bool { return p.Key == key })
	c.Drop = append(c.Drop, key)
}

func (c *change) put(p part) {
	c.Put = append(slices.DeleteFunc(c.Put, func(o part) bool { return o.Key == p.Key }), p)
}

// thinOut leaves out what is not kept of entries, which are oldest first. What is kept does
// not depend on what was left out before: the first of each minute, which the first of each
// hour is too.
func thinOut(entries []Entry, now time.Time) []Entry {
	kept := entries[:0:0]
	var bucket time.Time // of the automatic entry that was kept last
	for i := range entries {
		e := &entries[i]
		age, width := now.Sub(e.At), time.Duration(0)
		switch {
		case age <= keepAll:
		case age <= keepSome:
			width = time.Minute
		default:
			width = time.Hour
		}
		if e.lasting() || width == 0 {
			kept = append(kept, *e)
		} else if at := e.At.Truncate(width); !at.Equal(bucket.Truncate(width)) {
			kept = append(kept, *e)
		} else {
			continue
		}
		if !e.lasting() {
			bucket = e.At
		}
	}
	return kept
}

// entries are all entries in parts and the one beside the record, newest first.
func entries(parts []part, saved *Entry) ([]Entry, error) {
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Key, b.Key) })
	var all []Entry
	var damage error
	var before *Entry // which a part of the tail is told by
	for _, p := range parts {
		if isBlock(p.Data) {
			before = nil
		}
		some, err := unpack(p.Data, before)
		if err != nil {
			damage, before = partDamage(p.Key, err), nil
			continue
		}
		all = append(all, some...)
		if !isBlock(p.Data) {
			before = &all[len(all)-1]
		}
	}
	if saved != nil && (len(all) == 0 || all[len(all)-1].number() < saved.number()) {
		all = append(all, *saved)
	}
	if len(all) > 0 {
		all = thinOut(all, all[len(all)-1].At)
	}
	slices.Reverse(all)
	return all, damage
}

func entryID(n uint64) string { return strconv.FormatUint(n, 10) }
