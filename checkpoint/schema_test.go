package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

func someEntries(t *testing.T) []canal.SchemaEntry {
	t.Helper()
	set, err := canal.ParseGTIDSet(canal.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23")
	require.NoError(t, err)
	gtid, err := canal.ParseGTID(canal.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:24")
	require.NoError(t, err)
	schema := &canal.Schema{
		Charset: "latin1", PrimaryKey: []string{"id"}, UniqueKnown: true,
		Unique:  []canal.UniqueKey{{Name: "u", Parts: []canal.KeyPart{{Column: "id"}, {Column: "ä\"", Prefix: 3}, {}}, Hash: true, Made: true}},
		Columns: []canal.SchemaColumn{{Name: "id", Type: "int unsigned", NotNull: true, Virtual: true}, {Name: "ä\"", Type: `enum('a"','b''')`, Charset: "gbk", Invisible: true}},
	}
	start := &canal.Position{GTIDs: set, File: "binlog.000001", Offset: 157}
	return []canal.SchemaEntry{
		{Version: 1, Database: "shop", Charset: "utf8mb4", Origin: canal.SchemaFromStart, Start: start},
		{Version: 2, Database: "shop", Table: "orders", Schema: schema, Origin: canal.SchemaFromStart, Start: start, Until: start},
		{Version: 3, Database: "shop", Table: "orders", Unknown: "why", Origin: canal.SchemaFromStatement, GTID: gtid, File: "binlog.000001", Offset: 300, Statement: "ALTER TABLE orders …"},
		{Version: 4, Replaces: 3, Database: "shop", Table: "orders", Schema: schema, Origin: canal.SchemaFromHand, GTID: gtid, File: "binlog.000001", Offset: 300},
		{Version: 5, Database: "shop", Table: "gone", Origin: canal.SchemaFromStatement, File: "binlog.000001", Offset: 400},
	}
}

func openSchemas(t *testing.T) (history *SchemaFile, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.checkpoint")
	file, err := OpenFile(path, "shop")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file.Schemas().(*SchemaFile), path + ".schema"
}

func TestSchemaHistoryKeepsEntries(t *testing.T) {
	t.Parallel()
	history, path := openSchemas(t)
	entries := someEntries(t)
	loaded, err := history.Load(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, loaded)
	require.NoError(t, history.Append(t.Context(), entries[:2]))
	require.NoError(t, history.Append(t.Context(), entries[2:]))
	for _, h := range []*SchemaFile{history, {path: path}} {
		loaded, err = h.Load(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, entries, loaded)
	}
	read, err := ReadSchemas(path[:len(path)-len(".schema")])
	require.NoError(t, err)
	require.Equal(t, entries, read)
	require.Equal(t, []uint64{1, 2, 4, 5}, versions(canal.Settle(read)))

	// A checkpoint that needs more than there is, and one that needs nothing.
	var damaged *SchemaError
	_, err = history.Load(t.Context(), 6)
	require.ErrorAs(t, err, &damaged)
	require.True(t, Unusable(err))
	loaded, err = history.Load(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, loaded)
	require.NoFileExists(t, path)
}

func versions(entries []canal.SchemaEntry) []uint64 {
	var all []uint64
	for i := range entries {
		all = append(all, entries[i].Version)
	}
	return all
}

// A crash can leave the file at any length: whole entries stay, and others are appended behind them.
func TestSchemaHistoryAfterATornWrite(t *testing.T) {
	t.Parallel()
	history, path := openSchemas(t)
	entries := someEntries(t)
	require.NoError(t, history.Append(t.Context(), entries))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for size := range whole {
		require.NoError(t, os.WriteFile(path, whole[:size], 0o600))
		torn := &SchemaFile{path: path}
		loaded, err := torn.Load(t.Context(), 1)
		if err != nil {
			require.Failf(t, "load", "%d bytes: %v", size, err)
		}
		if len(loaded) > 0 {
			require.Equal(t, entries[:len(loaded)], loaded)
		}
		require.NoError(t, torn.Append(t.Context(), entries[len(loaded):]))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(after), "%d bytes", size)
	}
}

// One flipped bit is never read as something else.
func TestSchemaHistoryDamaged(t *testing.T) {
	t.Parallel()
	history, path := openSchemas(t)
	entries := someEntries(t)
	require.NoError(t, history.Append(t.Context(), entries))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 1
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		loaded, err := (&SchemaFile{path: path}).Load(t.Context(), 5)
		if err == nil {
			require.Equal(t, entries, loaded, "byte %d (%q)", i, whole[i])
			continue
		}
		require.True(t, Unusable(err), "byte %d: %v", i, err)
	}
}

func TestSchemaHistoryIsMadeShorter(t *testing.T) {
	t.Parallel()
	history, path := openSchemas(t)
	template := someEntries(t)[1]
	var entries []canal.SchemaEntry
	for v := uint64(1); v <= longHistory+200; v++ {
		e := template
		e.Version, e.Table = v, "busy"
		if v == 3 {
			e.Table = "quiet"
		}
		entries = append(entries, e)
	}
	require.NoError(t, history.Append(t.Context(), entries))
	loaded, err := history.Load(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, uint64(3), loaded[0].Version)
	require.Len(t, loaded, shortHistory+1)
	again, err := (&SchemaFile{path: path}).Load(t.Context(), longHistory+200)
	require.NoError(t, err)
	require.Equal(t, loaded, again)
}
