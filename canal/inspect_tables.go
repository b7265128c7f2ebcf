package canal

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// TableInfo is a table as it is now, for checks and for `init`.
type TableInfo struct {
	Database   string
	Name       string
	Columns    []string
	PrimaryKey []string // columns in key order, of the unique key that stands in for it where there is none; empty without either
	Rows       uint64   // the server's estimate
	RowBytes   uint64   // the server's estimate of a row's length
	// Cascades are the foreign keys of the table by which a change of a parent row
	// changes or deletes rows of this table, as "child_ibfk_1 (ON DELETE CASCADE of orders)".
	Cascades []string
	// References are the table's foreign keys, in the order of their names.
	References []Reference

	schema Schema // as far as it matters for types and keys
}

// Reference is a foreign key: columns, and those of another table that they refer to, in the same order.
type Reference struct {
	Name            string
	Columns         []string
	Database, Table string
	Referenced      []string
}

// Table is the table as rows that are written now come with it. Of a column whose type this version of binlogd does not
// know, it has the name alone.
func (t TableInfo) Table() *Table {
	table := &Table{Database: t.Database, Name: t.Name}
	for i := range t.schema.Columns {
		c := &t.schema.Columns[i]
		column, err := NewColumn(c.Name, c.Type, c.Charset)
		if err != nil {
			column = Column{Name: c.Name, SourceType: c.Type}
		}
		table.Columns = append(table.Columns, column)
	}
	for _, name := range t.PrimaryKey {
		table.PrimaryKey = append(table.PrimaryKey, slices.Index(t.Columns, name))
	}
	return table
}

// Shape is a text that tables have in common whose columns and primary keys are the same.
func (t TableInfo) Shape() string { return fmt.Sprintf("%v %q", t.schema.Columns, t.PrimaryKey) }

// FullName is database.table.
func (t TableInfo) FullName() string { return t.Database + "." + t.Name }

// Tables lists the base tables that the account may see, system databases aside, in the
// order of their names. It takes a few statements however many tables there are, and one
// more for each table with foreign keys.
func (i *Inspector) Tables(ctx context.Context) ([]TableInfo, error) {
	const systemDatabases = "('mysql', 'sys', 'information_schema', 'performance_schema')"
	r, err := ask(ctx, i.conn, `SELECT TABLE_SCHEMA, TABLE_NAME, COALESCE(TABLE_ROWS, 0), COALESCE(AVG_ROW_LENGTH, 0)
		FROM information_schema.TABLES
		WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN `+systemDatabases+`
		ORDER BY TABLE_SCHEMA, TABLE_NAME`)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	tables := make([]TableInfo, len(r.rows))
	index := make(map[[2]string]*TableInfo, len(r.rows))
	for n, row := range r.rows {
		t := TableInfo{Database: row[0], Name: row[1]}
		t.Rows, _ = strconv.ParseUint(row[2], 10, 64)
		t.RowBytes, _ = strconv.ParseUint(row[3], 10, 64)
		tables[n] = t
		index[[2]string{t.Database, t.Name}] = &tables[n]
	}

	r, err = ask(ctx, i.conn, `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), IS_NULLABLE, EXTRA FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA NOT IN `+systemDatabases+`
		ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION`)
	if err != nil {
		return nil, fmt.Errorf("list the columns: %w", err)
	}
	for _, row := range r.rows {
		if t := index[[2]string{row[0], row[1]}]; t != nil {
			t.Columns = append(t.Columns, row[2])
			t.schema.Columns = append(t.schema.Columns, SchemaColumn{
				Name: row[2], Type: row[3], Charset: row[4], NotNull: row[5] == "NO", Virtual: strings.Contains(strings.ToUpper(row[6]), "VIRTUAL"),
			})
		}
	}

	r, err = ask(ctx, i.conn, `SELECT TABLE_SCHEMA, TABLE_NAME, `+keyColumns+` FROM information_schema.STATISTICS
		WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA NOT IN `+systemDatabases+`
		ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX`)
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	for _, row := range r.rows {
		if t := index[[2]string{row[0], row[1]}]; t != nil {
			t.schema.addKeyPart(row[2], row[3], row[4], row[5])
		}
	}
	for n := range tables {
		t := &tables[n]
		if err := t.schema.orderUnique(ctx, i.conn, tableName{t.Database, t.Name}); err != nil {
			return nil, err
		}
		t.PrimaryKey = t.schema.Key()
	}

	// REFERENTIAL_CONSTRAINTS would tell the rules, but not to an account with SELECT only.
	r, err = ask(ctx, i.conn, `SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
		FROM information_schema.KEY_COLUMN_USAGE
		WHERE REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA NOT IN `+systemDatabases+`
		ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION`)
	if err != nil {
		return nil, fmt.Errorf("list the foreign keys: %w", err)
	}
	var referring []*TableInfo
	for _, row := range r.rows {
		t := index[[2]string{row[0], row[1]}]
		if t == nil {
			continue
		}
		if len(t.References) == 0 {
			referring = append(referring, t)
		}
		if n := len(t.References); n == 0 || t.References[n-1].Name != row[2] {
			t.References = append(t.References, Reference{Name: row[2], Database: row[4], Table: row[5]})
		}
		key := &t.References[len(t.References)-1]
		key.Columns, key.Referenced = append(key.Columns, row[3]), append(key.Referenced, row[6])
	}
	for _, t := range referring {
		definition, err := ask(ctx, i.conn, "SHOW CREATE TABLE "+quoteName(t.Database)+"."+quoteName(t.Name))
		if accountLacks(err) {
			continue // visible, not readable: nothing is known of its keys
		}
		if err != nil {
			return nil, fmt.Errorf("read the foreign keys of %s: %w", t.FullName(), err)
		}
		t.Cascades = cascades(definition.value(0, "create table"))
	}
	return tables, nil
}

// Values gives up to limit different values of a column, in their order, as far as the first rows of the table have them; NULL is none.
func (i *Inspector) Values(ctx context.Context, t TableInfo, column string, limit int) ([]string, error) {
	r, err := ask(ctx, i.conn, fmt.Sprintf("SELECT DISTINCT v FROM (SELECT %s AS v FROM %s.%s LIMIT 10000) AS some WHERE v IS NOT NULL ORDER BY v LIMIT %d",
		quoteName(column), quoteName(t.Database), quoteName(t.Name), limit))
	if err != nil {
		return nil, fmt.Errorf("look at column %s of %s: %w", column, t.FullName(), err)
	}
	var values []string
	for _, row := range r.rows {
		values = append(values, row[0])
	}
	return values, nil
}

// Databases lists the databases that the account may see, with and without tables.
func (i *Inspector) Databases(ctx context.Context) ([]string, error) {
	r, err := ask(ctx, i.conn, "SHOW DATABASES")
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	names := make([]string, len(r.rows))
	for n, row := range r.rows {
		names[n] = row[0]
	}
	return names, nil
}

// foreignKey is a line of SHOW CREATE TABLE. Backticks inside names are doubled by MySQL
// and left alone by MariaDB, so the words between the names are what is looked for.
var foreignKey = regexp.MustCompile("(?m)^\\s*CONSTRAINT `(.+?)` FOREIGN KEY \\(`.+?`\\) REFERENCES (`.+?`) \\(`.+`\\)([^`]*)$")

// cascades finds the foreign keys by which the server changes rows of the table on its own.
func cascades(definition string) []string {
	var found []string
	for _, m := range foreignKey.FindAllStringSubmatch(definition, -1) {
		var on []string
		for _, rule := range []string{"ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE", "ON UPDATE SET NULL"} {
			if strings.Contains(m[3], rule) {
				on = append(on, rule)
			}
		}
		if len(on) > 0 {
			parent := strings.ReplaceAll(strings.Trim(m[2], "`"), "`.`", ".")
			found = append(found, fmt.Sprintf("%s (%s of %s)", strings.ReplaceAll(m[1], "``", "`"), strings.Join(on, ", "), strings.ReplaceAll(parent, "``", "`")))
		}
	}
	return found
}

// LogsCascades reports whether the rows that a foreign key changes are in the binlog: on
// MySQL from 9.6 on, where the server and no longer InnoDB carries the rules out.
func (i *Inspector) LogsCascades() bool { return i.atLeast("9.6.0") }

// quoteName writes an identifier.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
