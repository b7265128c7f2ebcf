package expression

import (
	"fmt"

	"github.com/binlogd/binlogd/canal"
)

// Ops is a set of kinds of changes, a bit each.
type Ops uint8

// OpSet is the set of some kinds.
func OpSet(ops ...canal.Op) (set Ops) {
	for _, op := range ops {
		set |= 1 << op
	}
	return set
}

// Has reports whether the kind is in the set.
func (s Ops) Has(op canal.Op) bool { return s&(1<<op) != 0 }

// Variable is something that expressions know by its name beside the row's columns.
type Variable uint8

// The variables.
const (
	GTID Variable = iota
	CommittedAt
	Database
	TableName
	Shard
	Operation
	variables int = iota
)

// variableTypes are the variables by the names that expressions have for them.
var variableTypes = map[string]struct {
	variable Variable
	class    class
}{
	"gtid":         {GTID, classText},
	"committed_at": {CommittedAt, classInstant},
	"database":     {Database, classText},
	"table":        {TableName, classText},
	"shard":        {Shard, classText},
	"op":           {Operation, classText},
}

// Row is what expressions are evaluated over: a change, and what is known of it besides.
// Values that an evaluation gives are valid until the Row is Reset, or what it was given changes.
type Row struct {
	op            canal.Op
	before, after []canal.Value // nil where the change has no such row
	variables     [variables]canal.Value
	scratch       []byte // what values made by expressions are made of
}

// Set gives a variable its value.
func (r *Row) Set(v Variable, value canal.Value) { r.variables[v] = value }

// Reset begins with another change.
func (r *Row) Reset(row *canal.Row) {
	const keep = 1 << 20
	r.op, r.before, r.after = row.Op, row.Before, row.After
	r.scratch = r.scratch[:0]
	if cap(r.scratch) > keep {
		r.scratch = nil
	}
}

// AbsentError says that an expression needs a column that the binlog does not carry, because binlog_row_image is not FULL.
type AbsentError struct {
	Image  string // old or new
	Column string
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("the binlog does not carry %s.%s: set binlog_row_image=FULL on the server, or ask first: present(%s.%s) ? … : …",
		e.Image, e.Column, e.Image, e.Column)
}

// The names of a change's rows.
const (
	oldRow   = "old" // before it; NULL in every column for an insert
	newRow   = "new" // after it; NULL in every column for a deletion
	shownRow = "row" // new, but old for a deletion
)

var null = canal.Value{Kind: canal.KindNull}

// find is a column of one of the change's rows: absent where the binlog does not carry it.
func (r *Row) find(image string, column int) *canal.Value {
	if image == shownRow {
		image = newRow
		if r.op == canal.Delete {
			image = oldRow
		}
	}
	switch {
	case image == oldRow && r.before != nil:
		return &r.before[column]
	case image == newRow && r.after != nil:
		// What only the before image carries did not change.
		if v := &r.after[column]; v.Kind != canal.KindAbsent || r.before == nil {
			return v
		}
		return &r.before[column]
	}
	return &null
}

// changed reports whether the change gave the column another value. A row that appears or vanishes changes in every
// column. A column that neither image carries, or only the one before, did not change.
func (r *Row) changed(column int) (changed, known bool) {
	if r.before == nil || r.after == nil {
		return true, true
	}
	before, after := &r.before[column], &r.after[column]
	switch {
	case after.Kind == canal.KindAbsent:
		return false, true
	case before.Kind == canal.KindAbsent:
		return false, false
	}
	return !before.Equal(*after), true
}

// keep returns what was appended to the scratch memory since it was as long as start.
func (r *Row) keep(kind canal.Kind, start int) canal.Value {
	return canal.NewBytes(kind, r.scratch[start:len(r.scratch):len(r.scratch)])
}
