// Package publish makes events durable in a broker or file.
package publish

import (
	"context"

	"github.com/binlogd/binlogd/mapping"
)

// Sink makes batches of events durable. It is used by one goroutine at a time.
type Sink interface {
	// Publish returns nil once every event of b is durable, in the sense that the sink
	// documents. On an error the events that b.Confirmed reports are durable, the others
	// may or may not be. An error is retryable unless it is, or wraps, a *PermanentError.
	// When Publish is called again with the same b, only events that are not confirmed
	// are published. The order of events with equal topic and key is kept: an event is
	// never confirmed while an earlier one with the same topic and key is not.
	Publish(ctx context.Context, b *Batch) error
	// Ping reports whether the sink can be reached and written to now.
	Ping(ctx context.Context) error
	// Close gives up connections and files. Nothing unconfirmed becomes durable by it.
	Close() error
}

// Batch is a run of events in commit order.
type Batch struct {
	Events    []mapping.Event
	confirmed []bool
	pending   int
}

// NewBatch returns a batch with no event confirmed.
func NewBatch(events []mapping.Event) *Batch {
	return &Batch{Events: events, confirmed: make([]bool, len(events)), pending: len(events)}
}

// Confirm notes that Events[i] is durable.
func (b *Batch) Confirm(i int) {
	if !b.confirmed[i] {
		b.confirmed[i] = true
		b.pending--
	}
}

// Confirmed reports whether Events[i] is durable.
func (b *Batch) Confirmed(i int) bool { return b.confirmed[i] }

// Pending is the number of events that are not confirmed.
func (b *Batch) Pending() int { return b.pending }

// PermanentError is a refusal that a repetition cannot mend.
type PermanentError struct {
	// Event is the refused event, or nil where the refusal is not about one.
	Event *mapping.Event
	// Remedy says what to do, in words for an operator.
	Remedy string
	Err    error
}

func (e *PermanentError) Error() string {
	s := e.Err.Error()
	if e.Event != nil {
		s = "event " + e.Event.ID + " of table " + e.Event.Table + ", key " + string(e.Event.Key) + ", GTID " + e.Event.GTID + ": " + s
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *PermanentError) Unwrap() error { return e.Err }
