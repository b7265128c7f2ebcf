package canal

import (
	"fmt"
	"slices"
	"strings"
)

// Schema is what a table map without full metadata does not say of a table, in the words of
// information_schema. It does not change once it is made: tables that look alike share one.
type Schema struct {
	// Charset is the table's default character set, which text columns get that name none.
	Charset string
	Columns []SchemaColumn
	// PrimaryKey names columns in key order; empty without a primary key.
	PrimaryKey []string
	// Unique are the other unique keys, in the server's order. UniqueKnown is false where they, or their order, are not known; then it
	// is empty.
	Unique      []UniqueKey
	UniqueKnown bool
	// RowEnd names the column of a system-versioned table (MariaDB) that is declared as ROW END; empty where there is none, or where
	// MariaDB adds it on its own.
	RowEnd string
}

// SchemaColumn is one column of a Schema.
type SchemaColumn struct {
	Name      string
	Type      string // COLUMN_TYPE: "int unsigned", "varchar(10)", "enum('a','b')"
	Charset   string // of text, ENUM and SET; empty for others
	Invisible bool
	NotNull   bool
	Virtual   bool // generated, and computed when it is read
}

// alike reports whether rows of both are read the same way.
func (s *Schema) alike(o *Schema) bool {
	return s.RowEnd == o.RowEnd && slices.EqualFunc(s.Key(), o.Key(), strings.EqualFold) &&
		slices.EqualFunc(s.Columns, o.Columns, func(a, b SchemaColumn) bool {
			return a.Name == b.Name && a.Charset == b.Charset && a.Invisible == b.Invisible && sameType(a.Type, b.Type)
		})
}

// sameType reports whether two types are one but for display widths, which MySQL shows or not
// by version.
func sameType(a, b string) bool {
	x, errX := parseColumnType(a)
	y, errY := parseColumnType(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.base == y.base && x.unsigned == y.unsigned && x.compressed == y.compressed && slices.Equal(x.labels, y.labels) &&
		slices.Equal(x.wireTypes("binary"), y.wireTypes("binary"))
}

// schemaMisfit says where a schema does not fit the columns of a table map.
type schemaMisfit struct {
	column, problem string
}

func (e *schemaMisfit) Error() string { return e.problem }

// fit gives the table that rows with the columns of a table map belong to. when is said of the
// schema in a *schemaMisfit: the count of columns or the type of one differs.
func (s *Schema) fit(database, name string, columns []Column, when string) (*Table, error) {
	table := &Table{Database: database, Name: name, Columns: make([]Column, 0, len(columns))}
	for i := range s.Columns {
		known := &s.Columns[i]
		var c Column
		if i < len(columns) {
			c = columns[i]
		}
		typ, err := parseColumnType(known.Type)
		if err != nil {
			return nil, &schemaMisfit{known.Name, err.Error()}
		}
		c.describe(known.Name, &typ, known.Charset)
		c.Invisible, c.rowEnd = known.Invisible, known.Name == s.RowEnd
		table.Columns = append(table.Columns, c)
		if i < len(columns) && !typ.fits(&columns[i], c.Charset) {
			return nil, &schemaMisfit{known.Name, fmt.Sprintf("it is %s %s, the rows have %s in its place", typ.text, when, columns[i].typeName())}
		}
	}
	addSystemVersioning(table, columns)
	if hidden := hiddenHashes(columns, len(table.Columns)); len(table.Columns)+hidden != len(columns) {
		return nil, &schemaMisfit{"", fmt.Sprintf("it has %d columns %s, the rows have %d", len(table.Columns), when, len(columns))}
	}
	for _, name := range s.Key() {
		i := slices.IndexFunc(table.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil, &schemaMisfit{"", "its primary key names column " + name + ", which it does not have"}
		}
		table.PrimaryKey = append(table.PrimaryKey, i)
	}
	return table, nil
}

// column finds a column by its name.
func (s *Schema) column(name string) *SchemaColumn {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return &s.Columns[i]
		}
	}
	return nil
}

// clone is a copy that may be changed.
func (s *Schema) clone() *Schema {
	c := *s
	c.Columns, c.PrimaryKey, c.Unique = slices.Clone(s.Columns), slices.Clone(s.PrimaryKey), slices.Clone(s.Unique)
	for i := range c.Unique {
		c.Unique[i].Parts = slices.Clone(c.Unique[i].Parts)
	}
	return &c
}

// shape is a text that only schemas have that are equal in everything.
func (s *Schema) shape() string {
	var b strings.Builder
	write := func(parts ...string) {
		for _, p := range parts {
			fmt.Fprintf(&b, "%d:%s", len(p), p)
		}
	}
	write(s.Charset)
	for i := range s.Columns {
		c := &s.Columns[i]
		write(c.Name, c.Type, c.Charset)
		fmt.Fprintf(&b, "%t%t%t", c.Invisible, c.NotNull, c.Virtual)
	}
	b.WriteByte('|')
	write(s.PrimaryKey...)
	fmt.Fprintf(&b, "|%t", s.UniqueKnown)
	for i := range s.Unique {
		key := &s.Unique[i]
		write(key.Name)
		fmt.Fprintf(&b, "%t%t", key.Hash, key.Made)
		for _, part := range key.Parts {
			write(part.Column)
			fmt.Fprintf(&b, "(%d)", part.Prefix)
		}
	}
	if s.RowEnd != "" {
		b.WriteByte('|')
		write(s.RowEnd)
	}
	return b.String()
}

// schemaPool lets tables that look alike share one Schema: thousands of shards cost little.
type schemaPool map[string]*Schema

func (p schemaPool) share(s *Schema) *Schema {
	shape := s.shape()
	if known := p[shape]; known != nil {
		return known
	}
	p[shape] = s
	return s
}
