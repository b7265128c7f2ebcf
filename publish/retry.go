package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// RetryOptions set how WithRetry waits and whom it tells. Zero values mean the defaults.
type RetryOptions struct {
	Initial time.Duration // the first wait; 100 ms by default
	Max     time.Duration // the longest wait; 5 s by default
	// Jitter is the part of a wait that is random, from 0 to 1, so that many daemons do
	// not come back to a broker in step; 0.25 by default.
	Jitter float64
	// OnRetry is called before each wait, with the failure and how many attempts in a
	// row have failed, from 1.
	OnRetry func(err error, attempt int, wait time.Duration)
	// OnRecovered is called when publishing works again after failures.
	OnRecovered func(away time.Duration)
	// Logger is told of the first failure, of failures at most every 30 s afterwards,
	// and of the recovery.
	Logger *slog.Logger
}

// retryLogInterval is the least time between two log lines about the same outage.
const retryLogInterval = 30 * time.Second

// WithRetry returns a sink that repeats Publish with exponential back-off until every
// event is durable, the context ends, or sink refuses for good: a *PermanentError is
// passed on at once. It never gives up by itself, because there is nothing better to do
// with an event that is neither durable nor refused.
func WithRetry(sink Sink, o RetryOptions) Sink {
	if o.Initial == 0 {
		o.Initial = 100 * time.Millisecond
	}
	if o.Max == 0 {
		o.Max = 5 * time.Second
	}
	if o.Jitter == 0 {
		o.Jitter = 0.25
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &retry{sink: sink, options: o}
}

type retry struct {
	sink    Sink
	options RetryOptions
}

func (r *retry) Publish(ctx context.Context, b *Batch) error {
	err := r.sink.Publish(ctx, b)
	if err == nil || permanent(err) {
		return err
	}
	out := outage{options: r.options, began: time.Now(), waits: backoff.ExponentialBackOff{
		InitialInterval:     r.options.Initial,
		RandomizationFactor: r.options.Jitter,
		Multiplier:          2,
		MaxInterval:         r.options.Max,
	}}
	out.waits.Reset()
	pending := b.Pending()
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("publish: stopped after %d attempts: %w; the last one: %w", out.attempts+1, context.Cause(ctx), err)
		}
		if err := wait(ctx, out.next(err, b.Pending())); err != nil {
			continue // the check above says how it ended
		}
		err = r.sink.Publish(ctx, b)
		if err == nil {
			out.over()
			return nil
		}
		if permanent(err) {
			return err
		}
		if b.Pending() < pending { // it is not down, only slow to take everything
			pending = b.Pending()
			out.waits.Reset()
		}
	}
}

func (r *retry) Ping(ctx context.Context) error { return r.sink.Ping(ctx) }

func (r *retry) Close() error { return r.sink.Close() }

// outage is one run of failures.
type outage struct {
	options  RetryOptions
	waits    backoff.ExponentialBackOff
	began    time.Time
	logged   time.Time
	attempts int
}

// next notes a failure and returns how long to wait before the next attempt.
func (o *outage) next(err error, pending int) time.Duration {
	o.attempts++
	wait := min(o.waits.NextBackOff(), o.options.Max)
	if o.options.OnRetry != nil {
		o.options.OnRetry(err, o.attempts, wait)
	}
	if now := time.Now(); o.logged.IsZero() {
		o.logged = now
		o.options.Logger.Warn("publishing failed; it is tried again until it works",
			"error", err, "events", pending, "wait", wait.Round(time.Millisecond))
	} else if now.Sub(o.logged) >= retryLogInterval {
		o.logged = now
		o.options.Logger.Warn("publishing still fails",
			"error", err, "events", pending, "attempts", o.attempts, "for", now.Sub(o.began).Round(time.Second))
	}
	return wait
}

func (o *outage) over() {
	away := time.Since(o.began)
	o.options.Logger.Info("publishing works again", "attempts", o.attempts, "after", away.Round(time.Millisecond))
	if o.options.OnRecovered != nil {
		o.options.OnRecovered(away)
	}
}

// wait sleeps for d or until ctx ends, which it reports.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func permanent(err error) bool {
	var p *PermanentError
	return errors.As(err, &p)
}
