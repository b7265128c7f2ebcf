package canal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reading rows allocates nothing once a decoder has seen rows of their size.
func TestRowsAreReadWithoutAllocations(t *testing.T) {
	transaction := mixed(t)
	for name, decoder := range map[string]*Decoder{"captured": capturing("a", "b"), "other tables": capturing("none")} {
		read := func() {
			rows := decoder.Rows(t.Context(), transaction)
			for rows.Next() {
				_ = rows.Row()
			}
			require.NoError(t, rows.Err())
		}
		read()
		require.Zero(t, testing.AllocsPerRun(100, read), name)
	}
}

// The cache finds what was added, keeps what is asked for, and stays within its bounds.
func TestTableCacheIsBounded(t *testing.T) {
	const limit, perTable = 1 << 20, 1000
	cache := newTableCache(limit)
	always := []byte("always asked for")
	cache.add(always, &tableMap{name: "always"})
	for i := range 10 * limit / perTable {
		body := fmt.Appendf(nil, "%d%s", i, strings.Repeat("x", perTable))
		cache.add(body, &tableMap{id: uint64(i)})
		require.EqualValues(t, i, cache.find(body).id)
		require.Equal(t, "always", cache.find(always).name)
		require.LessOrEqual(t, (len(cache.young)+len(cache.old))*perTable, limit)
	}
	require.Nil(t, cache.find([]byte("never added")))
}

// Damaged binary JSON whose values share bytes must not become exponentially much text.
func TestJSONWithSharedBytesIsRefused(t *testing.T) {
	// Arrays of two, both the array behind them; the last is empty.
	var document []byte
	const levels = 60
	for level := range levels {
		size := (levels-level)*10 + 4
		document = append(document, 2, 0, byte(size), byte(size>>8), jsonSmallArray, 10, 0, jsonSmallArray, 10, 0)
	}
	document = append(document, 0, 0, 4, 0)
	_, err := appendJSON(nil, append([]byte{jsonSmallArray}, document...))
	require.ErrorIs(t, err, errJSONShared)
}

// A rows event whose rows take no bytes would never end.
func TestRowsOfNoBytes(t *testing.T) {
	tableMap := append(make([]byte, headerSize), 1, 0, 0, 0, 0, 0, 0, 0, 1, 'd', 0, 1, 't', 0, 1, 3, 0, 0, metaColumnName, 2, 1, 'c')
	tableMap[4] = 19
	rows := append(make([]byte, headerSize), 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0)
	rows[4] = 30
	cursor := capturing("t").Rows(t.Context(), &Transaction{File: "binlog.000001", Start: 4, events: [][]byte{tableMap, rows}})
	require.False(t, cursor.Next())
	require.ErrorIs(t, cursor.Err(), errRowEmpty)
	require.ErrorContains(t, cursor.Err(), "decode a row of table d.t, in transaction binlog.000001:4")
}

// A value that an update did not change is read once for both images; where invalid text is replaced and counted, each is
// read. Both ways give the same rows.
func TestUnchangedValuesAreReadOnce(t *testing.T) {
	for _, transaction := range capturedEvents(t) {
		options := DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: anySchema{}}
		once := allRows(t, NewDecoder(options), transaction)
		options.InvalidText = ReplaceInvalidText
		require.Equal(t, allRows(t, NewDecoder(options), transaction), once)
		require.Contains(t, strings.Join(once, "\n"), " update ")
	}
}
