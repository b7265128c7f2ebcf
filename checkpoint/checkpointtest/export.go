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

// schemas are entries of a schema history with versions from first to last, one table each.
func schemas(t *testing.T, first, last uint64) []canal.SchemaEntry {
	t.Helper()
	var entries []canal.SchemaEntry
	for v := first; v <= last; v++ {
		entries = append(entries, canal.SchemaEntry{
			Version: v, Database: "shop", Table: fmt.Sprintf("table \"%d\"", v), Origin: canal.SchemaFromStatement,
			Schema: &canal.Schema{Charset: "latin1", PrimaryKey: []string{"id"}, Columns: []canal.SchemaColumn{{Name: "id", Type: "int unsigned"}, {Name: "é", Type: "enum('a''b')", Charset: "gbk"}}},
			GTID:   gtid(t, canal.MySQL, fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:%d", v)), File: "binlog.000001", Offset: 100 * v, Statement: "CREATE TABLE …",
		})
	}
	return entries
}

func (s Subject) schemaHistory(t *testing.T) {
	t.Parallel()
	place := s.Place(t)
	store := s.open(t, place)
	loaded, err := store.Schemas().Load(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, loaded)
	require.NoError(t, store.Schemas().Append(t.Context(), schemas(t, 1, 3000))) // more than one part on a server
	require.NoError(t, store.Schemas().Append(t.Context(), schemas(t, 3001, 3001)))
	require.NoError(t, store.Close())

	store = s.open(t, place)
	defer func() { require.NoError(t, store.Close()) }()
	loaded, err = store.Schemas().Load(t.Context(), 3001)
	require.NoError(t, err)
	require.Equal(t, schemas(t, 1, 3001), loaded)
	reader, err := s.View(place, pipeline)
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	shown, err := reader.SchemaEntries(t.Context())
	require.NoError(t, err)
	require.Equal(t, loaded, shown)

	_, err = store.Schemas().Load(t.Context(), 3002)
	require.ErrorAs(t, err, new(*checkpoint.SchemaError))
	require.True(t, checkpoint.Unusable(err))
	loaded, err = store.Schemas().Load(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, loaded)
	loaded, err = store.Schemas().Load(t.Context(), 5)
	require.NoError(t, err)
	require.Empty(t, loaded)
}

// exportAndImport moves a checkpoint from one place to another, over one that is there.
func (s Subject) exportAndImport(t *testing.T) {
	t.Parallel()
	from := s.open(t, s.Place(t))
	defer func() { require.NoError(t, from.Close()) }()
	require.NoError(t, from.Schemas().Append(t.Context(), schemas(t, 1, 5)))
	require.NoError(t, from.Save(t.Context(), series(t, 1, time.Now().UTC().Add(-time.Second))))
	_, err := from.Move(t.Context(), series(t, 7, time.Time{}), checkpoint.Move{Action: checkpoint.ActionRewind, Reason: "<why>"})
	require.NoError(t, err)
	record := *Records(t)["everything"]
	record.SchemaVersion, record.WrittenAt = 5, time.Now().UTC()
	require.NoError(t, from.Save(t.Context(), &record))
	exported, err := checkpoint.Export(t.Context(), from)
	require.NoError(t, err)
	text, err := exported.Encode()
	require.NoError(t, err)
	for _, cut := range []int{1, len(text) / 2, len(text) - 3} {
		_, err := checkpoint.DecodeExport(text[:cut], "shop.json")
		require.ErrorAs(t, err, new(*checkpoint.CorruptError))
	}
	read, err := checkpoint.DecodeExport(text, "shop.json")
	require.NoError(t, err)

	place := s.Place(t)
	to := s.open(t, place)
	require.NoError(t, to.Schemas().Append(t.Context(), schemas(t, 1, 9)))
	overwritten := series(t, 99, time.Now().UTC())
	for range 3 {
		require.NoError(t, to.Save(t.Context(), overwritten))
	}
	entry, err := checkpoint.Import(t.Context(), to, read, checkpoint.Move{Action: checkpoint.ActionImport, Reason: "moved"})
	require.NoError(t, err)
	require.Equal(t, "4", entry.ID, "numbers go on")
	require.Empty(t, cmp.Diff(overwritten, entry.Before))
	require.NoError(t, to.Save(t.Context(), series(t, 8, time.Now().UTC())))
	require.NoError(t, to.Close())

	to = s.open(t, place)
	defer func() { require.NoError(t, to.Close()) }()
	was, err := from.History(t.Context())
	require.NoError(t, err)
	is, err := to.History(t.Context())
	require.NoError(t, err)
	require.Len(t, is, 5)
	require.Empty(t, cmp.Diff(was, is[2:]))
	require.Empty(t, cmp.Diff(entry, is[1]))
	require.Equal(t, record.Position.GTIDs.String(), is[1].Record.Position.GTIDs.String())
	require.Equal(t, record.Held, is[1].Record.Held)
	entries, err := to.SchemaEntries(t.Context())
	require.NoError(t, err)
	require.Equal(t, schemas(t, 1, 5), entries)
}
