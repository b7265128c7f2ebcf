package canal

import (
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
	// row_end is part of every key of such a table, but not of what its rows stand for.
	if last := len(t.PrimaryKey) - 1; last >= 0 && t.PrimaryKey[last] == len(t.Columns)-1 {
		t.PrimaryKey = t.PrimaryKey[:last]
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
		c.Name, c.SourceType, c.Invisible = name, "timestamp(6)", true
		table.Columns = append(table.Columns, c)
	}
}
