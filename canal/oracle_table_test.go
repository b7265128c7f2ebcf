package canal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oracleTable has the columns id, v0, v1, … (one per case) and rest, which no statement names.
type oracleTable struct {
	name  string
	cases []oracleCase
}

const (
	oracleValues = 36  // random values per type, row image and metadata setting
	restShown    = "7" // what column rest holds
)

func (table *oracleTable) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id INT PRIMARY KEY", table.name)
	for i, c := range table.cases {
		fmt.Fprintf(&b, ", v%d %s", i, c.ddl)
	}
	b.WriteString(", rest INT DEFAULT " + restShown + ")")
	return b.String()
}

// literals are what the rows hold: one slice per row. Each column has its edges, NULL and random values, in random order.
func (table *oracleTable) literals(r *rand.Rand) [][]string {
	count := 0
	for _, c := range table.cases {
		count = max(count, oracleValues+len(c.edges)+1)
	}
	rows := make([][]string, count)
	for i := range rows {
		rows[i] = make([]string, len(table.cases))
	}
	for column, c := range table.cases {
		literals := append([]string{"NULL"}, c.edges...)
		for i := 0; len(literals) < count; i++ {
			if c.literal == nil {
				literals = append(literals, c.edges[i%len(c.edges)])
			} else {
				literals = append(literals, c.literal(r))
			}
		}
		r.Shuffle(count, func(i, j int) { literals[i], literals[j] = literals[j], literals[i] })
		for i := range rows {
			rows[i][column] = literals[i]
		}
	}
	return rows
}

// oracleRows are rows that were inserted, updated and deleted, with what the server showed of them in between.
type oracleRows struct {
	table        *oracleTable
	image        rowImage
	literals     [][]string
	updated      []bool             // columns that the update sets, by case
	first        map[int64][]string // by id and case, after the insert
	second       map[int64][]string // after the update
	transactions []*Transaction
}

// write makes the rows of one table with one row image and reads their transactions.
func (o *oracle) write(t *testing.T, table *oracleTable, image rowImage) *oracleRows {
	w := &oracleRows{table: table, image: image, literals: table.literals(o.random), updated: make([]bool, len(table.cases))}
	names, sets := make([]string, len(table.cases)), []string(nil)
	always := o.random.IntN(len(table.cases))
	for i := range table.cases {
		names[i] = fmt.Sprintf("v%d", i)
		if w.updated[i] = i == always || o.random.IntN(2) == 0; w.updated[i] {
			sets = append(sets, fmt.Sprintf("a.v%d=b.v%d", i, i))
		}
	}
	values := make([]string, len(w.literals))
	for i, row := range w.literals {
		values[i] = fmt.Sprintf("(%d,(%s))", i+1, strings.Join(row, "),("))
	}
	all := strings.Join(names, ",")
	prelude := o.prelude() + "SET SESSION binlog_row_image=" + image.name + "; "

	o.server.Exec(t, prelude+"INSERT INTO "+table.name+" (id,"+all+") VALUES "+strings.Join(values, ","))
	w.first = o.show(t, table)
	// The values change places: each row gets another row's.
	o.server.Exec(t, prelude+fmt.Sprintf("UPDATE %[1]s a JOIN (SELECT id,%[2]s FROM %[1]s) b ON b.id=%[3]d-a.id SET %[4]s",
		table.name, all, len(values)+1, strings.Join(sets, ",")))
	w.second = o.show(t, table)
	o.server.Exec(t, prelude+"DELETE FROM "+table.name)

	commits := 0
	o.reading.until("the transactions of table "+table.name, func() bool {
		for _, transaction := range o.reading.transactions[o.read:] {
			if len(transaction.events) == 0 && transaction.Piece == 0 {
				continue // DDL
			}
			w.transactions = append(w.transactions, transaction)
			if transaction.Last {
				commits++
			}
		}
		o.read = len(o.reading.transactions)
		return commits == 3
	})
	return w
}

var columnV = regexp.MustCompile(`\bv\b`)

// show asks the server for all values.
func (o *oracle) show(t *testing.T, table *oracleTable) map[int64][]string {
	var b strings.Builder
	b.WriteString("SELECT id")
	for i, c := range table.cases {
		shown := c.shown
		if shown == "" {
			shown = "CAST(v AS CHAR)"
		}
		fmt.Fprintf(&b, ", COALESCE(%s, 'NULL')", columnV.ReplaceAllString(shown, fmt.Sprintf("v%d", i)))
	}
	b.WriteString(" FROM " + o.database + "." + table.name)
	conn, err := o.server.DB().Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "SET NAMES utf8mb4, time_zone='+00:00', sql_mode=''")
	require.NoError(t, err)
	rows, err := conn.QueryContext(t.Context(), b.String())
	require.NoError(t, err)
	defer rows.Close()
	all := map[int64][]string{}
	for rows.Next() {
		var id int64
		texts := make([]string, len(table.cases))
		targets := []any{&id}
		for i := range texts {
			targets = append(targets, &texts[i])
		}
		require.NoError(t, rows.Scan(targets...))
		for i, c := range table.cases {
			if c.normal != nil && texts[i] != "NULL" {
				texts[i] = c.normal(texts[i])
			}
		}
		all[id] = texts
	}
	require.NoError(t, rows.Err())
	return all
}

// compare reads the transactions and compares each value of each image with what was shown of it.
func (o *oracle) compare(t *testing.T, w *oracleRows) {
	t.Helper()
	seen := map[Op]map[int64]bool{Insert: {}, Update: {}, Delete: {}}
	for _, transaction := range w.transactions {
		rows := o.decoder.Rows(context.WithoutCancel(t.Context()), transaction)
		for rows.Next() {
			row := rows.Row()
			switch row.Op {
			case Insert:
				id := row.After[0].Int()
				o.compareImage(t, w, row, row.After, afterInsert, w.first[id])
				seen[Insert][id] = true
			case Update:
				id := row.Before[0].Int()
				o.compareImage(t, w, row, row.Before, beforeUpdate, w.first[id])
				o.compareImage(t, w, row, row.After, afterUpdate, w.second[id])
				seen[Update][id] = true
			case Delete:
				id := row.Before[0].Int()
				o.compareImage(t, w, row, row.Before, beforeDelete, w.second[id])
				seen[Delete][id] = true
			default:
				t.Fatalf("table %s: %s of a row", w.table.name, row.Op)
			}
		}
		require.NoErrorf(t, rows.Err(), "table %s: %s", w.table.name, w.table.create())
	}
	require.Len(t, seen[Insert], len(w.literals))
	require.Len(t, seen[Delete], len(w.literals))
	for id := range w.first {
		// An update that changes nothing is not in the binlog.
		require.Truef(t, seen[Update][id] || slices.Equal(w.first[id], w.second[id]), "the update of row %d of table %s is missing", id, w.table.name)
	}
}

// compareImage compares one image of a row; want is what was shown, by case.
func (o *oracle) compareImage(t *testing.T, w *oracleRows, row *Row, image []Value, at imagePlace, want []string) {
	t.Helper()
	require.Len(t, image, len(w.table.cases)+2)
	require.Len(t, want, len(w.table.cases))
	require.Equal(t, w.image.carries(at, imageColumn{key: true, named: true}), image[0].Kind == KindInt, "%s, %s: column id", w.image.name, at)
	for i, c := range w.table.cases {
		v := image[1+i]
		shape := &row.Table.Columns[1+i]
		if o.types != nil {
			require.Contains(t, o.types, shape.Type)
		}
		carried := w.image.carries(at, imageColumn{blob: isBlob(shape), named: at == afterInsert || w.updated[i]})
		if problem := c.differs(v, want[i], carried); problem != "" {
			t.Fatalf("%s, row image %s, %s, row %d of the transaction: %s", c.ddl, w.image.name, at, row.Ordinal, problem)
		}
		if carried {
			o.compared++
		}
	}
	rest := oracleCase{kind: KindInt}
	require.Empty(t, rest.differs(image[len(image)-1], restShown, w.image.carries(at, imageColumn{})), "%s, %s: column rest", w.image.name, at)
}

// differs says how a value differs from what was shown, or is empty.
func (c *oracleCase) differs(v Value, shown string, carried bool) string {
	given := c.given
	if given == nil {
		given = asText
	}
	switch {
	case !carried && v.Kind == KindAbsent:
		return ""
	case !carried:
		return fmt.Sprintf("is of kind %d, and should not be there", v.Kind)
	case v.Kind == KindNull && shown == "NULL":
		return ""
	case v.Kind != c.kind:
		return fmt.Sprintf("is of kind %d instead of %d; SELECT shows %.200q", v.Kind, c.kind, shown)
	}
	if text := given(v); text != shown {
		return fmt.Sprintf("is %.200q; SELECT shows %.200q", text, shown)
	}
	return ""
}
