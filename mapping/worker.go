package mapping

import (
	"errors"
	"fmt"
	"slices"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// ErrKeyNotCarried is wrapped by the error for a row whose image lacks a column of its
// partition key. It comes of a binlog_row_image other than FULL.
var ErrKeyNotCarried = errors.New("the binlog does not carry the column")

const (
	// maxPlans bounds how many tables a Worker has a plan of at a time.
	maxPlans = 1024
	// maxScratch is the size of scratch memory in bytes that outlives an event.
	maxScratch = 1 << 20
)

// Worker maps rows, one transaction after the other. It is for one goroutine.
//
//	err := w.Begin(t)
//	for rows.Next() {
//		events, err = w.Append(events, rows.Row())
//	}
//	events, err = w.End(events, start)
//
// The events' memory is theirs: it does not change when the Worker goes on, and is freed
// with them.
type Worker struct {
	mapper *Mapper
	plans  map[tableName]*plan // nil: not captured
	last   *plan

	transaction transaction
	arena       arena

	payload, key, keyJSON, preimage []byte // scratch, one event each
	// subject is the subject as a JSON string: keyJSON, or what a rule gives; empty where there is none.
	subject []byte
	// keyColumns are what the key is made of, and keyRow is the row that they are of; nil where it is not made of columns.
	keyColumns []int
	keyRow     image
	// givenID stands in for the derived id where it is not empty.
	givenID []byte

	// For rules:
	row                       expression.Row
	text, subjectJSON, masked []byte // scratch
	skipped                   []Skip

	gathered *Gathered // of the transaction, for aggregates; nil: nothing
}

// Mapper is the one whose rules the worker applies.
func (w *Worker) Mapper() *Mapper { return w.mapper }

// Begin says that the rows to follow are those of t. Of a large transaction each piece is
// begun.
func (w *Worker) Begin(t *canal.Transaction) error {
	if err := w.transaction.begin(t); err != nil {
		return fmt.Errorf("map transaction %s: %w", transactionName(t), err)
	}
	w.prepareTransaction()
	w.gathered = nil
	return nil
}

// Append appends the events of row, a change of the transaction that was begun, to dst:
// none where its table is not captured, one as a rule, and two where an update changes
// the primary key (a deletion under the old key, then a creation under the new one, so
// that who keeps rows by key is left with one). On an error dst is returned as it was.
//
// What a row shows depends on the server's binlog_row_image:
//
//   - FULL: "row" has all columns; "old" those that the update changed.
//   - NOBLOB: a TEXT or BLOB that the update did not change is in neither image and so
//     absent. One that it changed is in "row", and its former value unknown: not in "old".
//   - MINIMAL: "row" has the primary key and the columns that the statement set, and
//     "old" is empty: no former value is carried. Tables without a primary key have
//     all columns. Deletions show the primary key alone, and an update of the primary
//     key the old one in the deletion, the new one and the columns set in the creation.
//   - FULL_NODUP (MariaDB): as FULL; the server leaves unchanged columns out of the
//     after image only.
//
// One rule gives all this: an update's "row" takes each column from the after image, or else
// from the before image, for what only that carries did not change; "old" has the columns
// that both carry and that differ, to the last bit. A column that is carried by neither is
// left out.
//
// Errors are *OptionError where the configuration does not fit the table, and wrap
// ErrKeyNotCarried where the row has no key.
func (w *Worker) Append(dst []Event, row *canal.Row) ([]Event, error) {
	if row.Op == canal.Truncate {
		return w.appendTruncation(dst, row)
	}
	p, err := w.plan(row.Table)
	if p == nil && err == nil {
		return dst, nil
	}
	events := dst
	switch {
	case err != nil:
	case p.roles != nil:
		events, err = w.appendGathered(dst, p, row)
	case !row.Again:
		events, err = w.appendChanges(dst, p, row)
	}
	if err != nil {
		return dst, fmt.Errorf("map change %d of table %s.%s in transaction %s: %w",
			row.Ordinal, row.Table.Database, row.Table.Name, w.transaction.name, err)
	}
	return events, nil
}

// plan returns the plan of a table, or nil when the table is not captured.
func (w *Worker) plan(table *canal.Table) (*plan, error) {
	if w.last != nil && w.last.table == table {
		return w.last, nil
	}
	name := tableName{table.Database, table.Name}
	p, known := w.plans[name]
	if known && (p == nil || p.fits(table)) {
		if p != nil {
			p.table, w.last = table, p
		}
		return p, nil
	}
	p = nil
	if w.mapper.Captured(table.Database, table.Name) {
		var err error
		if p, err = w.mapper.plan(table); err != nil {
			return nil, err
		}
		w.last = p
	}
	if len(w.plans) >= maxPlans {
		clear(w.plans)
	}
	w.plans[name] = p
	return p, nil
}

// change is what becomes one event.
type change struct {
	kind changeKind
	half byte // 1 for the second event of a primary-key change
	// shown is the row that the event shows; its key is taken from it.
	shown image
	// identity is the row that the event id is made of.
	identity image
	// before is the before image of an update, else nil.
	before []canal.Value
}

// image is a row image with another one beneath it, which may be nil.
type image struct {
	top, beneath []canal.Value
}

// at is the value of column i.
func (m image) at(i int) *canal.Value {
	if m.top[i].Kind == canal.KindAbsent && m.beneath != nil {
		return &m.beneath[i]
	}
	return &m.top[i]
}

// appendChanges tells what row is and appends its events.
func (w *Worker) appendChanges(dst []Event, p *plan, row *canal.Row) ([]Event, error) {
	if err := checkImages(row); err != nil {
		return dst, err
	}
	switch {
	case p.outbox != nil:
		return w.appendRelayed(dst, p, row)
	case p.emitters != nil:
		return w.appendRules(dst, p, row)
	}
	before, after := image{top: row.Before}, image{top: row.After, beneath: row.Before}
	switch {
	case row.Op == canal.Insert:
		after.beneath = nil
		return w.appendEvent(dst, p, row, change{kind: created, shown: after, identity: after})
	case row.Op == canal.Delete:
		return w.appendEvent(dst, p, row, change{kind: deleted, shown: before, identity: before})
	case changesPrimaryKey(row):
		dst, err := w.appendEvent(dst, p, row, change{kind: deleted, shown: before, identity: before})
		if err != nil {
			return dst, err
		}
		return w.appendEvent(dst, p, row, change{kind: created, half: 1, shown: after, identity: after})
	default:
		return w.appendEvent(dst, p, row, change{kind: updated, shown: after, identity: before, before: row.Before})
	}
}

// checkImages refuses a row that has not the images of its kind, one value a column.
func checkImages(row *canal.Row) error {
	before, after := len(row.Table.Columns), len(row.Table.Columns)
	switch row.Op {
	case canal.Insert:
		before = 0
	case canal.Delete:
		after = 0
	case canal.Update:
	default:
		return fmt.Errorf("read the row: unknown operation %d", row.Op)
	}
	if len(row.Before) != before || len(row.After) != after {
		return fmt.Errorf("read the row: an %s of %d columns came with %d values before and %d after it",
			row.Op, len(row.Table.Columns), len(row.Before), len(row.After))
	}
	return nil
}

// changesPrimaryKey reports whether an update gives its row another primary key. A column
// that only one image carries did not change.
func changesPrimaryKey(row *canal.Row) bool {
	for _, i := range row.Table.PrimaryKey {
		before, after := &row.Before[i], &row.After[i]
		if before.Kind != canal.KindAbsent && after.Kind != canal.KindAbsent && !before.Equal(*after) {
			return true
		}
	}
	return false
}

// appendEvent appends the event of c.
func (w *Worker) appendEvent(dst []Event, p *plan, row *canal.Row, c change) ([]Event, error) {
	if err := w.writeKey(p, c.shown); err != nil {
		return dst, err
	}
	marks := w.writePayload(p, row, c)
	dst = append(dst, w.finish(&p.output, p, p.kinds[c.kind].name, marks))
	if p.output.tombstones && c.kind == deleted {
		dst = append(dst, w.tombstone(&p.output, p, &p.kinds[c.kind], row, c))
	}
	return dst, nil
}

// event is the event of a payload.
func (w *Worker) event(p *plan, kind string, payload []byte, marks marks) Event {
	return Event{
		ID:         alias(payload[marks.id:marks.idEnd]),
		Type:       kind,
		Source:     p.source,
		Topic:      p.topic,
		Key:        w.arena.keep(w.key),
		Time:       alias(payload[marks.time:marks.timeEnd]),
		Sequence:   alias(payload[marks.sequence:marks.sequenceEnd]),
		Table:      p.name,
		GTID:       w.transaction.gtid,
		Payload:    payload,
		OccurredAt: w.transaction.committedAt,
	}
}

// writeKey fills w.key and, as JSON strings, w.keyJSON and w.subject, from the table's key.
func (w *Worker) writeKey(p *plan, row image) error { return w.writeKeyOf(p, p.key, row) }

// writeKeyOf does so from some columns. A single column is written as it is;
// several are joined with commas, with a reverse solidus before each comma and reverse
// solidus of their own. Where the key's columns are changed by an update, the new ones
// count.
func (w *Worker) writeKeyOf(p *plan, columns []int, row image) error {
	if len(columns) == 0 {
		w.writeTableKey(p)
		return nil
	}
	w.keyColumns, w.keyRow = columns, row
	b := w.key[:0]
	ok := true
	for n, i := range columns {
		if n > 0 {
			b = append(b, ',')
		}
		v := *row.at(i)
		if p.masks != nil && p.masks[i] != nil && v.Kind != canal.KindAbsent && v.Kind != canal.KindNull {
			w.text, v = p.masks[i](w.text[:0], v)
		}
		if len(columns) == 1 {
			b, ok = appendKeyText(b, v)
		} else {
			b, ok = appendKeyPart(b, v)
		}
		if !ok {
			return fmt.Errorf("make the key of column %q: %w; set binlog_row_image=FULL on the server, or name columns in the entry's key: that each change carries",
				p.table.Columns[i].Name, ErrKeyNotCarried)
		}
	}
	w.key = b
	w.keyJSON = appendString(w.keyJSON[:0], b)
	w.subject = nil
	if len(b) > 0 {
		w.subject = w.keyJSON
	}
	return nil
}

// writeTableKey is for changes without a key of their own: their table's name, and no subject.
func (w *Worker) writeTableKey(p *plan) {
	w.key = append(w.key[:0], p.name...)
	w.keyJSON = appendString(w.keyJSON[:0], w.key)
	w.subject, w.keyColumns = nil, nil
}

// seal moves the payload out of the scratch memory.
func (w *Worker) seal() []byte {
	payload := w.payload
	if cap(payload) > maxScratch {
		w.payload = nil // handed over rather than copied, or kept at this size
		return slices.Clip(payload)
	}
	return w.arena.keep(payload)
}
