package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// DefaultLease is how long a checkpoint on a server stays with a process that is not heard of.
const DefaultLease = 10 * time.Second

// lease is a process's right to write a checkpoint for some time.
type lease struct {
	// Token is the holder's alone: of a process that took the checkpoint twice, too.
	Token  string        `json:"token"`
	Holder Holder        `json:"holder"`
	Length time.Duration `json:"length"` // from each renewal on
	// Renewals counts them, so that who waits sees that the holder lives.
	Renewals uint64 `json:"renewals"`
}

func newLease(h Holder, length time.Duration) lease {
	return lease{Token: rand.Text(), Holder: h, Length: length}
}

// renewalsPerLease is how often a lease is renewed while it lasts: one that is late, or
// lost on the way, does no harm.
const renewalsPerLease = 3

// acquire takes the lease. Where another process has it, it waits for a sign of life of
// that one, and the error is a *LockedError; without a sign it takes the lease once it has
// run out. So a process that crashed is in nobody's way for longer than its lease.
func (r *remote) acquire(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *lease
	var since time.Time
	for {
		waited := first != nil && time.Since(since) > first.Length
		theirs, err := r.backend.claim(ctx, r.lease, waited)
		if err != nil {
			return r.access("open", err)
		}
		switch {
		case theirs == nil:
			return nil
		case first == nil || theirs.Token != first.Token:
			first, since = theirs, time.Now()
			r.logger.Info("another process has the checkpoint; waiting whether it still lives", "checkpoint", r.Place(), "holder", theirs.Holder, "at_most", theirs.Length)
		case theirs.Renewals != first.Renewals:
			return &LockedError{Place: r.Place(), Holder: theirs.Holder}
		}
		if err := pause(ctx, max(first.Length/(5*renewalsPerLease), time.Millisecond)); err != nil {
			return r.access("open", err)
		}
	}
}

// keep renews the lease until ctx ends or another process has it.
func (r *remote) keep(ctx context.Context) {
	ticker := time.NewTicker(r.lease.Length / renewalsPerLease)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.fenced:
			return
		case <-ticker.C:
		}
		r.renew(ctx)
	}
}

func (r *remote) renew(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return
	}
	err := r.backend.renew(ctx)
	r.note(err)
	if err != nil && ctx.Err() == nil {
		// Saving tells whether it matters.
		r.logger.Warn("the checkpoint's lease was not renewed", "checkpoint", r.Place(), "error", err)
	}
}

// note remembers that the lease is lost. It is called with mu held.
func (r *remote) note(err error) {
	fenced, ok := errors.AsType[*FencedError](err)
	if !ok || r.lost != nil {
		return
	}
	fenced.Place = r.Place()
	r.lost = fenced
	close(r.fenced)
}

// Leased is a Store that can be lost to another process while it is open.
type Leased interface {
	Store
	// Lost is closed once another process has taken the checkpoint. Save then returns a
	// *FencedError.
	Lost() <-chan struct{}
}

var _ Leased = (*remote)(nil)

// Lost implements Leased.
func (r *remote) Lost() <-chan struct{} { return r.fenced }
