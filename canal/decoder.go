package canal

import "context"

// Schemas completes what a table map does not say: names, signedness, character
// sets, labels, the primary key. Its answer must fit the table map's column count
// and types, or be an error: it never guesses.
type Schemas interface {
	// Table returns the schema of database.table as it was when the table map was
	// written. columns has one entry per column of the table map, with Type and
	// Meta set and, as far as the server sent them, more.
	Table(ctx context.Context, database, name string, columns []Column) (*Table, error)
}

// DecoderOptions configure a Decoder.
type DecoderOptions struct {
	// Captured says which tables' rows are wanted. It must be pure.
	Captured func(database, table string) bool
	// Schemas is asked where the table map is not enough.
	Schemas Schemas
}

// Decoder reads the rows of transactions. Each worker has its own.
type Decoder struct {
	opts DecoderOptions
}

// NewDecoder returns a Decoder.
func NewDecoder(opts DecoderOptions) *Decoder { return &Decoder{opts: opts} }

// Rows begins with the rows of t that belong to captured tables.
//
//	rows := dec.Rows(ctx, t)
//	for rows.Next() {
//		use(rows.Row())
//	}
//	err := rows.Err()
func (d *Decoder) Rows(ctx context.Context, t *Transaction) *Rows {
	return &Rows{}
}

// Rows is a cursor over the rows of one Transaction.
type Rows struct {
	row Row
	err error
}

// Next goes to the next row and reports whether there is one.
func (r *Rows) Next() bool { return false }

// Row is the current row; it and its values are valid until Next is called.
func (r *Rows) Row() *Row { return &r.row }

// Err is the error that ended the rows early, or nil.
func (r *Rows) Err() error { return r.err }
