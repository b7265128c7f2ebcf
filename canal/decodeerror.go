package canal

import (
	"fmt"
	"strings"
)

// SchemaError says that a table's rows cannot be read with certainty: what is known
// of the table does not fit the rows, or too little is known. Nothing was skipped.
type SchemaError struct {
	Database string
	Table    string
	Column   string // empty where it is not about one
	Problem  string // what does not fit
	Remedy   string // what an operator can do
}

func (e *SchemaError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema of table %s.%s", e.Database, e.Table)
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %s", e.Column)
	}
	b.WriteString(": " + e.Problem)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// DecodeError says where in the binlog bytes could not be read as a row.
type DecodeError struct {
	Where    string // GTID, or file:offset of an anonymous transaction
	Database string
	Table    string
	Column   string // empty where it is not about one
	Type     string // of the column, with its length or precision
	Err      error
}

func (e *DecodeError) Error() string {
	var b strings.Builder
	b.WriteString("decode ")
	if e.Table != "" {
		fmt.Fprintf(&b, "a row of table %s.%s", e.Database, e.Table)
	} else {
		b.WriteString("rows")
	}
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %s %s", e.Column, e.Type)
	}
	fmt.Fprintf(&b, ", in transaction %s: %v", e.Where, e.Err)
	return b.String()
}

func (e *DecodeError) Unwrap() error { return e.Err }
