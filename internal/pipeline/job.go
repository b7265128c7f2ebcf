package pipeline

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// queueLength is how many segments may wait behind the workers. What bounds memory is the byte budget of the source; this bounds
// the number of small ones.
const queueLength = 64

// eventCost is what an event takes beside its payload, in bytes: itself, its id, key and times.
const eventCost = int64(unsafe.Sizeof(mapping.Event{})) + 256

// eventSlices keeps slices of events for use again: they are large, and full of pointers.
type eventSlices struct{ pool sync.Pool }

func (s *eventSlices) take() []mapping.Event {
	if kept, ok := s.pool.Get().(*[]mapping.Event); ok {
		return (*kept)[:0]
	}
	return nil
}

// give takes back a slice whose events are not needed any more.
func (s *eventSlices) give(events []mapping.Event) {
	if cap(events) > 0 {
		clear(events)
		s.pool.Put(&events)
	}
}

// closed is the done channel of jobs that need no work.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// job is a segment on its way through the workers to the publisher.
type job struct {
	segment *canal.Segment
	mapper  *mapping.Mapper // of all its transactions
	done    chan struct{}   // closed when the fields below hold

	events []mapping.Event
	parts  []part
	// skipped are changes of the parts that gave no event because a rule failed and says so.
	skipped []mapping.Skip
	err     error // what stopped it; parts are what came before

	// resume and suspend hand what a transaction in pieces holds for aggregates from piece to piece: resume is of the
	// segment's first transaction, suspend of its last. Both are nil where there is nothing to hand on.
	resume  <-chan *mapping.Gathered
	suspend chan<- *mapping.Gathered
}

// part is what one transaction or piece of the segment gave.
type part struct {
	transaction *canal.Transaction
	events      int // of the job's, in order
	bytes       int64
	place       uint64
}

func (p part) work() checkpoint.Work {
	return checkpoint.Work{Events: p.events, Bytes: p.bytes, Place: p.place}
}

// mapped is the number of events of the parts.
func (j *job) mapped() int {
	n := 0
	for _, part := range j.parts {
		n += part.events
	}
	return n
}

// work decodes and maps segments, one after the other.
func (p *Pipeline) work(ctx context.Context, decoder *canal.Decoder, jobs <-chan *job) error {
	var mapper *mapping.Worker
	for j := range jobs {
		if mapper == nil || mapper.Mapper() != j.mapper {
			mapper = j.mapper.NewWorker()
		}
		j.events = p.slices.take()
		j.run(ctx, decoder, mapper)
		close(j.done)
	}
	return nil
}

// run fills in the job's results.
func (j *job) run(ctx context.Context, decoder *canal.Decoder, mapper *mapping.Worker) {
	if j.suspend != nil {
		defer close(j.suspend) // also after an error: nobody may wait for ever
	}
	transactions := j.segment.Transactions
	j.parts = make([]part, 0, len(transactions))
	size := int64(0)
	for _, t := range transactions {
		before := len(j.events)
		part := part{transaction: t}
		part.place, j.err = j.mapRows(ctx, decoder, mapper, t)
		if j.err != nil {
			mapper.Skipped() // of a transaction that is read again
			break
		}
		j.skipped = append(j.skipped, mapper.Skipped()...)
		part.events = len(j.events) - before
		for k := before; k < len(j.events); k++ {
			part.bytes += int64(len(j.events[k].Payload))
		}
		size += part.bytes + int64(part.events)*eventCost
		j.parts = append(j.parts, part)
	}
	j.segment.Resize(size)
}

func (j *job) mapRows(ctx context.Context, decoder *canal.Decoder, mapper *mapping.Worker, t *canal.Transaction) (place uint64, err error) {
	start := len(j.events)
	rows := decoder.Rows(ctx, t)
	begun := t.Piece > 0 && j.resume != nil || !t.Last && j.suspend != nil
	if begun {
		if err := j.begin(ctx, mapper, t); err != nil {
			return 0, err
		}
	}
	for rows.Next() {
		if !begun {
			if err := mapper.Begin(t); err != nil {
				return 0, err
			}
			begun = true
		}
		if j.events, err = mapper.Append(j.events, rows.Row()); err != nil {
			return 0, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("read the rows of %s: %w", describeTransaction(t), err)
	}
	switch {
	case !begun:
	case t.Last:
		j.events, err = mapper.End(j.events, start)
	case j.suspend != nil:
		j.suspend <- mapper.Suspend() // has room for it
	}
	return rows.LastPlace(), err
}

// begin begins a piece of a transaction with what those before it hold.
func (j *job) begin(ctx context.Context, mapper *mapping.Worker, t *canal.Transaction) error {
	if err := mapper.Begin(t); err != nil {
		return err
	}
	if t.Piece == 0 {
		return nil
	}
	select {
	case gathered := <-j.resume:
		mapper.Resume(gathered)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the earlier pieces of %s: %w", describeTransaction(t), context.Cause(ctx))
	}
}

// chain connects the jobs of the pieces of one transaction.
type chain struct{ open chan *mapping.Gathered }

func (c *chain) add(j *job) {
	transactions := j.segment.Transactions
	if len(transactions) == 0 {
		return
	}
	if transactions[0].Piece > 0 {
		j.resume = c.open
	}
	if last := transactions[len(transactions)-1]; !last.Last {
		c.open = make(chan *mapping.Gathered, 1)
		j.suspend = c.open
	}
}
