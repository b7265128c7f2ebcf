package canal

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Even with full metadata, MariaDB's table maps do not tell UUID, INET6 and INET4 from
// BINARY, VECTOR from VARBINARY, or how many digits of a second its own temporal formats
// have. The schema says it, by the column's name.

// looksLikeBinary reports whether a column may be another type than the table map says.
func looksLikeBinary(c *Column) bool {
	if c.Charset != "binary" {
		return false
	}
	switch c.Type {
	case mysql.MYSQL_TYPE_STRING:
		return c.Meta == uuidSize || c.Meta == inet4Size
	case mysql.MYSQL_TYPE_VARCHAR:
		return c.Meta > 0 && c.Meta%4 == 0
	}
	return false
}

func anyLooksLikeBinary(columns []Column) bool {
	for i := range columns {
		if looksLikeBinary(&columns[i]) {
			return true
		}
	}
	return false
}

// nameMariaDBTypes sets SourceType where the table map is not enough.
func nameMariaDBTypes(t *Table, schema *Schema) (*Table, error) {
	t.findRowEnd(schema)
	for i := range t.Columns {
		c := &t.Columns[i]
		f, err := newField(c)
		if err != nil || !looksLikeBinary(c) && !f.isOldTemporal() {
			continue
		}
		typ, err := typeOfColumn(schema, c)
		switch {
		case err == nil:
			c.describe(c.Name, typ, "")
		case c.Type == mysql.MYSQL_TYPE_VARCHAR:
			// It is gone, and was far more likely VARBINARY than VECTOR.
		default:
			return nil, &SchemaError{
				Database: t.Database, Table: t.Name, Column: c.Name,
				Problem: fmt.Sprintf("the rows have %s, which may stand for several types: %s", c.typeName(), err),
				Remedy:  "bring the column back as it was until binlogd has passed these rows, or pass over them with source.start and a new checkpoint.path",
			}
		}
	}
	return t, nil
}

// typeOfColumn finds a column by its name; its type must be able to look like c.
func typeOfColumn(schema *Schema, c *Column) (*columnType, error) {
	known := schema.column(c.Name)
	if known == nil {
		return nil, fmt.Errorf("the server shows no such column to this account")
	}
	typ, err := parseColumnType(known.Type)
	if err != nil {
		return nil, err
	}
	if !typ.fits(c, known.Charset) {
		return nil, fmt.Errorf("the column is %s now", typ.text)
	}
	return &typ, nil
}
