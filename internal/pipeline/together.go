package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/publish"
)

// Carrier is a sink that takes events along with what a checkpoint store writes to it.
type Carrier interface {
	// Carry says which events go along with the next save of a record; nil for none. They are confirmed once both are durable,
	// and neither is visible without the other.
	Carry(b *publish.Batch)
}

// Together makes events durable and saves the checkpoint behind them in one step. After a crash at any moment either both are
// there or neither, so that no event is ever published a second time.
type Together struct {
	Carrier Carrier
	// Store writes through the carrier.
	Store checkpoint.Store
	// Retry says how steps are repeated; until they are done, or refused for good.
	Retry publish.RetryOptions
	// Events, Bytes of payload and Linger end a batch: so many of them, or so long after the first one.
	Events int
	Bytes  int64
	Linger time.Duration
}

// publish makes the events of b durable with r, the record behind them; before is the one that was saved last. A nil error means
// both, any other that the run must end: nothing may be saved any more, since it is not certain what was.
func (t *Together) publish(ctx context.Context, b *publish.Batch, before, r *checkpoint.Record) error {
	return publish.WithRetry(&step{Together: t, before: before, record: r}, t.Retry).Publish(ctx, b)
}

// step is one batch and the record behind it on their way, as a sink in the eyes of the decorator that repeats it.
type step struct {
	*Together
	before, record *checkpoint.Record
	tried          bool
}

// Publish implements publish.Sink. What an earlier attempt did without saying so is found by the record that is there.
func (s *step) Publish(ctx context.Context, b *publish.Batch) error {
	if s.tried {
		saved, err := s.Store.Load(ctx)
		switch {
		case errors.Is(err, checkpoint.ErrNotFound):
			return &publish.PermanentError{Err: s.lost(err)}
		case err != nil:
			return s.failed(err)
		case s.record.SamePlace(saved):
			confirm(b)
			return nil
		case !s.before.SamePlace(saved):
			return &publish.PermanentError{Err: s.lost(errors.New("the checkpoint there is another than this run has saved"))}
		}
	}
	s.tried = true
	s.Carrier.Carry(b)
	defer s.Carrier.Carry(nil)
	checkpoint.Stamp(s.record)
	if err := s.Store.Save(ctx, s.record); err != nil {
		return s.failed(err)
	}
	confirm(b)
	return nil
}

func confirm(b *publish.Batch) {
	for i := range b.Events {
		b.Confirm(i)
	}
}

// lost is the end of a run whose sink has lost what it had confirmed: what is published now would come behind a gap.
func (s *step) lost(err error) error {
	return &checkpoint.AccessError{
		Op: "save", Place: s.Store.Place(), Err: err,
		Remedy: "the server has lost what it had confirmed, as without persistence in a crash: start binlogd again, and it goes on from the checkpoint that is there, so that what was lost is published again",
	}
}

// failed marks what a repetition cannot mend.
func (s *step) failed(err error) error {
	if refused, ok := errors.AsType[*publish.PermanentError](err); ok {
		return refused // by the sink: what the store makes of it says less
	}
	if _, away := errors.AsType[*checkpoint.AccessError](err); away && !checkpoint.Elsewhere(err) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &publish.PermanentError{Err: err}
}

// Ping implements publish.Sink.
func (s *step) Ping(context.Context) error { return nil }

// Close implements publish.Sink.
func (s *step) Close() error { return nil }

// publishTogether is publish where events and checkpoint go to the sink in one step.
func (p *Pipeline) publishTogether(ctx context.Context, r *running, order <-chan *job) error {
	t := p.opts.Together
	// With half of the budget in a batch, the workers have the other half while it is published.
	budget := p.opts.Source.MaxInFlight
	if budget <= 0 {
		budget = canal.DefaultMaxInFlight
	}
	b := lingering{batch: batch{limit: limit{events: t.Events, bytes: t.Bytes, held: budget / 2}}}
	defer b.stop()
	for {
		j, more := b.next(order)
		if j == nil {
			if err := p.commit(ctx, r, &b); err != nil || !more {
				return err
			}
			continue
		}
		for !finished(j) {
			select {
			case <-j.done:
			case <-b.due():
				if err := p.commit(ctx, r, &b); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		b.add(r.tracker, j)
		b.owed = true
		switch {
		case len(b.events) > 0:
			b.within(t.Linger)
		case j.err == nil: // nothing to publish: the place is saved when it is time
			p.counters.passed(&b.batch)
			b.reset(&p.slices)
			b.within(p.opts.SaveInterval)
		}
		if j.err != nil || b.full() {
			if err := p.commit(ctx, r, &b); err != nil {
				return err
			}
		}
		if j.err != nil {
			return j.err
		}
	}
}

// commit publishes the batch, which may be empty, with the place behind it.
func (p *Pipeline) commit(ctx context.Context, r *running, b *lingering) error {
	b.stop()
	if !b.owed {
		return nil
	}
	record := r.tracker.Ahead()
	before, _ := r.saver.Last() // Run has saved the first
	if err := p.opts.Together.publish(ctx, publish.NewBatch(b.events), before, &record); err != nil {
		return err
	}
	p.counters.published(b.events)
	for _, ticket := range b.tickets {
		r.tracker.Done(ticket)
	}
	r.saver.Saved(&record)
	p.counters.passed(&b.batch)
	b.reset(&p.slices)
	b.owed = false
	return nil
}

// lingering is a batch that waits a little for more.
type lingering struct {
	batch
	owed  bool // there is something to save
	timer *time.Timer
	at    time.Time // when the timer fires
}

// due is told when the batch is to wait no longer.
func (b *lingering) due() <-chan time.Time {
	if b.timer == nil {
		return nil
	}
	return b.timer.C
}

// within lets the batch wait no longer than d from now.
func (b *lingering) within(d time.Duration) {
	at := time.Now().Add(d)
	if b.timer != nil && !at.Before(b.at) {
		return
	}
	b.stop()
	b.timer, b.at = time.NewTimer(d), at
}

func (b *lingering) stop() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// next is the next job in commit order, or nil where the batch has waited long enough, or nothing more comes at all.
func (b *lingering) next(order <-chan *job) (j *job, more bool) {
	select {
	case j, more = <-order:
		return j, more
	case <-b.due():
		return nil, true
	}
}
