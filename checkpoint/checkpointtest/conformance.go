// Package checkpointtest holds what every checkpoint.Store must do.
package checkpointtest

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// Subject is a kind of store under test. Every place is a fresh one: a path, a table, a
// key.
type Subject struct {
	// Place makes a place where no checkpoint was saved yet.
	Place func(t *testing.T) string
	// Open opens the store of the named pipeline at a place.
	Open func(place, name string) (checkpoint.Store, error)
	// View shows the checkpoint of the named pipeline at a place without locking it.
	View func(place, name string) (checkpoint.Reader, error)
	// Named says that a place holds a checkpoint for each name, and not just one.
	Named bool
	// Damage puts content that no store has saved at a place.
	Damage func(t *testing.T, place string, content []byte)
}

// Run checks that the subject is a checkpoint.Store.
func Run(t *testing.T, s Subject) {
	t.Helper()
	t.Run("not found", s.notFound)
	t.Run("round trip", s.roundTrip)
	t.Run("overwrite", s.overwrite)
	t.Run("survives reopening", s.survivesReopening)
	t.Run("second opener is refused", s.secondOpener)
	t.Run("other name", s.otherName)
	t.Run("damaged", s.damaged)
	t.Run("newer version", s.newerVersion)
	t.Run("mixed flavors", s.mixedFlavors)
	t.Run("history", s.history)
	t.Run("schema history", s.schemaHistory)
	t.Run("export and import", s.exportAndImport)
}

const pipeline = "shop"

func (s Subject) open(t *testing.T, place string) checkpoint.Store {
	t.Helper()
	store, err := s.Open(place, pipeline)
	require.NoError(t, err)
	return store
}

func (s Subject) notFound(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	for range 2 { // opening alone must not leave anything that looks like a checkpoint
		store := s.open(t, place)
		_, err := store.Load(t.Context())
		require.ErrorIs(t, err, checkpoint.ErrNotFound)
		require.NoError(t, store.Close())
	}
}

func (s Subject) roundTrip(t *testing.T) {
	t.Parallel()
	for name, record := range Records(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := s.open(t, s.Place(t))
			defer func() { require.NoError(t, store.Close()) }()
			require.NoError(t, store.Save(t.Context(), record))
			got, err := store.Load(t.Context())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(record, got))
		})
	}
}

func (s Subject) overwrite(t *testing.T) {
	t.Parallel()
	store := s.open(t, s.Place(t))
	defer func() { require.NoError(t, store.Close()) }()
	// From a large record to a small one: nothing of the former may be left.
	records := Records(t)
	for _, record := range []*checkpoint.Record{records["everything"], records["bare"], records["everything"], records["mariadb"]} {
		require.NoError(t, store.Save(t.Context(), record))
		got, err := store.Load(t.Context())
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(record, got))
	}
}

func (s Subject) survivesReopening(t *testing.T) {
	t.Parallel()
	place, record := s.Place(t), Records(t)["everything"]
	store := s.open(t, place)
	require.NoError(t, store.Save(t.Context(), record))
	require.NoError(t, store.Close())

	for range 2 {
		again := s.open(t, place)
		got, err := again.Load(t.Context())
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(record, got))
		require.NoError(t, again.Close())
	}
}

func (s Subject) secondOpener(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	first := s.open(t, place)
	_, err := s.Open(place, pipeline)
	var locked *checkpoint.LockedError
	require.ErrorAs(t, err, &locked)
	require.NotZero(t, locked.Holder)
	require.ErrorContains(t, err, locked.Place)
	require.ErrorContains(t, err, locked.Holder.Host)
	require.True(t, checkpoint.Elsewhere(err))
	require.False(t, checkpoint.Unusable(err), "it has an exit code of its own")

	// The refusal left the holder alone, and closing lets the next one in.
	require.NoError(t, first.Save(t.Context(), Records(t)["bare"]))
	require.NoError(t, first.Close())
	require.NoError(t, s.open(t, place).Close())
}

func (s Subject) otherName(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	store := s.open(t, place)
	require.NoError(t, store.Save(t.Context(), Records(t)["everything"]))
	require.NoError(t, store.Close())

	other, err := s.Open(place, "warehouse")
	require.NoError(t, err)
	_, err = other.Load(t.Context())
	if s.Named {
		require.ErrorIs(t, err, checkpoint.ErrNotFound)
		require.NoError(t, other.Close())
		return
	}
	var name *checkpoint.NameError
	require.ErrorAs(t, err, &name)
	require.Equal(t, pipeline, name.Have)
	require.Equal(t, "warehouse", name.Want)
	require.True(t, checkpoint.Unusable(err))
	require.NoError(t, other.Close())
}

func (s Subject) damaged(t *testing.T) {
	t.Parallel()
	whole, err := checkpoint.Encode(Records(t)["everything"])
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"empty":      {},
		"blank":      []byte(" \n"),
		"zeroes":     make([]byte, 512),
		"half":       whole[:len(whole)/2],
		"no JSON":    []byte("binlog.000042:157\n"),
		"other JSON": []byte(`{"name": "shop"}`),
		"no record":  []byte(`{"format":"binlogd-checkpoint","version":1,"checksum":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`),
		"version 0":  []byte(`{"format":"binlogd-checkpoint","version":0}`),
		"twice":      append(append([]byte{}, whole...), whole...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := s.Place(t)
			s.Damage(t, place, content)
			store := s.open(t, place)
			defer func() { require.NoError(t, store.Close()) }()
			_, err := store.Load(t.Context())
			var corrupt *checkpoint.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.NotEmpty(t, corrupt.Place)
			require.ErrorContains(t, err, corrupt.Place)
			require.ErrorContains(t, err, "restore a copy")
			require.True(t, checkpoint.Unusable(err))
			require.NotErrorIs(t, err, checkpoint.ErrNotFound)
		})
	}
}

func (s Subject) newerVersion(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	s.Damage(t, place, []byte(`{"format":"binlogd-checkpoint","version":2,"novelty":{}}`))
	store := s.open(t, place)
	defer func() { require.NoError(t, store.Close()) }()
	_, err := store.Load(t.Context())
	var newer *checkpoint.NewerVersionError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, 2, newer.Version)
	require.ErrorContains(t, err, newer.Place)
	require.True(t, checkpoint.Unusable(err))
}

// mixedFlavors: a record that could not be read back is not saved over one that can.
func (s Subject) mixedFlavors(t *testing.T) {
	t.Parallel()
	store := s.open(t, s.Place(t))
	defer func() { require.NoError(t, store.Close()) }()
	good := Records(t)["mariadb"]
	require.NoError(t, store.Save(t.Context(), good))

	mixed := *good
	mixed.Server.Flavor = canal.MySQL
	require.Error(t, store.Save(t.Context(), &mixed))
	got, err := store.Load(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(good, got))
}

// Records are records that a store must keep exactly, by name.
func Records(t *testing.T) map[string]*checkpoint.Record {
	t.Helper()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	written := time.Date(2026, 11, 29, 22, 36, 56, 557484123, time.UTC)
	prepared := gtid(t, canal.MySQL, uuid+":blue:9")
	return map[string]*checkpoint.Record{
		"bare": {Name: pipeline},
		"everything": {
			Name: pipeline,
			Position: canal.Position{
				GTIDs: gtids(t, canal.MySQL, uuid+":1-5:7:blue:1-8,4e11fa47-71ca-11e1-9e33-c80aa9429562:1-9223372036854775806"),
				File:  "binlog.000042", Offset: math.MaxInt64,
			},
			Held: []canal.Prepared{
				{XID: "X'01',X'',1", GTID: prepared, File: "binlog.000041", Offset: 157},
				{XID: `X'3C262022',X'5C',2`, File: "binlog.000042", Offset: 4},
			},
			Published: &canal.Position{GTIDs: canal.NewGTIDSet(canal.MySQL), File: "binlog.000043", Offset: 12345678901},
			Partial:   &checkpoint.Partial{GTID: gtid(t, canal.MySQL, uuid+":8"), File: "binlog.000043", Start: 157, Place: 2_000_000},
			Server: canal.Identity{
				Flavor: canal.MySQL, UUID: uuid, ServerID: math.MaxUint32, Version: "9.7.4-log \"<é>\"",
			},
			SchemaVersion: math.MaxUint64,
			Counters:      checkpoint.Counters{Transactions: math.MaxUint64, Events: 1 << 60, Bytes: 3},
			WrittenAt:     written,
			WrittenBy:     "host, process 1",
		},
		"mariadb": {
			Name:      pipeline,
			Position:  canal.Position{GTIDs: gtids(t, canal.MariaDB, "0-1-5,1-2-18446744073709551615"), File: "bin.000001", Offset: 4},
			Published: &canal.Position{GTIDs: gtids(t, canal.MariaDB, "0-1-9"), File: "bin.000001", Offset: 900},
			Held:      []canal.Prepared{{XID: "X'01',X'',1", GTID: gtid(t, canal.MariaDB, "0-1-6"), File: "bin.000001", Offset: 4}},
			Server:    canal.Identity{Flavor: canal.MariaDB, ServerID: 1, Version: "11.8.2-MariaDB"},
			WrittenAt: written,
		},
		"no GTIDs": {
			Name:      pipeline,
			Position:  canal.Position{File: "binlog.000001", Offset: 157},
			Published: &canal.Position{File: "binlog.000001", Offset: 900},
			Partial:   &checkpoint.Partial{File: "binlog.000001", Start: 900, Place: 1},
			Server:    canal.Identity{UUID: uuid},
			WrittenAt: written,
		},
		"empty sets": {
			Name:     pipeline,
			Position: canal.Position{GTIDs: canal.NewGTIDSet(canal.MariaDB)},
			Server:   canal.Identity{Flavor: canal.MariaDB},
		},
	}
}

func gtid(t *testing.T, f canal.Flavor, text string) canal.GTID {
	t.Helper()
	g, err := canal.ParseGTID(f, text)
	require.NoError(t, err)
	return g
}

func gtids(t *testing.T, f canal.Flavor, text string) *canal.GTIDSet {
	t.Helper()
	s, err := canal.ParseGTIDSet(f, text)
	require.NoError(t, err)
	return s
}
