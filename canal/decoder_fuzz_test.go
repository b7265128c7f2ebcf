package canal

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata/events holds transactions as MySQL and MariaDB sent them, an event in hexadecimal a
// line; see TestCapturedEvents.
func capturedEvents(tb testing.TB) (all []*Transaction) {
	tb.Helper()
	files, err := filepath.Glob("testdata/events/*.hex")
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		transaction := &Transaction{File: filepath.Base(file)}
		if strings.HasPrefix(transaction.File, "mariadb") {
			transaction.GTID.Flavor = MariaDB
		}
		for line := range strings.Lines(string(text)) {
			event, err := hex.DecodeString(strings.TrimSpace(line))
			require.NoError(tb, err)
			transaction.events = append(transaction.events, event)
		}
		all = append(all, transaction)
	}
	return all
}

// anySchema knows no table: it gives what the table map says, with invented names.
type anySchema struct{}

func (anySchema) Table(_ context.Context, database, name string, columns []Column) (*Table, error) {
	t := &Table{Database: database, Name: name, Columns: columns}
	for i := range t.Columns {
		c := &t.Columns[i]
		c.Charset = "gbk"
		c.Labels = []string{"a", "b", "c"}
		c.fraction = uint8(i % 8)
	}
	return t, nil
}

// FuzzRows: whatever bytes come as table map and rows events, the decoder ends with rows or
// an error, and takes no more memory than they justify.
func FuzzRows(f *testing.F) {
	for _, t := range capturedEvents(f) {
		for _, e := range t.events[1:] {
			f.Add(t.events[0], e, t.GTID.Flavor == MariaDB)
		}
	}
	f.Fuzz(func(t *testing.T, tableMap, rows []byte, mariaDB bool) {
		if len(tableMap) < headerSize || len(rows) < headerSize || !isRowsEvent(rawEvent(rows).kind()) || len(rows) > 1<<20 {
			return // the source hands on nothing of this form
		}
		tableMap[4] = 19
		for _, policy := range []InvalidText{ReplaceInvalidText, StopOnInvalidText} { // updates are read differently
			readAnything(t, policy, mariaDB, tableMap, rows)
		}
	})
}

func readAnything(t *testing.T, policy InvalidText, mariaDB bool, events ...[]byte) {
	transaction := &Transaction{events: events, out: make(chan ordinals, 1)}
	if mariaDB {
		transaction.GTID.Flavor = MariaDB
	}
	decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: anySchema{}, InvalidText: policy})
	cursor := decoder.Rows(t.Context(), transaction)
	if cursor.Err() != nil {
		return
	}
	counted := <-transaction.out
	places := uint64(0)
	for cursor.Next() {
		places = cursor.Row().Place
	}
	if cursor.Err() == nil && places != counted.place {
		t.Fatalf("%d rows counted, %d given", counted.place, places)
	}
}

func FuzzTableMap(f *testing.F) {
	for _, t := range capturedEvents(f) {
		f.Add(t.events[0][headerSize:])
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _, _, rest, err := tableMapNames(body)
		if err != nil {
			return
		}
		columns, optional, err := tableMapColumns(rest)
		if err != nil {
			return
		}
		_, _ = readOptionalMeta(columns, optional, MariaDB)
		for i := range columns {
			if f, err := newField(&columns[i]); err == nil {
				_ = f.complete(&columns[i])
			}
		}
	})
}

func FuzzJSONBinary(f *testing.F) {
	f.Add([]byte{0, 1, 0, 13, 0, 11, 0, 1, 0, 5, 1, 0, 'a'}, []byte{0, 3, '$', '.', 'a', 3, 5, 2, 0})
	f.Add([]byte{2, 1, 0, 7, 0, 5, 1, 0}, []byte{1, 4, '$', '[', '0', ']', 3, 5, 2, 0, 2, 4, '$', '[', '1', ']'})
	f.Fuzz(func(t *testing.T, document, diffs []byte) {
		text, err := appendJSON(nil, document)
		// Parts may be used more than once, but a document of 64 KB cannot mean gigabytes.
		if err == nil && len(document) < 1<<10 && len(text) > 64<<20 {
			t.Fatalf("%d bytes from %d", len(text), len(document))
		}
		_, _ = appendJSONDiffs(nil, document, diffs)
	})
}

func FuzzGeometry(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x40"))
	f.Add([]byte("\x00\x00\x00\x00\x01\x07\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = appendGeoJSON(nil, b) })
}
