package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// shelf is what a part belongs to.
type shelf string

const (
	historyShelf shelf = "history"
	schemaShelf  shelf = "schema"
)

// batch is what is written at once.
type batch struct {
	record  []byte // as encode made it; nil leaves the one that is there
	history change
	schema  change
}

// backend keeps one pipeline's checkpoint on a server: a record, parts of its two
// histories, and a lease. Its methods are called by one goroutine at a time and end with
// their context.
type backend interface {
	// place names the checkpoint in messages.
	place() string
	// record gives the record that is there; nil where there is none.
	record(ctx context.Context) ([]byte, error)
	// parts gives what stands on a shelf, in any order.
	parts(ctx context.Context, s shelf) ([]part, error)

	// claim takes the lease, unless another process has it; then it returns that one's,
	// as it is now, and waited says that it has not been renewed for as long as it lasts.
	claim(ctx context.Context, mine lease, waited bool) (theirs *lease, err error)
	// renew makes the lease last from now on. The error is a *FencedError where another
	// process has taken it.
	renew(ctx context.Context) error
	// release gives the lease back, unless another process has taken it.
	release(ctx context.Context) error
	// commit writes all of b or nothing, and only while the lease is not another's: then
	// the error is a *FencedError. After any other error it may have been written.
	commit(ctx context.Context, b batch) error

	// warnings looks at what matters to a checkpoint on this server. The error says why it
	// could not be kept there.
	warnings(ctx context.Context) ([]Warning, error)

	// remedy says what to do about an error.
	remedy(err error) string
	// holder gives the lease that is held; nil where none is.
	holder(ctx context.Context) (*lease, error)
	close() error
}

// view shows what a backend keeps.
type view struct {
	name    string
	backend backend
	mu      sync.Mutex // one call of the backend at a time
}

// Place implements Reader.
func (v *view) Place() string { return v.backend.place() }

// Load implements Reader.
func (v *view) Load(ctx context.Context) (*Record, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, _, err := v.load(ctx)
	return r, err
}

func (v *view) load(ctx context.Context) (*Record, *Entry, error) {
	data, err := v.backend.record(ctx)
	if err != nil {
		return nil, nil, v.access("read", err)
	}
	if data == nil {
		return nil, nil, ErrNotFound
	}
	r, e, err := decode(data, v.Place())
	if err != nil {
		return nil, nil, err
	}
	if r.Name != v.name {
		return nil, nil, &NameError{Place: v.Place(), Want: v.name, Have: r.Name}
	}
	return r, e, nil
}

// History implements Reader.
func (v *view) History(ctx context.Context) ([]Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var saved *Entry
	data, err := v.backend.record(ctx)
	if err != nil {
		return nil, v.access("read", err)
	}
	if data != nil {
		if _, saved, err = decode(data, v.Place()); err != nil {
			saved = nil // what led to a damaged record can still be read
		}
	}
	parts, err := v.backend.parts(ctx, historyShelf)
	if err != nil {
		return nil, v.access("read", err)
	}
	all, err := entries(parts, saved)
	if damage, ok := errors.AsType[*HistoryError](err); ok {
		damage.Place = v.Place()
	}
	return all, err
}

// Close implements Reader.
func (v *view) Close() error { return v.backend.close() }

// access makes an *AccessError of an error of the backend that says nothing better.
func (v *view) access(op string, err error) error {
	if err == nil || Elsewhere(err) {
		return err
	}
	return &AccessError{Op: op, Place: v.Place(), Remedy: v.backend.remedy(err), Err: err}
}

// remote is a Store on a server. Whoever holds the lease may write; a lease is renewed
// while the Store is open, and runs out by itself when the process dies.
type remote struct {
	view
	logger *slog.Logger
	lease  lease
	author author

	// What is known to be on the server, under mu. journal is nil until something is
	// saved, and again after an error, since that leaves it open what is there.
	journal *journal
	before  *Record
	sparse  time.Duration // between automatic entries of the history; 0 makes one with every save
	lost    error         // a *FencedError, once another process has the lease

	fenced   chan struct{} // closed with lost
	stop     context.CancelFunc
	renewing sync.WaitGroup
}

var _ Store = (*remote)(nil)

// Attempts to reach the server when a checkpoint is opened, with growing pauses between.
const openAttempts = 5

// openRemote takes the lease of a checkpoint and keeps it. It closes the backend where it
// fails.
func openRemote(ctx context.Context, b backend, name string, length time.Duration, logger *slog.Logger) (Store, error) {
	holder, err := self()
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	r := &remote{
		view: view{name: name, backend: b}, logger: logger, lease: newLease(holder, length),
		author: author{holder: holder}, fenced: make(chan struct{}),
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	for attempt := 1; ; attempt++ {
		err := r.acquire(ctx)
		if err == nil {
			break
		}
		if _, away := errors.AsType[*AccessError](err); !away || ctx.Err() != nil || attempt == openAttempts {
			return nil, errors.Join(err, b.close())
		}
		r.logger.Warn("the checkpoint's store does not answer and is asked again", "attempt", attempt, "of", openAttempts, "error", err)
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return nil, errors.Join(r.access("open", err), b.close())
		}
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.renewing.Go(func() { r.keep(keeping) })
	return r, nil
}

// Save implements Store.
func (r *remote) Save(ctx context.Context, record *Record) error {
	_, err := r.save(ctx, record, nil)
	return err
}

// Move implements Store.
func (r *remote) Move(ctx context.Context, record *Record, m Move) (Entry, error) {
	return r.save(ctx, record, &m)
}

// save saves a record with an entry of the history, which m describes if a person asked for it.
func (r *remote) save(ctx context.Context, record *Record, m *Move) (Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return Entry{}, r.lost
	}
	if err := checkFlavor(record); err != nil {
		return Entry{}, fmt.Errorf("encode checkpoint: %w", err)
	}
	if r.journal == nil {
		if err := r.openJournal(ctx, m != nil); err != nil {
			return Entry{}, err
		}
	}
	record, e := r.author.entry(r.journal.next(), r.before, record, m)
	if last := r.journal.last; e.Action == ActionSave && last != nil && e.At.Sub(last.At) < r.sparse {
		return r.saveAlone(ctx, record)
	}
	data, err := encode(record, e)
	if err != nil {
		return Entry{}, err
	}
	c, err := r.journal.append(e)
	if err == nil {
		err = r.commit(ctx, batch{record: data, history: c})
	}
	if errors.Is(err, errEmptied) {
		err = r.refill(ctx, data)
	}
	if err != nil {
		r.journal = nil
		return Entry{}, err
	}
	r.author.saved, r.before = true, &e.Record
	return *e, nil
}

// saveAlone saves a record without an entry of the history.
func (r *remote) saveAlone(ctx context.Context, record *Record) (Entry, error) {
	data, err := encode(record, nil)
	if err == nil {
		err = r.commit(ctx, batch{record: data})
	}
	if err != nil {
		r.journal = nil
		return Entry{}, err
	}
	r.before = record
	return Entry{}, nil
}

// openJournal reads what is there. A record that cannot be read is in the way of a move,
// which says from where, and not of a save.
func (r *remote) openJournal(ctx context.Context, moving bool) error {
	before, saved, err := r.load(ctx)
	if _, unreachable := errors.AsType[*AccessError](err); unreachable || err != nil && moving && !errors.Is(err, ErrNotFound) {
		return err
	}
	parts, err := r.backend.parts(ctx, historyShelf)
	if err != nil {
		return r.access("read", err)
	}
	j, _ := openJournal(parts) // damage is History's to tell; the record does not need it
	if saved != nil && saved.number() >= j.next() {
		j.last, j.tail = saved, nil
	}
	r.journal, r.before = j, before
	return nil
}

// refill writes the record and the history once more to a server that has lost them: a fresh
// start would leave out what was not read yet. The schema history begins anew.
func (r *remote) refill(ctx context.Context, record []byte) error {
	r.logger.Error("the checkpoint's server has lost its data; the checkpoint is written anew", "checkpoint", r.Place())
	theirs, err := r.backend.claim(ctx, r.lease, false)
	if err != nil {
		return r.access("save", err)
	}
	if theirs != nil {
		r.note(&FencedError{Holder: theirs.Holder})
		return r.lost
	}
	if _, err := r.backend.record(ctx); err != nil { // what is now to be replaced
		return r.access("read", err)
	}
	return r.commit(ctx, batch{record: record, history: change{Put: r.journal.parts()}})
}

// commit writes a batch.
func (r *remote) commit(ctx context.Context, b batch) error {
	err := r.backend.commit(ctx, b)
	r.note(err)
	return r.access("save", err)
}

// Close gives the lease back.
func (r *remote) Close() error {
	r.stop()
	r.renewing.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		ctx, cancel := context.WithTimeout(context.Background(), r.lease.Length)
		defer cancel()
		// Where it cannot be given back it runs out.
		if err := r.backend.release(ctx); err != nil {
			r.logger.Warn("the checkpoint's lease was not given back and runs out by itself", "checkpoint", r.Place(), "in", r.lease.Length, "error", err)
		}
	}
	return r.backend.close()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
