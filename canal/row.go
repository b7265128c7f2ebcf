package canal

import (
	"bytes"
	"math"
)

// Op is the kind of a row change.
type Op uint8

// The kinds of row changes.
const (
	Insert Op = iota + 1
	Update
	Delete
	Truncate // of the table as a whole: there are no images
)

func (o Op) String() string {
	switch o {
	case Insert:
		return "insert"
	case Update:
		return "update"
	case Delete:
		return "delete"
	case Truncate:
		return "truncate"
	}
	return "unknown"
}

// Kind tells how a Value is to be read.
type Kind uint8

// Each kind names the method or field of Value that holds it.
const (
	KindAbsent Kind = iota // the binlog does not carry the column (row image not FULL)
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
	plain bool
	num   uint64
	Bytes []byte
}

// NewInt returns a KindInt value.
func NewInt(n int64) Value { return Value{Kind: KindInt, num: uint64(n)} }

// NewUint returns a KindUint value.
func NewUint(n uint64) Value { return Value{Kind: KindUint, num: n} }

// NewFloat returns a KindFloat value.
func NewFloat(f float32) Value {
	return Value{Kind: KindFloat, num: uint64(math.Float32bits(f))}
}

// NewDouble returns a KindDouble value.
func NewDouble(f float64) Value { return Value{Kind: KindDouble, num: math.Float64bits(f)} }

// NewBytes returns a value of one of the kinds that are read from Bytes.
func NewBytes(kind Kind, b []byte) Value { return Value{Kind: kind, Bytes: b} }

// NewText returns a KindText value.
func NewText(s string) Value { return NewBytes(KindText, []byte(s)) }

// Int is the number of a KindInt value.
func (v Value) Int() int64 { return int64(v.num) }

// Uint is the number of a KindUint value.
func (v Value) Uint() uint64 { return v.num }

// Float32 is the number of a KindFloat value.
func (v Value) Float32() float32 { return math.Float32frombits(uint32(v.num)) }

// Float64 is the number of a KindDouble value.
func (v Value) Float64() float64 { return math.Float64frombits(v.num) }

// Plain reports that Bytes are known to be UTF-8 that stands for itself in a JSON string: nothing in it is to be
// escaped. False says nothing.
func (v Value) Plain() bool { return v.plain }

// Equal reports whether both are the same to the last bit: 1.0 and 1.00, 0.0 and
// -0.0, the number 1 and the text "1" all differ.
func (v Value) Equal(w Value) bool {
	return v.Kind == w.Kind && v.num == w.num && bytes.Equal(v.Bytes, w.Bytes)
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

	// fraction is the number of digits of a second in MariaDB's own temporal formats, whose
	// Meta does not say it.
	fraction uint8
	// rowEnd: it is the end of a row's time in a system-versioned table of MariaDB.
	rowEnd bool
}

// Table is a table with the schema that its rows were written with.
type Table struct {
	Database string
	Name     string
	Columns  []Column
	// PrimaryKey holds column indexes in key order: of the primary key, or of the unique key that the server takes in its place
	// (Schema.Key). Empty without either.
	PrimaryKey []int
}

// Row is one row change. Before is empty for an insert, After for a deletion.
// Both have one Value per column of Table. A TRUNCATE of the table has neither, and its Table
// has no columns.
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

	// Again is set on changes that an earlier run handed on, where DecoderOptions asks for those.
	Again bool
}
