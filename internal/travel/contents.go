package travel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlogd/binlogd/publish"
)

// Contents are what the transactions of a stretch give.
type Contents struct {
	Transactions uint64 // all
	WithEvents   uint64 // of these, those that give events
	Events       uint64
	Bytes        uint64 // of the events' payloads
	// First and Last are the commit times of the first and the last event; zero without events.
	First, Last time.Time
	Tables      []TableContents // in the order of their names
}

// TableContents is the part of one table and type.
type TableContents struct {
	Table  string // database.table
	Type   string
	Topic  string
	Events uint64
}

// counter is a sink that counts what comes.
type counter struct {
	mu       sync.Mutex
	contents Contents
	tables   map[TableContents]uint64 // by their names; Events is 0
	last     string                   // the transaction of the event before
}

func newCounter() *counter { return &counter{tables: make(map[TableContents]uint64)} }

// transactionOf is the part of an event's sequence that its transaction has for itself.
func transactionOf(sequence string) string {
	head, _, _ := strings.Cut(sequence, "-")
	return head
}

// Publish implements publish.Sink.
func (c *counter) Publish(_ context.Context, b *publish.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var key TableContents
	run := uint64(0)
	flush := func() {
		if run > 0 {
			c.tables[key.clone()] += run
			run = 0
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		if key.Table != e.Table || key.Type != e.Type || key.Topic != e.Topic {
			flush()
			key = TableContents{Table: e.Table, Type: e.Type, Topic: e.Topic}
		}
		run++
		if t := e.GTID + transactionOf(e.Sequence); t != c.last {
			c.last = t
			c.contents.WithEvents++
		}
		c.contents.Events++
		c.contents.Bytes += uint64(len(e.Payload))
		if c.contents.First.IsZero() || e.OccurredAt.Before(c.contents.First) {
			c.contents.First = e.OccurredAt
		}
		if e.OccurredAt.After(c.contents.Last) {
			c.contents.Last = e.OccurredAt
		}
		b.Confirm(i)
	}
	flush()
	return nil
}

// clone shares no memory with the event that the names came from.
func (t TableContents) clone() TableContents {
	return TableContents{Table: strings.Clone(t.Table), Type: strings.Clone(t.Type), Topic: strings.Clone(t.Topic)}
}

// Ping implements publish.Sink.
func (c *counter) Ping(context.Context) error { return nil }

// Close implements publish.Sink.
func (c *counter) Close() error { return nil }

// total is what was counted.
func (c *counter) total(transactions uint64) Contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.contents
	total.Transactions = transactions
	for _, t := range slices.SortedFunc(maps.Keys(c.tables), func(a, b TableContents) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Topic, b.Topic))
	}) {
		t.Events = c.tables[t]
		total.Tables = append(total.Tables, t)
	}
	return total
}
