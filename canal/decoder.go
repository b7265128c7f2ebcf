package canal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Schemas completes what a table map does not say: names, signedness, character
// sets, labels, the primary key. Its answer must fit the table map's column count
// and types, or be an error: it never guesses.
type Schemas interface {
	// Table returns the schema of database.table as it was when the table map was
	// written. columns has one entry per column of the table map, with Type and
	// Meta set and, as far as the server sent them, more. Where they have names, all that is
	// asked for is the SourceType of those that a table map cannot tell apart.
	Table(ctx context.Context, database, name string, columns []Column) (*Table, error)
}

// InvalidText is what to do with bytes that are no text in their column's character set.
type InvalidText uint8

const (
	// StopOnInvalidText makes them an error that names table, column and transaction.
	StopOnInvalidText InvalidText = iota
	// ReplaceInvalidText puts U+FFFD in their place and counts the value.
	ReplaceInvalidText
)

// DecoderOptions configure a Decoder.
type DecoderOptions struct {
	// Captured says which tables' rows are wanted. It must be pure.
	Captured func(database, table string) bool
	// Schemas is asked where the table map is not enough.
	Schemas Schemas
	// InvalidText is the policy for bytes that are invalid in their character set.
	InvalidText InvalidText
	// Again asks for the rows of a transaction that was handed on in part, too, those marked that were handed on.
	Again bool
}

// Decoder reads the rows of transactions. Each worker has its own.
type Decoder struct {
	opts   DecoderOptions
	shared *decoderShared

	rows     Rows
	inflater inflater
	inflated []byte // the rows of a compressed event
	text     []byte // what the current row's values render to; grows to the largest row
}

// decoderShared is what the decoders of one source have in common.
type decoderShared struct {
	tables       *tableCache
	replacedText atomic.Uint64
}

// NewDecoder returns a Decoder.
func NewDecoder(opts DecoderOptions) *Decoder {
	return &Decoder{opts: opts, shared: &decoderShared{tables: newTableCache(tableCacheBytes)}}
}

// Clone returns a Decoder for another worker on the same source. It shares what d knows
// of tables, so that each table's schema is asked for once.
func (d *Decoder) Clone() *Decoder { return &Decoder{opts: d.opts, shared: d.shared} }

// ReplacedText is the number of values in which invalid text was replaced, by d and all its
// clones.
func (d *Decoder) ReplacedText() uint64 { return d.shared.replacedText.Load() }

// Rows begins with the rows of t that belong to captured tables. What it returns is
// valid until Rows is called again.
//
//	rows := dec.Rows(ctx, t)
//	for rows.Next() {
//		use(rows.Row())
//	}
//	err := rows.Err()
//
// ctx is used for the schemas that t's tables need, and to wait for the numbering of a
// large transaction's earlier pieces; all of it is done when Rows returns.
func (d *Decoder) Rows(ctx context.Context, t *Transaction) *Rows {
	r := &d.rows
	r.reset(d, t)
	if err := r.prepare(ctx); err != nil {
		_ = r.fail(nil, nil, err)
	}
	return r
}

// tableOf returns the table map of an event of a transaction: known from before, or read now. One that was completed by a schema
// counts as long as that is in force: table ids begin anew when the server does.
func (d *Decoder) tableOf(ctx context.Context, e rawEvent, in *Transaction) (*tableMap, error) {
	body := e.body()
	if t := d.shared.tables.find(body); t != nil && (t.tracked == nil || in.schemas != nil && in.schemas.find(tableName{t.database, t.name}) == t.tracked) {
		return t, nil
	}
	id, database, name, rest, err := tableMapNames(body)
	if err != nil {
		return nil, err
	}
	t := &tableMap{id: id, database: string(database), name: string(name)}
	t.key = t.database + "." + t.name
	t.captured = d.opts.Captured(t.database, t.name)
	columns, optional, err := tableMapColumns(rest)
	if err != nil {
		return nil, fmt.Errorf("table map of %s: %w", t.key, err)
	}
	if err := d.resolve(ctx, t, columns, optional, in); err != nil {
		return nil, err
	}
	d.shared.tables.add(body, t)
	return t, nil
}

// resolve readies t for walking rows and, if it is captured, for reading them: from the
// table map alone where the server sent everything, else with the help of Schemas.
func (d *Decoder) resolve(ctx context.Context, t *tableMap, columns []Column, optional []byte, in *Transaction) error {
	flavor := in.GTID.Flavor
	t.fields = make([]field, len(columns))
	unsure := false
	for i := range columns {
		f, err := newField(&columns[i])
		if err != nil {
			t.unreadable = &SchemaError{
				Database: t.database, Table: t.name, Column: fmt.Sprintf("number %d", i+1),
				Problem: err.Error(), Remedy: "use a newer binlogd, which may know it",
			}
			if t.captured {
				return t.unreadable
			}
			return nil
		}
		t.fields[i] = f
		if isJSON(&columns[i]) {
			t.jsonColumns++
		}
		unsure = unsure || flavor == MariaDB && f.isOldTemporal()
	}
	if t.captured || unsure {
		err := d.resolveColumns(ctx, t, columns, optional, in, unsure)
		var schema *SchemaError
		switch {
		case err == nil:
		case !t.captured && errors.As(err, &schema):
			t.unreadable = err
			return nil
		default:
			return err
		}
	}
	t.strides = stridesOf(t.fields)
	return nil
}

// resolveColumns finds the schema of t. unsure: sizes of some columns are not in the table
// map, so that rows can not even be counted without Schemas.
func (d *Decoder) resolveColumns(ctx context.Context, t *tableMap, columns []Column, optional []byte, in *Transaction, unsure bool) error {
	flavor := in.GTID.Flavor
	meta, err := readOptionalMeta(columns, optional, flavor)
	if err != nil {
		return fmt.Errorf("table map of %s: %w", t.key, err)
	}
	table := &Table{Database: t.database, Name: t.name, Columns: columns, PrimaryKey: meta.primaryKey}
	if flavor == MariaDB && meta.named {
		hideMariaDBColumns(table)
	}
	if !meta.named || unsure || flavor == MariaDB && (anyLooksLikeBinary(columns) || table.mayBeVersioned()) {
		if table, err = d.askSchemas(ctx, t, table, columns, meta, in.schemas); err != nil {
			return err
		}
	}
	t.settleRowEnd(table)
	for i := range table.Columns {
		if err := t.fields[i].complete(&table.Columns[i]); err != nil {
			return &SchemaError{Database: t.database, Table: t.name, Column: table.Columns[i].Name, Problem: err.Error()}
		}
	}
	if t.captured {
		t.table = table
	}
	return nil
}

// askSchemas completes a table: from the schemas of the transaction's time, or, where nobody follows those, with the help of
// Schemas.
func (d *Decoder) askSchemas(ctx context.Context, t *tableMap, table *Table, columns []Column, meta optionalMeta, schemas *schemaSnapshot) (*Table, error) {
	if schemas != nil {
		answer, err := schemas.complete(ctx, t, table, columns, meta)
		if err == nil || t.captured && (!meta.named || table.implicitlyVersioned()) {
			return answer, err
		}
		if d.opts.Schemas == nil {
			return table, nil
		}
	}
	const remedy = "SET GLOBAL binlog_row_metadata=FULL"
	if d.opts.Schemas == nil {
		if meta.named {
			table.findRowEnd(&Schema{}) // by the columns' names alone
			return table, nil
		}
		return nil, &SchemaError{
			Database: table.Database, Table: table.Name, Problem: "the server does not send its column names with the rows", Remedy: remedy,
		}
	}
	answer, err := d.opts.Schemas.Table(ctx, table.Database, table.Name, columns)
	if err != nil {
		return nil, err
	}
	if meta.named {
		for i := range table.Columns {
			table.Columns[i].SourceType = answer.Columns[i].SourceType
			table.Columns[i].fraction = answer.Columns[i].fraction
			table.Columns[i].Invisible = answer.Columns[i].Invisible
			table.Columns[i].rowEnd = answer.Columns[i].rowEnd
		}
		return table, nil
	}
	if known := len(answer.Columns); known+hiddenHashes(columns, known) != len(columns) {
		return nil, &SchemaError{
			Database: table.Database, Table: table.Name,
			Problem: fmt.Sprintf("%d columns are known, its rows have %d", known, len(columns)), Remedy: remedy,
		}
	}
	return answer, nil
}
