package canal

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// SchemaEntry is one entry of the schema history: how a table looks from a place in the binlog on.
type SchemaEntry struct {
	// Version grows from entry to entry, from 1.
	Version uint64
	// Replaces is the version of the entry whose place this one takes: it was found out later, or set by hand. 0: none.
	Replaces uint64
	Database string
	// Table is empty in an entry of the database itself: then Charset is its default character set.
	Table   string
	Charset string
	// Schema is nil where the table is gone, or where it is not known how it looks, and Unknown says why.
	Schema  *Schema
	Unknown string
	Origin  SchemaOrigin
	// Start is the place from which on the entry holds, where no statement made it.
	Start *Position
	// GTID, File and Offset are those of the transaction that the entry holds behind: the statement's. File and Offset are
	// where it begins.
	GTID   GTID
	File   string
	Offset uint64
	// Until is where the server stood when Schema was read, if that was ahead of the place of the entry: it holds only if
	// no statement before Until changed the table. Nil where there is nothing to prove.
	Until     *Position
	Statement string // abbreviated
}

// SchemaOrigin says how an entry came about.
type SchemaOrigin string

// How an entry can come about.
const (
	SchemaFromStart     SchemaOrigin = "start"     // read from information_schema when binlogd first saw the table
	SchemaFromStatement SchemaOrigin = "statement" // by what a statement in the binlog does
	SchemaFromServer    SchemaOrigin = "server"    // read from information_schema after a statement
	SchemaFromHand      SchemaOrigin = "hand"      // by `binlogd schema set`
)

// Within reports whether the entry's place is at or before p.
func (e *SchemaEntry) Within(p Position) bool {
	switch {
	case e.Start != nil && e.Start.GTIDs != nil && p.GTIDs != nil:
		return p.GTIDs.ContainsSet(e.Start.GTIDs)
	case e.Start != nil:
		return compareFiles(e.Start.File, p.File) < 0 || e.Start.File == p.File && e.Start.Offset <= p.Offset
	case !e.GTID.IsZero() && p.GTIDs != nil:
		return p.GTIDs.Contains(e.GTID)
	default:
		return compareFiles(e.File, p.File) < 0 || e.File == p.File && e.Offset < p.Offset
	}
}

// place names the transaction of the entry, or is empty.
func (e *SchemaEntry) place() string {
	if e.Start != nil {
		return ""
	}
	return identity(e.GTID, e.File, e.Offset)
}

// settled reports whether nothing more can be found out about the entry. One that is not may be better known now, when what
// came before it is.
func (e *SchemaEntry) settled() bool {
	return e.Origin == SchemaFromHand || e.Unknown == "" && e.Until == nil
}

// SchemaHistory keeps the entries of one pipeline beside its checkpoint.
type SchemaHistory interface {
	// Load gives all entries, oldest first. need is the newest version that the checkpoint needs: a history that is there
	// and ends before it is an error. Where the checkpoint needs none, because it is the first, the history begins anew:
	// statements that nobody read may stand between one that was left over and this place.
	Load(ctx context.Context, need uint64) ([]SchemaEntry, error)
	// Append adds entries. They are durable when it returns nil.
	Append(ctx context.Context, entries []SchemaEntry) error
}

// historyError ends the run: the schema history cannot be read or written.
type historyError struct{ err error }

func (e *historyError) Error() string { return e.err.Error() }
func (e *historyError) Unwrap() error { return e.err }

// forgetful keeps no history: for runs without a checkpoint.
type forgetful struct{}

func (forgetful) Load(context.Context, uint64) ([]SchemaEntry, error) { return nil, nil }
func (forgetful) Append(context.Context, []SchemaEntry) error         { return nil }

// Settle puts entries that replace others in their places, so that what comes later in the result is later in the binlog
// of each table.
func Settle(entries []SchemaEntry) []SchemaEntry {
	settled := make([]SchemaEntry, 0, len(entries))
	index := make(map[uint64]int, len(entries)) // of settled, by version
	for _, e := range entries {
		i, replaces := index[e.Replaces]
		if e.Replaces == 0 || !replaces {
			i = len(settled)
			settled = append(settled, e)
		} else {
			settled[i] = e
		}
		index[e.Version] = i
	}
	return settled
}

// tracked is the entry as a table of a snapshot. readings are shared by entries of one place.
func (e *SchemaEntry) tracked(readings func(*SchemaEntry) *schemaReading, pool schemaPool) *trackedTable {
	t := &trackedTable{name: tableName{e.Database, e.Table}, version: e.Version, doubt: e.Unknown}
	if e.Schema != nil {
		t.schema = pool.share(e.Schema)
	}
	if e.Start == nil {
		t.since = e.place()
	}
	if e.Statement != "" {
		t.statement = e.Statement
	}
	if e.Until != nil {
		t.reading = readings(e)
	}
	return t
}

// from is what `binlogd schema set --from` takes for the place from which on the entry holds.
func (t *trackedTable) from() string {
	if t.since == "" {
		return "start"
	}
	return t.since
}

// unknownError says why rows of a table cannot be read, and how to go on.
func (t *trackedTable) unknownError(why string) error {
	return &SchemaError{
		Database: t.name.database, Table: t.name.name, Problem: "how it looked when its rows were written is not known: " + why,
		Remedy: fmt.Sprintf("write its CREATE TABLE as of then into a file and run `binlogd schema set %s --file FILE --from %s`, or pass over these rows with source.start and a new checkpoint.path; SET GLOBAL binlog_row_metadata=FULL keeps it from happening again",
			t.name, t.from()),
	}
}

// table gives the schema that a table had at the snapshot's place. tracked is nil where the table is not known at all.
// The error is a *SchemaError where it is not known how it looked, which may take a look ahead into the binlog.
func (s *schemaSnapshot) table(ctx context.Context, name tableName) (tracked *trackedTable, schema *Schema, err error) {
	t := s.find(name)
	if t == nil {
		return nil, nil, &SchemaError{
			Database: name.database, Table: name.name, Problem: "the server showed no such table to this account when binlogd looked",
			Remedy: "GRANT SELECT on it to the account of source.user and start binlogd again; SET GLOBAL binlog_row_metadata=FULL lets rows name their columns themselves",
		}
	}
	if t.schema == nil {
		why := t.doubt
		if t.statement != "" {
			why = fmt.Sprintf("%s (%q in transaction %s)", t.doubt, t.statement, t.since)
		}
		return t, nil, t.unknownError(why)
	}
	if err := s.prove.check(ctx, t); err != nil {
		return t, nil, err
	}
	return t, t.schema, nil
}

// complete gives the table of a table map with what the schema in force says of it.
func (s *schemaSnapshot) complete(ctx context.Context, t *tableMap, table *Table, columns []Column, meta optionalMeta) (*Table, error) {
	tracked, schema, err := s.table(ctx, tableName{t.database, t.name})
	if err != nil {
		return nil, err
	}
	t.tracked = tracked
	if meta.named {
		return nameMariaDBTypes(table, schema)
	}
	fitted, err := schema.fit(t.database, t.name, columns, "in the schema history")
	if err == nil {
		err = meta.agrees(columns, fitted)
	}
	if misfit, ok := errors.AsType[*schemaMisfit](err); ok {
		return nil, &SchemaError{
			Database: t.database, Table: t.name, Column: misfit.column, Problem: misfit.problem,
			Remedy: fmt.Sprintf("look at it with `binlogd schema show %s`; if the history is wrong, run `binlogd schema set %[1]s --file FILE --from %s` with its CREATE TABLE as of then",
				tracked.name, tracked.from()),
		}
	}
	return fitted, err
}

// agrees compares a table with the signs and character sets that came with its rows.
func (m *optionalMeta) agrees(sent []Column, table *Table) error {
	for i := range min(len(sent), len(table.Columns)) {
		c, have := &table.Columns[i], &sent[i]
		switch {
		case m.signed && isNumeric(c.Type) && c.Type != mysql.MYSQL_TYPE_YEAR && c.Unsigned != have.Unsigned:
			return &schemaMisfit{c.Name, fmt.Sprintf("it is %s in the schema history, the rows have a number of the other signedness in its place", c.SourceType)}
		case have.Charset != "" && c.Charset != "" && knownCharset(have.Charset) != knownCharset(c.Charset):
			return &schemaMisfit{c.Name, fmt.Sprintf("its character set is %s in the schema history, the rows have %s in its place", c.Charset, have.Charset)}
		}
	}
	return nil
}

// HoldsAt reports whether an entry is in force in the transaction with a GTID. Of two servers' transactions it cannot tell which
// came first: then the entry counts as later. It takes GTIDs only.
func (e *SchemaEntry) HoldsAt(gtid string) (bool, error) {
	flavor := e.GTID.Flavor
	if e.Start != nil {
		if e.Start.GTIDs == nil {
			return false, errors.New("the history was written without GTIDs")
		}
		flavor = e.Start.GTIDs.Flavor()
	} else if e.GTID.IsZero() {
		return false, errors.New("the history was written without GTIDs")
	}
	g, err := ParseGTID(flavor, gtid)
	if err != nil {
		return false, err
	}
	if e.Start != nil {
		return !e.Start.GTIDs.Contains(g), nil
	}
	of, at := e.GTID, g
	number := of.Number
	of.Number, at.Number = 0, 0
	if flavor == MariaDB {
		of.ServerID, at.ServerID = 0, 0
	}
	return of == at && number < g.Number, nil
}
