package checkpointtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

func (s Subject) history(t *testing.T) {
	t.Helper()
	t.Run("keeps what was saved", s.historyOfSaves)
	t.Run("keeps moves with their reasons", s.historyOfMoves)
	t.Run("is packed", s.longHistory)
	t.Run("is shown while it is held", s.historyWhileHeld)
}

// series is the n-th record of a pipeline that goes on and on, saved at a time.
func series(t *testing.T, n uint64, at time.Time) *checkpoint.Record {
	t.Helper()
	return &checkpoint.Record{
		Name:     pipeline,
		Position: canal.Position{GTIDs: gtids(t, canal.MySQL, fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-%d", n)), File: "binlog.000042", Offset: 157 + 300*n},
		Server:   canal.Identity{Flavor: canal.MySQL, UUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", ServerID: 1, Version: "9.7.4"},
		Counters: checkpoint.Counters{Transactions: n, Events: 2 * n, Bytes: 1000 * n}, WrittenAt: at, WrittenBy: "host, process 1",
	}
}

func (s Subject) historyOfSaves(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	store := s.open(t, place)
	history, err := store.History(t.Context())
	require.NoError(t, err)
	require.Empty(t, history)
	records := Records(t)
	saved := []*checkpoint.Record{
		records["bare"], records["everything"], records["mariadb"], records["no GTIDs"], records["empty sets"],
		series(t, 1, time.Now().UTC()), series(t, 2, time.Now().UTC()), series(t, 2, time.Now().UTC()), series(t, 1, time.Now().UTC()),
	}
	for i, record := range saved {
		if !record.WrittenAt.IsZero() {
			again := *record
			again.WrittenAt = time.Now().UTC() // all of one hour, so that none is thinned out
			saved[i] = &again
		}
		require.NoError(t, store.Save(t.Context(), saved[i]))
	}
	for range 2 { // from what is in memory, and from the store
		history, err = store.History(t.Context())
		require.NoError(t, err)
		require.Len(t, history, len(saved))
		for i, record := range saved {
			e := history[len(saved)-1-i]
			require.Empty(t, cmp.Diff(*record, e.Record), "entry %d", i)
			require.False(t, e.Manual)
			require.Equal(t, fmt.Sprint(i+1), e.ID)
			require.NotZero(t, e.By.PID)
			require.False(t, e.At.IsZero())
		}
		require.Equal(t, checkpoint.ActionStart, history[len(saved)-1].Action)
		require.Equal(t, checkpoint.ActionSave, history[0].Action)
		require.Equal(t, checkpoint.ActionFailover, history[3].Action, "another server")
		require.NoError(t, store.Close())
		store = s.open(t, place)
	}
	require.NoError(t, store.Close())
}

func (s Subject) historyOfMoves(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	store := s.open(t, place)
	first, err := store.Move(t.Context(), series(t, 1, time.Time{}), checkpoint.Move{Action: checkpoint.ActionImport})
	require.NoError(t, err)
	require.Nil(t, first.From, "there was nothing before")
	before := series(t, 9, time.Now().UTC())
	require.NoError(t, store.Save(t.Context(), before))
	by := checkpoint.Holder{PID: 7, Host: "desk", User: "eve", Since: time.Now().UTC().Truncate(time.Second)}
	moved, err := store.Move(t.Context(), series(t, 3, time.Time{}), checkpoint.Move{Action: checkpoint.ActionRewind, Reason: "orders.paid was\nmapped \"wrong\"", By: by})
	require.NoError(t, err)
	require.NoError(t, store.Save(t.Context(), series(t, 4, time.Now().UTC())))
	for range 2 {
		record, err := store.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(4), record.Counters.Transactions)
		history, err := store.History(t.Context())
		require.NoError(t, err)
		require.Len(t, history, 4)
		e := history[1]
		require.Empty(t, cmp.Diff(moved, e))
		require.Equal(t, checkpoint.ActionRewind, e.Action)
		require.True(t, e.Manual)
		require.Equal(t, by, e.By)
		require.Contains(t, e.Reason, "mapped \"wrong\"")
		require.Empty(t, cmp.Diff(before, e.Before))
		require.Empty(t, cmp.Diff(&before.Position, e.From))
		require.Equal(t, uint64(3), e.Record.Counters.Transactions)
		require.WithinDuration(t, e.At, e.Record.WrittenAt, 0)
		require.NotEmpty(t, e.Record.WrittenBy)
		require.Equal(t, first.ID, history[3].ID)
		require.NotZero(t, history[3].By.PID, "who opened the store, unless it is said")
		require.NoError(t, store.Close())
		store = s.open(t, place)
	}
	require.NoError(t, store.Close())
}

// longHistory is long enough to be packed.
func (s Subject) longHistory(t *testing.T) {
	t.Parallel()
	const saves = 270
	place := s.Place(t)
	store := s.open(t, place)
	start := time.Now().UTC().Add(-saves * time.Second)
	for n := range uint64(saves) {
		if n == saves/2 {
			require.NoError(t, store.Close())
			store = s.open(t, place)
		}
		require.NoError(t, store.Save(t.Context(), series(t, n+1, start.Add(time.Duration(n)*time.Second))))
	}
	history, err := store.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, saves)
	for i, e := range history {
		n := uint64(saves - i)
		require.Equal(t, fmt.Sprint(n), e.ID)
		require.Empty(t, cmp.Diff(series(t, n, start.Add(time.Duration(n-1)*time.Second)), &e.Record))
	}
	require.NoError(t, store.Close())
}

func (s Subject) historyWhileHeld(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	store := s.open(t, place)
	defer func() { require.NoError(t, store.Close()) }()
	reader, err := s.View(place, pipeline)
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	_, err = reader.Load(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	history, err := reader.History(t.Context())
	require.NoError(t, err)
	require.Empty(t, history)
	for n := range uint64(3) {
		record := series(t, n+1, time.Now().UTC())
		require.NoError(t, store.Save(t.Context(), record))
		got, err := reader.Load(t.Context())
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(record, got))
		history, err := reader.History(t.Context())
		require.NoError(t, err)
		require.Len(t, history, int(n+1))
	}
	require.NoError(t, store.Save(t.Context(), series(t, 4, time.Now().UTC())), "who looks does not disturb")
	require.Equal(t, store.Place(), reader.Place())
}
