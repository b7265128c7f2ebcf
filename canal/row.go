package canal

// Op is the kind of a row change.
type Op uint8

const (
	Insert Op = iota + 1
	Update
	Delete
)

func (o Op) String() string {
	switch o {
	case Insert:
		return "insert"
	case Update:
		return "update"
	case Delete:
		return "delete"
	}
	return "unknown"
}

// Kind tells how a Value is to be read.
type Kind uint8

const (
	// KindAbsent: the binlog does not carry the column (row image not FULL).
	KindAbsent Kind = iota
	KindNull
	KindInt      // Int
	KindUint     // Uint; also YEAR and BIT
	KindFloat    // Float32
	KindDouble   // Float64
	KindDecimal  // Bytes: decimal text, every digit, "-0.50"
	KindText     // Bytes: UTF-8
	KindBinary   // Bytes: as stored, padding included
	KindDate     // Bytes: "2026-11-29"
	KindDateTime // Bytes: "2026-11-29T10:00:00.123", no zone; zero dates as the server shows them
	KindTime     // Bytes: "-838:59:59.000"
	KindInstant  // Bytes: TIMESTAMP as RFC 3339 in UTC; the zero date as the server shows it
	KindEnum     // Bytes: the label, UTF-8
	KindSet      // Bytes: the labels, UTF-8, already a JSON array
	KindJSON     // Bytes: JSON text
	KindGeometry // Bytes: GeoJSON text
	KindVector   // Bytes: a JSON array of numbers
)

// Value is one column's value, unboxed. Bytes are valid until the Rows that gave
// it moves on.
type Value struct {
	Kind  Kind
	num   uint64
	Bytes []byte
}

// Column describes one column at the time its row was written.
type Column struct {
	Name       string
	Type       byte   // protocol type as in the table map, ENUM/SET/STRING told apart
	Meta       uint16 // the table map's metadata for the type
	Unsigned   bool
	Nullable   bool
	Charset    string   // MySQL's name; "binary" for byte strings; empty for other types
	Labels     []string // ENUM and SET, UTF-8
	Geometry   bool
	Invisible  bool
	SourceType string // as information_schema shows it, where known
}

// Table is a table with the schema that its rows were written with.
type Table struct {
	Database string
	Name     string
	Columns  []Column
	// PrimaryKey holds column indexes in key order; empty without a primary key.
	PrimaryKey []int
}

// Row is one row change. Before is empty for an insert, After for a deletion.
// Both have one Value per column of Table.
type Row struct {
	Table  *Table
	Op     Op
	Before []Value
	After  []Value

	// Ordinal counts the changes of this table inside the transaction, from 1;
	// Place counts those of all tables, captured or not, from 1. Neither depends on the
	// configuration or on how the server packed the rows.
	Ordinal uint64
	Place   uint64
}
