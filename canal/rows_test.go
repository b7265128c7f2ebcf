package canal

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// written is a row as text, for comparison.
func written(r *Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s#%d %s", r.Place, r.Table.Name, r.Ordinal, r.Op)
	for _, image := range [][]Value{r.Before, r.After} {
		if image == nil {
			continue
		}
		b.WriteString(" [")
		for i, v := range image {
			if i > 0 {
				b.WriteByte(' ')
			}
			switch v.Kind {
			case KindAbsent:
				b.WriteByte('-')
			case KindNull:
				b.WriteString("NULL")
			default:
				b.WriteString(asText(v))
			}
		}
		b.WriteByte(']')
	}
	return b.String()
}

func allRows(tb testing.TB, d *Decoder, transactions ...*Transaction) (all []string) {
	tb.Helper()
	for _, t := range transactions {
		rows := d.Rows(tb.Context(), t)
		for rows.Next() {
			all = append(all, written(rows.Row()))
		}
		require.NoError(tb, rows.Err())
	}
	return all
}

func capturing(tables ...string) *Decoder {
	return NewDecoder(DecoderOptions{Captured: func(_, table string) bool { return slices.Contains(tables, table) }})
}

// mixed is a transaction over two captured tables and one that is not, with rows of all
// kinds and events of several rows each.
func mixed(t *testing.T) *Transaction {
	s := testenv.MySQL(t)
	database := s.Database(t)
	s.Exec(t, "USE "+database+"; CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10)); CREATE TABLE b (id INT PRIMARY KEY, t TEXT, n INT); CREATE TABLE c (id INT PRIMARY KEY, t TEXT, j JSON)")
	from := here(t, s)
	s.Exec(t, "USE "+database+`; BEGIN;
		INSERT INTO a VALUES (1,'x'),(2,NULL),(3,'z');
		INSERT INTO c VALUES (1,NULL,'{}'),(2,'cc',NULL);
		INSERT INTO b VALUES (1,'b',1),(2,NULL,NULL);
		UPDATE a SET v='y' WHERE id > 1;
		UPDATE c SET t='t' WHERE id = 1;
		DELETE FROM c;
		DELETE FROM a WHERE id = 1;
		UPDATE b SET n=n+1;
		COMMIT`)
	return rawTransactions(t, s, from, 1)[0]
}

var mixedRows = []string{
	"1 a#1 insert [1 x]", "2 a#2 insert [2 NULL]", "3 a#3 insert [3 z]",
	"6 b#1 insert [1 b 1]", "7 b#2 insert [2 NULL NULL]",
	"8 a#4 update [2 NULL] [2 y]", "9 a#5 update [3 z] [3 y]",
	"13 a#6 delete [1 x]",
	"14 b#3 update [1 b 1] [1 b 2]",
}

// Places and ordinals count the rows of all tables; rows of other tables are not given.
func TestRowsAreNumberedWhateverIsCaptured(t *testing.T) {
	transaction := mixed(t)
	decoder := capturing("a", "b")
	require.Empty(t, cmp.Diff(mixedRows, allRows(t, decoder, transaction)))
	require.EqualValues(t, 14, decoder.rows.LastPlace())

	onlyB := slices.DeleteFunc(slices.Clone(mixedRows), func(r string) bool { return !strings.Contains(r, "b#") })
	require.Empty(t, cmp.Diff(onlyB, allRows(t, capturing("b"), transaction)))

	decoder = capturing("d")
	require.Empty(t, allRows(t, decoder, transaction))
	require.Zero(t, decoder.rows.LastPlace(), "a transaction without captured tables is passed over")
}

// pieces cuts a transaction between any two events.
func pieces(t *Transaction, cuts ...int) []*Transaction {
	var all []*Transaction
	var chain chan ordinals
	start := 0
	for _, cut := range append(cuts, len(t.events)) {
		piece := &Transaction{GTID: t.GTID, File: t.File, Start: t.Start, Piece: len(all), events: t.events[start:cut], in: chain}
		for _, e := range t.events[:start] {
			if rawEvent(e).kind() == 19 {
				piece.tableMaps = append(piece.tableMaps, e)
			}
		}
		chain = nil
		if cut < len(t.events) {
			chain = make(chan ordinals, 1)
		}
		piece.out = chain
		all = append(all, piece)
		start = cut
	}
	return all
}

// A transaction in pieces has the rows, places and ordinals of the whole one, wherever it is cut.
func TestPiecesAreNumberedAsTheWhole(t *testing.T) {
	transaction := mixed(t)
	for first := range len(transaction.events) {
		for second := first; second < len(transaction.events); second++ {
			decoder := capturing("a", "b")
			require.Empty(t, cmp.Diff(mixedRows, allRows(t, decoder, pieces(transaction, first, second)...)))
			require.EqualValues(t, 14, decoder.rows.LastPlace())
		}
	}
}

// What goes to the next piece is sent before any row is asked for.
func TestPiecesDoNotWaitForRows(t *testing.T) {
	transaction := mixed(t)
	cut := pieces(transaction, 4, 9)
	workers := []*Decoder{capturing("a", "b"), capturing("a", "b"), capturing("a", "b")}
	var cursors []*Rows
	for i, piece := range cut {
		cursors = append(cursors, workers[i].Rows(t.Context(), piece))
	}
	var all []string
	for _, rows := range slices.Backward(cursors) {
		var own []string
		for rows.Next() {
			own = append(own, written(rows.Row()))
		}
		require.NoError(t, rows.Err())
		all = append(own, all...)
	}
	require.Empty(t, cmp.Diff(mixedRows, all))
}

// Rows that were handed on before are not given again, and keep their numbers.
func TestRowsHandedOnBeforeAreSkipped(t *testing.T) {
	transaction := mixed(t)
	for skip := range uint64(15) {
		want := slices.DeleteFunc(slices.Clone(mixedRows), func(r string) bool {
			var place uint64
			_, err := fmt.Sscan(r, &place)
			require.NoError(t, err)
			return place <= skip
		})
		cut := pieces(transaction, 5, 10)
		cut[0].in, cut[0].afresh = make(chan ordinals, 1), true
		cut[0].in <- ordinals{place: skip}
		require.Empty(t, cmp.Diff(want, allRows(t, capturing("a", "b"), cut...), cmpopts.EquateEmpty()), "skip %d", skip)
	}
}

// Row images that carry some columns leave the others absent, never NULL.
func TestRowImages(t *testing.T) {
	for _, s := range []*testenv.Server{testenv.MySQL(t), testenv.MariaDB(t)} {
		for image, want := range map[string][]string{
			"FULL": {
				"1 t#1 insert [1 1 x long]", "1 t#1 update [1 1 x long] [1 2 x long]", "1 t#1 update [1 2 x long] [1 2 x NULL]", "1 t#1 delete [1 2 x NULL]",
			},
			"MINIMAL": {
				"1 t#1 insert [1 1 x long]", "1 t#1 update [1 - - -] [- 2 - -]", "1 t#1 update [1 - - -] [- - - NULL]", "1 t#1 delete [1 - - -]",
			},
			"NOBLOB": {
				"1 t#1 insert [1 1 x long]", "1 t#1 update [1 1 x -] [1 2 x -]", "1 t#1 update [1 2 x -] [1 2 x NULL]", "1 t#1 delete [1 2 x -]",
			},
		} {
			t.Run(string(s.Flavor)+"/"+image, func(t *testing.T) {
				database := s.Database(t)
				s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), c TEXT)")
				from := here(t, s)
				s.Exec(t, "USE "+database+"; SET SESSION binlog_row_image="+image+"; INSERT INTO t VALUES (1,1,'x','long'); UPDATE t SET a=2; UPDATE t SET c=NULL; DELETE FROM t")
				require.Empty(t, cmp.Diff(want, allRows(t, capturing("t"), rawTransactions(t, s, from, 4)...)))
			})
		}
	}
}

// MariaDB's compressed rows events hold the same rows as plain ones.
func TestCompressedRowsEvents(t *testing.T) {
	for _, s := range []*testenv.Server{testenv.MariaDB(t), testenv.MariaDB118(t)} {
		s.Exec(t, "SET GLOBAL log_bin_compress=ON, log_bin_compress_min_len=10")
		defer s.Exec(t, "SET GLOBAL log_bin_compress=OFF")
		database := s.Database(t)
		s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY, a TEXT)")
		from := here(t, s)
		s.Exec(t, "USE "+database+"; INSERT INTO t VALUES (1,REPEAT('x',100)),(2,REPEAT('y',100)); UPDATE t SET a=REPEAT('z',100) WHERE id=2; DELETE FROM t")
		transactions := rawTransactions(t, s, from, 3)
		require.True(t, slices.ContainsFunc(transactions[0].events, func(e []byte) bool { return e[4] >= 166 && e[4] <= 168 }), "no compressed event")
		x, y, z := strings.Repeat("x", 100), strings.Repeat("y", 100), strings.Repeat("z", 100)
		require.Equal(t, []string{
			"1 t#1 insert [1 " + x + "]", "2 t#2 insert [2 " + y + "]", "1 t#1 update [2 " + y + "] [2 " + z + "]",
			"1 t#1 delete [1 " + x + "]", "2 t#2 delete [2 " + z + "]",
		}, allRows(t, capturing("t"), transactions...))
	}
}

// Text that is invalid in its column's character set stops with a message, or is replaced
// and counted.
func TestInvalidText(t *testing.T) {
	s := testenv.MySQL(t)
	database := s.Database(t)
	s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4)")
	from := here(t, s)
	s.Exec(t, "USE "+database+"; INSERT INTO t VALUES (1,'good text'),(2,'marker')")
	transaction := rawTransactions(t, s, from, 1)[0]
	// The server refuses such bytes today; old versions and file imports did not.
	for _, e := range transaction.events {
		if i := bytes.Index(e, []byte("marker")); i >= 0 {
			copy(e[i:], "m\xffrk\xfer")
		}
	}
	options := DecoderOptions{Captured: func(string, string) bool { return true }}
	rows := NewDecoder(options).Rows(t.Context(), transaction)
	require.True(t, rows.Next())
	require.False(t, rows.Next())
	require.EqualError(t, rows.Err(), "decode a row of table "+database+".t, column v VARCHAR(80 bytes) utf8mb4, in transaction "+transaction.GTID.String()+
		": the bytes are no text in its character set utf8mb4 (2 places in 6 bytes); change the value, or write source.invalid_text: replace")

	options.InvalidText = ReplaceInvalidText
	decoder := NewDecoder(options)
	require.Equal(t, []string{"1 t#1 insert [1 good text]", "2 t#2 insert [2 m\ufffdrk\ufffdr]"}, allRows(t, decoder.Clone(), transaction))
	require.EqualValues(t, 1, decoder.ReplacedText())
}
