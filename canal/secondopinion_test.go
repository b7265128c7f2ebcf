package canal

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// A second opinion: go-mysql decodes the same events. Where it gives another value, the
// difference is a known one, and each known one occurs. The oracle has the last word: what is compared here is first compared
// with what SELECT shows.
func TestSecondOpinion(t *testing.T) {
	found := map[string]int{}
	for _, server := range oracleServers() {
		for _, metadata := range []string{"FULL", server.metadata[len(server.metadata)-1]} {
			t.Run(server.name+"/metadata="+metadata, func(t *testing.T) {
				s := server.start(t)
				undecoded, others := undecodedCases(server.allCases())
				second := newSecondOpinion(t, s, found)
				for _, cases := range [][]oracleCase{others, undecoded} {
					if len(cases) == 0 {
						continue
					}
					o := newOracle(t, s, metadata, cases)
					for _, table := range o.tables {
						for _, image := range []rowImage{imageFull, imageMinimal} {
							w := o.write(t, table, image)
							o.compare(t, w)
							second.compare(o, w.transactions)
						}
					}
				}
				t.Logf("%d values compared", second.compared)
				require.Greater(t, second.compared, 1000)
			})
		}
		if server.name != "mysql" {
			t.Run(server.name+"/old temporal formats", func(t *testing.T) { secondOpinionOnOldTemporals(t, server.start(t), found) })
		}
	}
	t.Run("partial JSON", func(t *testing.T) { secondOpinionOnPartialJSON(t, testenv.MySQL(t), found) })

	documented := documentedDifferences(t)
	for _, d := range differences {
		t.Logf("%7d × %s", found[d.name], d.name)
		require.NotZerof(t, found[d.name], "the difference %q does not occur any more: take it out, of docs/DECODING.md too", d.name)
		require.Contains(t, documented, d.name, "docs/DECODING.md lacks it")
	}
	require.Len(t, documented, len(differences), "docs/DECODING.md has differences that no test looks for")
}

// undecodedCases are those whose rows go-mysql does not decode at all: they have tables of their own, lest the
// others' values are lost to the comparison.
func undecodedCases(cases []oracleCase) (undecoded, others []oracleCase) {
	for _, c := range cases {
		if strings.Contains(c.ddl, "COMPRESSED") {
			undecoded = append(undecoded, c)
		} else {
			others = append(others, c)
		}
	}
	return undecoded, others
}

// documentedDifferences are the names in the table of docs/DECODING.md.
func documentedDifferences(t *testing.T) (names []string) {
	text, err := os.ReadFile("../docs/DECODING.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "## Differences from go-mysql's decoder")
	require.True(t, ok)
	for _, row := range regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|`).FindAllStringSubmatch(section, -1) {
		names = append(names, row[1])
	}
	return names
}

// secondOpinion compares this package's rows with those of go-mysql's parser, whose options are set to lose as little as they can.
type secondOpinion struct {
	t        *testing.T
	parser   *replication.BinlogParser
	found    map[string]int // differences by name
	compared int
}

func newSecondOpinion(t *testing.T, s *testenv.Server, found map[string]int) *secondOpinion {
	parser := replication.NewBinlogParser()
	parser.SetFlavor(s.Flavor)
	parser.SetTimestampStringLocation(time.UTC)
	parser.SetRenderJSONAsMySQLText(true)
	_, err := parser.Parse(formatDescription(t, s))
	require.NoError(t, err)
	return &secondOpinion{t: t, parser: parser, found: found}
}

// theirImage is a row image as go-mysql gives it.
type theirImage struct {
	values []any
	absent []int
}

// compare decodes transactions with both decoders and compares them image by image. Those that go-mysql ends with an error count
// as one difference each.
func (s *secondOpinion) compare(o *oracle, transactions []*Transaction) {
	for _, transaction := range transactions {
		theirs, err := s.theirs(transaction)
		rows := o.decoder.Rows(s.t.Context(), transaction)
		for rows.Next() {
			row := rows.Row()
			if err != nil {
				s.explain(row.Table.Name, cell{table: row.Table, err: err})
				break
			}
			for _, image := range [][]Value{row.Before, row.After} {
				if image == nil {
					continue
				}
				require.NotEmpty(s.t, theirs, "go-mysql gives fewer images")
				s.compareImage(row.Table, image, theirs[0])
				theirs = theirs[1:]
			}
		}
		require.NoError(s.t, rows.Err())
		require.Empty(s.t, theirs, "go-mysql gives more images")
	}
}

// theirs are all row images of a transaction, in order.
func (s *secondOpinion) theirs(transaction *Transaction) (images []theirImage, err error) {
	for _, e := range sizedEvents([]*Transaction{transaction}) {
		parsed, err := s.parser.Parse(e)
		if err != nil {
			return nil, err
		}
		if rows, ok := parsed.Event.(*replication.RowsEvent); ok {
			for i, values := range rows.Rows {
				images = append(images, theirImage{values, rows.SkippedColumns[i]})
			}
		}
	}
	return images, nil
}

func (s *secondOpinion) compareImage(table *Table, ours []Value, theirs theirImage) {
	require.Len(s.t, theirs.values, len(ours), table.Name)
	for i, v := range ours {
		c := cell{table: table, column: &table.Columns[i], ours: v, theirs: theirs.values[i]}
		require.Equal(s.t, v.Kind == KindAbsent, slices.Contains(theirs.absent, i), "column %s is absent", c.column.Name)
		if v.Kind == KindAbsent {
			continue
		}
		s.compared++
		if !c.same() {
			s.explain(c.column.typeName(), c)
		}
	}
}

// explain counts a difference under its name; one without a name fails the test.
func (s *secondOpinion) explain(what string, c cell) {
	for _, d := range differences {
		if d.explains(c) {
			s.found[d.name]++
			return
		}
	}
	if c.err != nil {
		s.t.Fatalf("%s: go-mysql cannot decode it, for a reason that is not known: %v", what, c.err)
	}
	s.t.Fatalf("%s: an unknown difference: %q of kind %d here, %q (%T) from go-mysql", what, c.ours.Bytes, c.ours.Kind, fmt.Sprint(c.theirs), c.theirs)
}

// secondOpinionOnOldTemporals: go-mysql reads MariaDB's own temporal formats as if they had no fraction.
func secondOpinionOnOldTemporals(t *testing.T, server *testenv.Server, found map[string]int) {
	setGlobal(t, server, "mysql56_temporal_format", "OFF")
	var whole, fractions []oracleCase
	for _, c := range temporalCases() {
		if strings.Contains(c.ddl, "(0)") {
			whole = append(whole, c)
		} else {
			fractions = append(fractions, c)
		}
	}
	s := newSecondOpinion(t, server, found)
	o := newOracle(t, server, "FULL", whole)
	for _, table := range o.tables {
		w := o.write(t, table, imageFull)
		o.compare(t, w)
		s.compare(o, w.transactions)
	}
	o = newOracle(t, server, "FULL", fractions)
	for _, table := range o.tables {
		w := o.write(t, table, imageFull)
		o.compare(t, w)
		for _, transaction := range w.transactions {
			theirs, err := s.theirs(transaction)
			require.True(t, err != nil || !s.agree(o, transaction, theirs), "go-mysql reads fractions in MariaDB's own formats now")
			found[oldFractions]++
		}
	}
}

// agree reports whether both decoders see the same images in a transaction.
func (s *secondOpinion) agree(o *oracle, transaction *Transaction, theirs []theirImage) bool {
	rows := o.decoder.Rows(s.t.Context(), transaction)
	same := true
	for rows.Next() {
		row := rows.Row()
		for _, image := range [][]Value{row.Before, row.After} {
			if image == nil || !same {
				continue
			}
			if len(theirs) == 0 {
				same = false
				continue
			}
			for i, v := range image {
				c := cell{table: row.Table, column: &row.Table.Columns[i], ours: v, theirs: theirs[0].values[i]}
				same = same && c.same()
			}
			theirs = theirs[1:]
		}
	}
	require.NoError(s.t, rows.Err())
	return same && len(theirs) == 0
}

// secondOpinionOnPartialJSON: of an update in parts go-mysql gives the first part, not the value.
func secondOpinionOnPartialJSON(t *testing.T, server *testenv.Server, found map[string]int) {
	database := server.Database(t)
	server.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
		"INSERT INTO "+database+`.t VALUES (1, '{"a": 1, "b": 2, "pad": "0123456789012345678901234567890123456789"}')`)
	from := here(t, server)
	server.Exec(t, "USE "+database+"; SET binlog_row_value_options=PARTIAL_JSON; UPDATE t SET j=JSON_SET(j,'$.a',10,'$.b',20)")
	transactions := rawTransactions(t, server, from, 1)
	require.Equal(t, 1, partialUpdates(transactions[0]), "the server sent the whole value")
	o := &oracle{decoder: capturing("t")}
	require.Contains(t, allRows(t, o.decoder, transactions...)[0], `{"a":10,"b":20,`)
	newSecondOpinion(t, server, found).compare(o, transactions)
}
