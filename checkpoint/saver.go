package checkpoint

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	defaultInterval = 500 * time.Millisecond
	defaultAttempts = 5
	firstPause      = 100 * time.Millisecond
	longestPause    = 2 * time.Second
)

// Saver brings the tracker's record into a store while it changes.
type Saver struct {
	Store   Store
	Tracker *Tracker
	// Interval is the shortest time between two saves; 0 means 500 ms. What was published
	// since the last save is published again after a crash.
	Interval time.Duration
	// QuietInterval is the shortest time between two saves where only transactions without
	// events passed between: of a checkpoint on the source, each save is one of these.
	QuietInterval time.Duration
	// Attempts are how often a save is tried, with growing pauses from 100 ms to 2 s
	// between; 0 means 5.
	Attempts int
	// Patience is how long a save is tried at least, however many attempts that takes.
	Patience time.Duration
	Logger   *slog.Logger

	saving  sync.Mutex // one save at a time
	unsaved bool       // the tracker gave a record that is not in the store; under saving

	mu   sync.Mutex
	last *Record
}

// SaveError says that the checkpoint could not be saved, however often it was tried.
// What was published since may be published again; nothing is lost.
type SaveError struct {
	Attempts int
	Err      error // of the last attempt
}

func (e *SaveError) Error() string {
	return fmt.Sprintf("gave up saving the checkpoint after %d attempts: %v", e.Attempts, e.Err)
}

func (e *SaveError) Unwrap() error { return e.Err }

// Run saves the record at once and then whenever it has changed, at most once an Interval,
// until ctx ends, which is no error. The error is a *SaveError, or a *FencedError as soon as
// another process has taken the checkpoint. It does not save at the end:
// Flush does, once the sinks have come to rest.
func (s *Saver) Run(ctx context.Context) error {
	interval := s.Interval
	if interval <= 0 {
		interval = defaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var lost <-chan struct{}
	if leased, ok := s.Store.(Leased); ok {
		lost = leased.Lost()
	}
	for {
		if err := s.Flush(ctx); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // interrupted; the last Flush is still to come
			}
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-lost:
				s.again() // the store refuses it, and says who has the checkpoint now
				waiting = false
			case <-ticker.C:
				waiting = s.quiet()
			}
		}
	}
}

// quiet reports whether nothing but transactions without events passed since a save that is
// not QuietInterval ago.
func (s *Saver) quiet() bool {
	last, saved := s.Last()
	return saved && time.Since(last.WrittenAt) < s.QuietInterval && s.Tracker.Peek().Counters.Events == last.Counters.Events
}

// again has the next Flush save, whether or not something has changed.
func (s *Saver) again() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.unsaved = true
}

// Flush saves the record now if it has changed since the last save. The error is a
// *SaveError, or the context's.
func (s *Saver) Flush(ctx context.Context) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	record, changed := s.Tracker.Record()
	if !changed && !s.unsaved {
		return nil
	}
	s.unsaved = true
	record.WrittenBy = writtenBy()
	if err := s.save(ctx, &record); err != nil {
		return err
	}
	s.unsaved = false
	s.mu.Lock()
	s.last = &record
	s.mu.Unlock()
	return nil
}

// Saved takes note of the tracker's record as it was saved by other means: together with
// events. The record counts as seen.
func (s *Saver) Saved(r *Record) {
	s.saving.Lock()
	defer s.saving.Unlock()
	_, _ = s.Tracker.Record()
	s.unsaved = false
	s.mu.Lock()
	s.last = r
	s.mu.Unlock()
}

// Stamp fills in when and by whom r is written.
func Stamp(r *Record) { r.WrittenAt, r.WrittenBy = time.Now().UTC(), writtenBy() }

// Last returns the record that was saved last by this Saver, and false before there is
// one. Its WrittenAt says when. It must not be changed.
func (s *Saver) Last() (*Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.last != nil
}

// save tries to save r until it is in the store, ctx ends or the attempts are used up.
func (s *Saver) save(ctx context.Context, r *Record) error {
	attempts := s.Attempts
	if attempts <= 0 {
		attempts = defaultAttempts
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	began := time.Now()
	for attempt := 1; ; attempt++ {
		r.WrittenAt = time.Now().UTC()
		err := s.Store.Save(ctx, r)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || Elsewhere(err) {
			return fmt.Errorf("save the checkpoint: %w", err)
		}
		if attempt >= attempts && time.Since(began) >= s.Patience {
			return &SaveError{Attempts: attempt, Err: err}
		}
		s.log().Warn("the checkpoint was not saved and is tried again", "attempt", attempt, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("save the checkpoint: %w (%w)", err, ctx.Err())
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

func (s *Saver) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// writtenBy names this process in records.
func writtenBy() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return Holder{PID: os.Getpid(), Host: host}.writtenBy()
}
