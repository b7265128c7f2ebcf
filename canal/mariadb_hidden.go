package canal

import (
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// MariaDB keeps columns that neither SELECT * nor information_schema shows, and puts them
// at the end of its rows: row_start and row_end of a table WITH SYSTEM VERSIONING, then
// a hash for each unique key over a BLOB. The former can be selected by name and are given; the
// latter are nobody's data and are left out.

// systemVersioning names the columns of a table that declares none of its own for them.
var systemVersioning = [...]string{"row_start", "row_end"}

// hideMariaDBColumns does for a table with full metadata what information_schema does.
func hideMariaDBColumns(t *Table) {
	for n := len(t.Columns); n > 0; n-- {
		c := &t.Columns[n-1]
		if c.Type != mysql.MYSQL_TYPE_LONGLONG || !isHashName(c.Name) {
			t.Columns = t.Columns[:n]
			break
		}
	}
	first := len(t.Columns) - len(systemVersioning)
	if first < 0 || !isSystemVersioning(t.Columns[first:]) {
		return
	}
	for i := range systemVersioning {
		t.Columns[first+i].Invisible = true
	}
}

func isHashName(name string) bool {
	const prefix = "DB_ROW_HASH_"
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return false
	}
	_, err := strconv.ParseUint(name[len(prefix):], 10, 16)
	return err == nil
}

// isSystemVersioning reports whether two columns may be row_start and row_end; names count
// where they are known.
func isSystemVersioning(columns []Column) bool {
	for i, name := range systemVersioning {
		c := &columns[i]
		if c.Type != mysql.MYSQL_TYPE_TIMESTAMP2 || c.Meta != 6 || c.Name != "" && c.Name != name {
			return false
		}
	}
	return true
}

// hiddenHashes is the number of columns of the table map, after the known ones, that can be
// nothing but hashes of unique keys.
func hiddenHashes(columns []Column, known int) int {
	n := 0
	for _, c := range columns[min(known, len(columns)):] {
		if c.Type != mysql.MYSQL_TYPE_LONGLONG || c.Name != "" && !isHashName(c.Name) {
			return 0
		}
		n++
	}
	return n
}

// addSystemVersioning adds row_start and row_end where the rows have two such columns behind
// the known ones.
func addSystemVersioning(table *Table, columns []Column) {
	known := len(table.Columns)
	if len(columns) < known+len(systemVersioning) || !isSystemVersioning(columns[known:]) {
		return
	}
	for i, name := range systemVersioning {
		c := columns[known+i]
		c.Name, c.SourceType, c.Invisible, c.rowEnd = name, "timestamp(6)", true, i == 1
		table.Columns = append(table.Columns, c)
	}
}

// A row of a system-versioned table is one that SELECT shows as long as its row_end is the last moment that a TIMESTAMP holds. The binlog
// has its history too: a deletion is an update of row_end, and behind an update stands an insert of the row that was. What is
// given of them is what became of the rows that SELECT shows.

// lastMoments are the ends of time of TIMESTAMP(6): up to MariaDB 11.4, and from 11.5 on where it has 64 bits.
var lastMoments = [...]string{"2038-01-19T03:14:07.999999Z", "2106-02-07T06:28:15.999999Z"}

// mayBeVersioned reports whether only the schema can tell if a table with full metadata is system-versioned: where a last
// part of its key, or any column where it has no key, could be the end of a row's time.
func (t *Table) mayBeVersioned() bool {
	couldEnd := func(c *Column) bool { return c.Type == mysql.MYSQL_TYPE_TIMESTAMP2 && c.Meta == 6 && !c.Nullable }
	if n := len(t.PrimaryKey); n > 0 && couldEnd(&t.Columns[t.PrimaryKey[n-1]]) || t.implicitlyVersioned() {
		return true
	} else if n > 0 {
		return false
	}
	for i := range t.Columns {
		if couldEnd(&t.Columns[i]) {
			return true
		}
	}
	return false
}

// implicitlyVersioned reports whether the last two columns look like those that MariaDB adds on its own.
func (t *Table) implicitlyVersioned() bool {
	first := len(t.Columns) - len(systemVersioning)
	return first >= 0 && isSystemVersioning(t.Columns[first:]) && t.Columns[first].Name != "" && t.Columns[first].Invisible
}

// findRowEnd notes which column is the end of a row's time, as the schema says it. It takes what hideMariaDBColumns did back where the
// schema has two columns of these names: then they are ordinary ones.
func (t *Table) findRowEnd(schema *Schema) {
	last := len(t.Columns) - 1
	for i := range t.Columns {
		t.Columns[i].rowEnd = schema.RowEnd != "" && t.Columns[i].Name == schema.RowEnd
	}
	if schema.RowEnd == "" && t.implicitlyVersioned() {
		hidden := schema.column(systemVersioning[1]) == nil
		t.Columns[last-1].Invisible, t.Columns[last].Invisible, t.Columns[last].rowEnd = hidden, hidden, hidden
	}
}

// settleRowEnd takes the end of a row's time out of the key, of which it is part in every such table: it does not say which row it is.
func (t *tableMap) settleRowEnd(table *Table) {
	for i := range table.Columns {
		if table.Columns[i].rowEnd {
			t.rowEnd = i + 1
			table.PrimaryKey = slices.DeleteFunc(slices.Clone(table.PrimaryKey), func(part int) bool { return part == i })
		}
	}
}

// asSelected turns the row that was just read of a system-versioned table into what SELECT shows of it, and reports whether that is
// anything.
func (r *Row) asSelected(rowEnd int) bool {
	history := func(values []Value) bool {
		v := &values[rowEnd-1]
		return v.Kind == KindInstant && string(v.Bytes) != lastMoments[0] && string(v.Bytes) != lastMoments[1]
	}
	switch {
	case len(r.Before) > 0 && history(r.Before):
		return false
	case len(r.After) == 0 || !history(r.After):
		return true
	case r.Op == Update:
		r.Op, r.After = Delete, nil
		return true
	}
	return false
}
