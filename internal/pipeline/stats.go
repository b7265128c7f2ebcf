package pipeline

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// Stats is what a pipeline can say of itself.
type Stats struct {
	Started time.Time
	Source  canal.Status // its zero value before the source is open
	// Checkpoint is the place up to which everything is durable, saved or not; nil before the source is open.
	Checkpoint *checkpoint.Record
	// SavedAt is when the checkpoint was written last; zero before.
	SavedAt time.Time
	// LagTransactions is the number of transactions that the server has committed and that are not durable; −1 where it is not known.
	LagTransactions int64
	// Lag is how long ago the oldest of them was committed, as far as is known; 0 where there is none.
	Lag     time.Duration
	Waiting int // transactions on their way to the sink
	Tables  []TableStats
	Events  uint64
	Bytes   uint64
	// ReplacedText counts values whose invalid bytes were replaced.
	ReplacedText uint64
	// Skipped counts changes without an event because a rule failed and says so.
	Skipped  uint64
	LastDone time.Time // commit time of the newest transaction that is durable
}

// TableStats counts what was published of one table to one topic as one type of event.
type TableStats struct {
	Table, Topic, Type string
	Events, Bytes      uint64
}

// counters count what was published.
type counters struct {
	mu     sync.Mutex
	tables map[tableKey]*TableStats
	last   *TableStats // of the event before: neighbours are mostly alike
	events uint64
	bytes  uint64
	done   time.Time // commit time of the newest durable transaction

	skipped atomic.Uint64
}

type tableKey struct{ table, topic, kind string }

func newCounters() *counters { return &counters{tables: make(map[tableKey]*TableStats)} }

// published counts events that are durable.
func (c *counters) published(events []mapping.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range events {
		e := &events[i]
		t := c.last
		if t == nil || t.Table != e.Table || t.Type != e.Type || t.Topic != e.Topic {
			t = c.table(e)
			c.last = t
		}
		t.Events++
		t.Bytes += uint64(len(e.Payload))
		c.bytes += uint64(len(e.Payload))
	}
	c.events += uint64(len(events))
}

func (c *counters) table(e *mapping.Event) *TableStats {
	key := tableKey{e.Table, e.Topic, e.Type}
	t := c.tables[key]
	if t == nil {
		t = &TableStats{Table: e.Table, Topic: e.Topic, Type: e.Type}
		c.tables[key] = t
	}
	return t
}

// passed notes that everything of a batch is durable.
func (c *counters) passed(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range slices.Backward(b.jobs) {
		if parts := j.parts; len(parts) > 0 && !parts[len(parts)-1].transaction.Idle {
			c.done = parts[len(parts)-1].transaction.CommittedAt
			return
		}
	}
}

// Stats is what can be said now. It may be asked at any time.
func (p *Pipeline) Stats() Stats {
	s := Stats{Started: p.started, LagTransactions: -1, Skipped: p.counters.skipped.Load()}
	c := p.counters
	c.mu.Lock()
	s.Events, s.Bytes, s.LastDone = c.events, c.bytes, c.done
	s.Tables = make([]TableStats, 0, len(c.tables))
	for _, t := range c.tables {
		s.Tables = append(s.Tables, *t)
	}
	c.mu.Unlock()
	r := p.running.Load()
	if r == nil {
		return s
	}
	s.Source = r.source.Status()
	s.ReplacedText = r.decoder.ReplacedText()
	record := r.tracker.Peek()
	s.Checkpoint = &record
	s.Waiting = r.tracker.Waiting()
	if saved, ok := r.saver.Last(); ok {
		s.SavedAt = saved.WrittenAt
	}
	s.LagTransactions, s.Lag = r.lag.now(s.LastDone)
	if s.LagTransactions < 0 && s.Source.CaughtUp && s.Waiting == 0 {
		s.Lag = 0 // the server numbers no transactions, and has just said that there is no more
	}
	return s
}

// Describe is a position in words: the GTID set, or file and offset.
func Describe(p canal.Position) string {
	if p.GTIDs != nil && !p.GTIDs.IsEmpty() {
		return p.GTIDs.String()
	}
	return fmt.Sprintf("%s:%d", p.File, p.Offset)
}

func describeTransaction(t *canal.Transaction) string {
	if t.GTID.IsZero() {
		return fmt.Sprintf("the transaction at %s:%d", t.File, t.Start)
	}
	return fmt.Sprintf("transaction %s (%s:%d)", t.GTID, t.File, t.Start)
}

// Checkpoint is the place up to which everything is durable; nil before the source is open.
func (p *Pipeline) Checkpoint() *canal.Position {
	r := p.running.Load()
	if r == nil {
		return nil
	}
	position := r.tracker.Peek().Position
	return &position
}
