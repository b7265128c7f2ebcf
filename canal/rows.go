package canal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Rows is a cursor over the rows of one Transaction.
type Rows struct {
	d *Decoder
	t *Transaction

	maps     []*tableMap          // of the TABLE_MAP events of t.events, in order
	current  map[uint64]*tableMap // by table id: those in force
	nextMap  int
	cleared  int // of t.truncated, those that were given
	next     int // index of the next of t.events
	event    rowsEvent
	captured bool // some table map is of a captured table

	place    uint64
	skip     uint64            // rows up to this place are not given
	ordinals map[string]uint64 // changes so far by table; up to the start of event
	ordinal  uint64            // changes so far of event's table

	row    Row
	before []Value
	after  []Value
	err    error
}

func (r *Rows) reset(d *Decoder, t *Transaction) {
	if r.current == nil {
		r.current = map[uint64]*tableMap{}
		r.ordinals = map[string]uint64{}
	}
	clear(r.current)
	clear(r.ordinals)
	clear(r.maps)
	d.text, d.inflated = kept(d.text), kept(d.inflated)
	*r = Rows{
		d: d, t: t, maps: r.maps[:0], current: r.current, ordinals: r.ordinals,
		before: r.before, after: r.after,
	}
}

// prepare learns the tables of t and where its numbering begins. A transaction without
// rows of captured tables is passed over here, unless others wait for its numbering.
func (r *Rows) prepare(ctx context.Context) error {
	for _, e := range r.t.tableMaps {
		table, err := r.d.tableOf(ctx, e, r.t)
		if err != nil {
			return err
		}
		r.current[table.id] = table
		r.captured = r.captured || table.captured
	}
	for _, e := range r.t.events {
		if rawEvent(e).kind() != replication.TABLE_MAP_EVENT {
			continue
		}
		table, err := r.d.tableOf(ctx, e, r.t)
		if err != nil {
			return err
		}
		r.maps = append(r.maps, table)
		r.captured = r.captured || table.captured
	}
	if r.t.in != nil {
		select {
		case before := <-r.t.in:
			if r.t.afresh {
				r.skip = max(before.place, before.skip)
				break
			}
			r.place, r.skip = before.place, before.skip
			maps.Copy(r.ordinals, before.tables)
		case <-ctx.Done():
			return fmt.Errorf("wait for the transaction's earlier pieces: %w", context.Cause(ctx))
		}
	}
	if r.t.out != nil {
		if err := r.countAhead(); err != nil {
			return err
		}
	}
	if !r.captured && r.t.in == nil {
		r.next = len(r.t.events)
	}
	return nil
}

// countAhead sends the numbering after this piece to the next one, so that its worker
// need not wait until this piece's rows are read, and goes back to the start.
func (r *Rows) countAhead() error {
	start := maps.Clone(r.current)
	place := r.place
	tables := maps.Clone(r.ordinals)
	for {
		more, err := r.nextEvent()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		n, err := r.event.count()
		if err != nil {
			return err
		}
		place += n
		tables[r.event.table.key] += n
	}
	r.t.out <- ordinals{place: place, tables: tables, skip: r.skip}
	r.event, r.next, r.nextMap, r.ordinal = rowsEvent{}, 0, 0, 0
	r.current = start
	return nil
}

// Next goes to the next row and reports whether there is one.
func (r *Rows) Next() bool {
	if r.err == nil && r.t != nil && r.cleared < len(r.t.truncated) {
		return r.truncate()
	}
	for r.err == nil && r.t != nil {
		if len(r.event.data) == 0 {
			r.endEvent()
			more, err := r.nextEvent()
			if err != nil {
				_ = r.fail(r.event.table, nil, err)
				break
			}
			if !more {
				r.t = nil // its events need not wait for the next transaction
				return false
			}
			r.ordinal = r.ordinals[r.event.table.key]
			continue
		}
		if !r.event.table.captured {
			n, err := r.event.count()
			if err != nil {
				_ = r.fail(r.event.table, nil, err)
				break
			}
			r.place += n
			r.ordinal += n
			continue
		}
		r.place++
		r.ordinal++
		if r.place <= r.skip && !r.d.opts.Again {
			if err := r.event.skip(); err != nil {
				_ = r.fail(r.event.table, nil, err)
			}
			continue
		}
		if !r.read() {
			return false
		}
		if end := r.event.table.rowEnd; end == 0 || r.row.asSelected(end) {
			return true
		}
	}
	return false
}

// truncate gives the next table that the transaction empties: a change of the table as a whole, without images.
func (r *Rows) truncate() bool {
	name := r.t.truncated[r.cleared]
	r.cleared++
	r.place++
	key := name.String()
	r.ordinals[key]++
	r.row = Row{Table: &Table{Database: name.database, Name: name.name}, Op: Truncate, Ordinal: r.ordinals[key], Place: r.place}
	return true
}

// Row is the current row; it and its values are valid until Next is called.
func (r *Rows) Row() *Row { return &r.row }

// Err is the error that ended the rows early, or nil.
func (r *Rows) Err() error { return r.err }

// LastPlace is the place of the last row that was passed: after Next returned false, of
// the last of the transaction or piece. It is zero for a transaction that is in
// one piece and has no rows of captured tables.
func (r *Rows) LastPlace() uint64 { return r.place }

// endEvent notes how far the numbering of the event's table has come.
func (r *Rows) endEvent() {
	if r.event.table != nil {
		r.ordinals[r.event.table.key] = r.ordinal
	}
	r.event = rowsEvent{}
}

// nextEvent goes to the next rows event and puts the table maps before it in force.
func (r *Rows) nextEvent() (bool, error) {
	for r.next < len(r.t.events) {
		e := rawEvent(r.t.events[r.next])
		r.next++
		if e.kind() == replication.TABLE_MAP_EVENT {
			table := r.maps[r.nextMap]
			r.nextMap++
			r.current[table.id] = table
			continue
		}
		id, err := rowsEventTableID(e)
		if err != nil {
			return false, err
		}
		table := r.current[id]
		if table == nil {
			if id == dummyTableID {
				continue
			}
			return false, fmt.Errorf("rows of table id %d come without its table map", id)
		}
		if table.unreadable != nil {
			return false, table.unreadable
		}
		if r.event, err = r.d.parseRowsEvent(e, table); err != nil {
			return false, err
		}
		return true, nil
	}
	return false, nil
}

// read reads the row at the start of the event's data.
func (r *Rows) read() bool {
	e := &r.event
	table := e.table
	columns := len(table.table.Columns)
	left := len(e.data)
	r.d.text = r.d.text[:0]
	r.row = Row{Table: table.table, Op: e.op, Ordinal: r.ordinal, Place: r.place, Again: r.place <= r.skip}
	var err error
	switch e.op {
	case Insert:
		r.after = sized(r.after, columns)
		r.row.After = r.after
		e.data, err = r.readImage(&e.first, r.after, e.data)
	case Delete:
		r.before = sized(r.before, columns)
		r.row.Before = r.before
		e.data, err = r.readImage(&e.first, r.before, e.data)
	case Update:
		r.before, r.after = sized(r.before, columns), sized(r.after, columns)
		r.row.Before, r.row.After = r.before, r.after
		if e.partial {
			err = r.readPartialUpdate()
			break
		}
		err = r.readUpdate()
	case Truncate: // stands in no rows event
	}
	if err == nil && len(e.data) == left {
		err = r.fail(table, nil, errRowEmpty)
	}
	return err == nil
}

// readImage reads one row image into values, one per column, and returns what follows it.
// Its error is already noted with its place.
func (r *Rows) readImage(im *image, values []Value, b []byte) ([]byte, error) {
	fields := r.event.table.fields[:len(values)]
	if len(b) < im.nulls {
		return nil, r.fail(r.event.table, nil, errRowShort)
	}
	nulls := b[:im.nulls]
	b = b[im.nulls:]
	place := 0
	for i := range fields {
		if !im.full && !bitSet(im.present, i) {
			values[i] = Value{}
			continue
		}
		null := bitSet(nulls, place)
		place++
		if null {
			values[i] = Value{Kind: KindNull}
			continue
		}
		n, err := r.d.readValue(&values[i], &fields[i], b)
		if err != nil {
			return nil, r.fail(r.event.table, &r.event.table.table.Columns[i], err)
		}
		b = b[n:]
	}
	if len(values) < len(r.event.table.fields) {
		return r.skipHidden(im, nulls, place, len(values), b)
	}
	return b, nil
}

// readUpdate reads both images. A value that has the same bytes in both is read once.
func (r *Rows) readUpdate() error {
	e := &r.event
	beforeImage := e.data
	rest, err := r.readImage(&e.first, r.before, e.data)
	if err != nil {
		return err
	}
	// A value with replaced text is counted where it stands: so each is read.
	if !e.first.full || !e.second.full || r.d.opts.InvalidText == ReplaceInvalidText {
		e.data, err = r.readImage(&e.second, r.after, rest)
		return err
	}
	before := newImageWalk(e.table, &e.first, beforeImage)
	e.data, err = r.readAfter(&before, rest)
	return err
}

// readAfter reads the After image of an update, of which before is the Before image, sound and not walked over yet, and returns
// what follows it. Both have all columns.
func (r *Rows) readAfter(before *imageWalk, b []byte) ([]byte, error) {
	e := &r.event
	fields := e.table.fields[:len(r.after)]
	if len(b) < e.second.nulls {
		return nil, r.fail(e.table, nil, errRowShort)
	}
	nulls := b[:e.second.nulls]
	b = b[e.second.nulls:]
	for i := range fields {
		old, oldNull, _ := before.next(i)
		if bitSet(nulls, i) {
			r.after[i] = Value{Kind: KindNull}
			continue
		}
		if !oldNull && bytes.HasPrefix(b, old) { // the length before a value is part of it
			r.after[i] = r.before[i]
			b = b[len(old):]
			continue
		}
		n, err := r.d.readValue(&r.after[i], &fields[i], b)
		if err != nil {
			return nil, r.fail(e.table, &e.table.table.Columns[i], err)
		}
		b = b[n:]
	}
	if len(r.after) < len(e.table.fields) {
		return r.skipHidden(&e.second, nulls, len(r.after), len(r.after), b)
	}
	return b, nil
}

// skipHidden walks over the columns that the table has beyond those that are given.
func (r *Rows) skipHidden(im *image, nulls []byte, place, first int, b []byte) ([]byte, error) {
	for i := first; i < len(r.event.table.fields); i++ {
		if !bitSet(im.present, i) {
			continue
		}
		null := bitSet(nulls, place)
		place++
		if null {
			continue
		}
		size := r.event.table.fields[i].size // hidden columns are of fixed size
		if len(b) < size {
			return nil, r.fail(r.event.table, nil, errRowShort)
		}
		b = b[size:]
	}
	return b, nil
}

// fail ends the rows with an error that says where it happened.
func (r *Rows) fail(table *tableMap, column *Column, err error) error {
	var schema *SchemaError
	switch {
	case errors.As(err, &schema), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.err = fmt.Errorf("decode transaction %s: %w", r.where(), err)
	default:
		e := &DecodeError{Where: r.where(), Err: err}
		if table != nil {
			e.Database, e.Table = table.database, table.name
		}
		if column != nil {
			e.Column, e.Type = column.Name, column.typeName()
		}
		r.err = e
	}
	r.event.data, r.next = nil, len(r.t.events)
	return r.err
}

// where names the transaction for people: its GTID, or where it begins.
func (r *Rows) where() string { return identity(r.t.GTID, r.t.File, r.t.Start) }

// kept returns b for another use, unless one large value made it large.
func kept(b []byte) []byte {
	const most = 1 << 20
	if cap(b) > most {
		return nil
	}
	return b[:0]
}

// sized returns a slice of n values, in v's memory where there is room.
func sized(v []Value, n int) []Value {
	if cap(v) < n {
		return make([]Value, n)
	}
	return v[:n]
}
