package pipeline

import (
	"context"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// A batch goes to the sink when nothing more is ready, or when it holds this much.
const (
	batchBytes  = 4 << 20
	batchEvents = 8192
)

// publish takes the jobs in commit order and makes their events durable. It ends when order is closed and drained, or with the
// first error; what came before that error was published.
func (p *Pipeline) publish(ctx context.Context, tracker *checkpoint.Tracker, order <-chan *job) error {
	b := batch{limit: limit{events: batchEvents, bytes: batchBytes}}
	for {
		j, more := b.next(order)
		if j == nil {
			if err := p.flush(ctx, tracker, &b); err != nil || !more {
				return err
			}
			continue
		}
		if !finished(j) { // what is ready need not wait for it
			if err := p.flush(ctx, tracker, &b); err != nil {
				return err
			}
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		b.add(tracker, j)
		if j.err != nil || b.full() {
			if err := p.flush(ctx, tracker, &b); err != nil {
				return err
			}
		}
		if j.err != nil {
			return j.err
		}
	}
}

func finished(j *job) bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// flush publishes the batch and lets the checkpoint follow.
func (p *Pipeline) flush(ctx context.Context, tracker *checkpoint.Tracker, b *batch) error {
	if len(b.events) > 0 {
		if err := p.opts.Sink.Publish(ctx, publish.NewBatch(b.events)); err != nil {
			return err
		}
		p.counters.published(b.events)
	}
	for _, ticket := range b.tickets {
		tracker.Done(ticket)
	}
	p.reportSkipped(b)
	p.counters.passed(b)
	b.reset(&p.slices)
	return nil
}

// reportSkipped logs and counts what the batch left out, now that what it has is durable.
func (p *Pipeline) reportSkipped(b *batch) {
	for _, j := range b.jobs {
		for _, s := range j.skipped {
			p.opts.Logger.Warn("skipped a change: its rule failed", "table", s.Table, "transaction", s.Transaction,
				"rule", s.Err.Rule, "type", s.Err.Type, "part", s.Err.Part, "key", s.Err.Key, "error", s.Err.Err)
		}
		p.counters.skipped.Add(uint64(len(j.skipped)))
	}
}

// batch gathers the results of jobs for the sink.
type batch struct {
	jobs     []*job
	events   []mapping.Event
	gathered []mapping.Event // what events is, of more jobs than one
	bytes    int64
	tickets  []checkpoint.Ticket // of the transactions with events
	limit    limit
}

// limit is how much a batch gathers before it goes to the sink.
type limit struct {
	events int
	bytes  int64 // of payloads
	held   int64 // of memory, as the budget counts it; 0 for no limit
}

// next is the next job in commit order, or nil where the batch should be published first: because nothing more is there at the
// moment, or at all.
func (b *batch) next(order <-chan *job) (j *job, more bool) {
	if len(b.jobs) == 0 {
		j, more = <-order
		return j, more
	}
	select {
	case j, more = <-order:
		return j, more
	default:
		return nil, true
	}
}

func (b *batch) add(tracker *checkpoint.Tracker, j *job) {
	b.jobs = append(b.jobs, j)
	if mapped := j.events[:j.mapped()]; len(b.events) == 0 {
		b.events = mapped // a batch of one job needs no copy
	} else {
		if len(b.gathered) == 0 {
			b.gathered = append(b.gathered, b.events...)
		}
		b.gathered = append(b.gathered, mapped...)
		b.events = b.gathered
	}
	for _, part := range j.parts {
		ticket := tracker.Begin(part.transaction, part.work())
		if part.events > 0 {
			b.tickets = append(b.tickets, ticket)
			b.bytes += part.bytes
		}
	}
}

func (b *batch) full() bool {
	held := b.bytes + int64(len(b.events))*eventCost
	return b.bytes >= b.limit.bytes || len(b.events) >= b.limit.events || b.limit.held > 0 && held >= b.limit.held
}

// reset gives the memory of what was published back.
func (b *batch) reset(slices *eventSlices) {
	for i, j := range b.jobs {
		if j.segment != nil {
			slices.give(j.events)
			j.segment.Release()
		}
		b.jobs[i] = nil
	}
	clear(b.gathered)
	b.jobs, b.events, b.gathered, b.tickets, b.bytes = b.jobs[:0], nil, b.gathered[:0], b.tickets[:0], 0
}
