package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
)

// faulty is a Store that fails at will.
type faulty struct {
	checkpoint.Store
	mu     sync.Mutex
	fail   int // the next so many saves
	err    error
	saves  int
	before func() // each save
}

func (f *faulty) Save(ctx context.Context, r *checkpoint.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		f.before()
	}
	if f.fail > 0 {
		f.fail--
		return f.err
	}
	f.saves++
	return f.Store.Save(ctx, r)
}

func (f *faulty) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saves
}

func newSaver(t *testing.T) (*checkpoint.Saver, *faulty) {
	t.Helper()
	file, err := checkpoint.OpenFile(filepath.Join(t.TempDir(), "shop.checkpoint"), "shop")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	store := &faulty{Store: file, err: errors.New("no space left on device")}
	return &checkpoint.Saver{Store: store, Tracker: checkpoint.NewTracker(kinds[0].start())}, store
}

// requireStored checks that the store has what the tracker knows.
func requireStored(t *testing.T, s *checkpoint.Saver) {
	t.Helper()
	got, err := s.Store.Load(t.Context())
	require.NoError(t, err)
	want := s.Tracker.Peek()
	require.Empty(t, cmp.Diff(&want, got, cmpopts.IgnoreFields(checkpoint.Record{}, "WrittenAt", "WrittenBy")))
	require.NotEmpty(t, got.WrittenBy)
	last, saved := s.Last()
	require.True(t, saved)
	require.Empty(t, cmp.Diff(last, got))
}

func TestSaverSavesWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := newSaver(t)
		_, saved := s.Last()
		require.False(t, saved)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		result := make(chan error, 1)
		go func() { result <- s.Run(ctx) }()

		synctest.Wait()
		require.Equal(t, 1, store.count(), "the start is saved at once")
		requireStored(t, s)

		time.Sleep(10*time.Second + time.Millisecond) // not at the moment of a save
		require.Equal(t, 1, store.count(), "nothing has changed")

		for n := range uint64(100) {
			s.Tracker.Begin(whole(kinds[0], n+1), checkpoint.Work{})
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 2, store.count(), "one save for all of them")
		requireStored(t, s)
		last, _ := s.Last()
		require.WithinDuration(t, time.Now(), last.WrittenAt, time.Second)

		s.Tracker.Begin(whole(kinds[0], 101), checkpoint.Work{})
		stop()
		require.NoError(t, <-result)
		require.NoError(t, s.Flush(t.Context()))
		require.Equal(t, 3, store.count())
		requireStored(t, s)
		require.NoError(t, s.Flush(t.Context()))
		require.Equal(t, 3, store.count())
	})
}

func TestSaverTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := newSaver(t)
		var log bytes.Buffer
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		store.fail = 4
		require.NoError(t, s.Flush(t.Context()))
		require.Equal(t, 4, bytes.Count(log.Bytes(), []byte("no space left on device")))
		requireStored(t, s)
	})
}

func TestSaverGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := newSaver(t)
		store.fail = 5
		began := time.Now()
		err := s.Run(t.Context())
		var save *checkpoint.SaveError
		require.ErrorAs(t, err, &save)
		require.Equal(t, 5, save.Attempts)
		require.ErrorIs(t, err, store.err)
		require.True(t, checkpoint.Unusable(err))
		require.Less(t, time.Since(began), 15*time.Second)
		_, err = s.Store.Load(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrNotFound)

		// What was not saved is not forgotten, though the tracker reports no change.
		require.NoError(t, s.Flush(t.Context()))
		requireStored(t, s)
	})
}

func TestSaverInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := newSaver(t)
		store.fail = 1000
		ctx, stop := context.WithCancel(t.Context())
		store.before = stop
		require.NoError(t, s.Run(ctx), "a shutdown is no error of the store's")
		require.ErrorIs(t, s.Flush(ctx), store.err)

		store.fail = 0
		require.NoError(t, s.Flush(t.Context()))
		requireStored(t, s)
	})
}
