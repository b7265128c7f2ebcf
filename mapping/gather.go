package mapping

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/binlogd/binlogd/canal"
)

// Gathered is what one transaction holds for aggregates until its end. Of a transaction that travels in pieces it goes from
// the worker of each piece to that of the next.
type Gathered struct {
	aggregates []gathered // by the index of the mapper's
	held       []heldEvent
}

// heldEvent is an event of the default mapping that is left out if its row becomes part of an aggregate.
type heldEvent struct {
	event Event
	used  bool
}

// gathered is what is held for one aggregate.
type gathered struct {
	size   int64
	failed bool // it is not made in this transaction
	roots  rowStates
	parts  []rowStates // by the index of its include
}

// rowStates are rows of one table, or of the shards of one, by what tells them apart.
type rowStates struct {
	order []*rowState
	byKey map[string][]*rowState // several only without a primary key
}

// rowState is a row before the transaction and as it is now: both nil before the first change of a row that is inserted,
// and after its deletion.
type rowState struct {
	role        *role
	place       uint64 // of its first change
	before, now []canal.Value
	held        []int // its events
}

// valueCost is what a value takes beside its bytes.
const valueCost = int64(unsafe.Sizeof(canal.Value{}))

// Suspend returns what the transaction that was begun holds for aggregates, for Resume on the worker of its next piece.
func (w *Worker) Suspend() *Gathered {
	g := w.gathered
	w.gathered = nil
	return g
}

// Resume hands on what the earlier pieces of the transaction that was begun hold; nil is nothing.
func (w *Worker) Resume(g *Gathered) { w.gathered = g }

// Gathers reports whether events depend on whole transactions: then the pieces of one are to be mapped one after the
// other, with Suspend and Resume, and read from its beginning also where a part of it was published before.
func (m *Mapper) Gathers() bool { return len(m.aggregates) > 0 }

// appendGathered takes note of a change for aggregates, and appends the events that it has of its own. A change that was
// published before, which is given again for the aggregates' sake, has only those that were held back then.
func (w *Worker) appendGathered(dst []Event, p *plan, row *canal.Row) ([]Event, error) {
	if err := checkImages(row); err != nil {
		return dst, err
	}
	states, err := w.gather(p, row)
	if err != nil || p.quiet {
		return dst, err
	}
	holding := p.emitters == nil && p.outbox == nil && len(states) > 0
	if row.Again && !holding {
		return dst, nil
	}
	events, err := w.appendChanges(dst, p, row)
	if err != nil || !holding {
		return events, err
	}
	w.hold(events[len(dst):], states)
	return dst, nil
}

// gather takes note of a change for the aggregates that its table has a role in. The error is a *RuleError.
func (w *Worker) gather(p *plan, row *canal.Row) (states []*rowState, err error) {
	if w.gathered == nil {
		w.gathered = &Gathered{aggregates: make([]gathered, len(w.mapper.aggregates))}
	}
	for _, r := range p.roles {
		g := &w.gathered.aggregates[r.index]
		if g.failed {
			continue
		}
		before := g.size
		states = append(states, g.add(w, r, row)...)
		if g.size > r.aggregate.maxSize && g.size > before {
			err := &RuleError{
				Rule: r.aggregate.at, Type: r.aggregate.kind, Part: "max_size", Key: p.name,
				Err: fmt.Errorf("the transaction has more than %d bytes of rows for the aggregate %s", r.aggregate.maxSize, r.aggregate.name),
			}
			if !r.aggregate.skipping {
				return nil, err
			}
			*g = gathered{failed: true}
			w.skipped = append(w.skipped, Skip{Table: p.name, Transaction: w.transaction.name, Err: err})
		}
	}
	return states, nil
}

// add brings the row that a change is about to its new state. It returns those that the change belongs to: two where it
// gives a row another key.
func (g *gathered) add(w *Worker, r *role, row *canal.Row) []*rowState {
	if g.parts == nil {
		g.parts = make([]rowStates, len(r.aggregate.include))
	}
	rows := &g.roots
	if r.part != rootPart {
		rows = &g.parts[r.part]
	}
	before, after := image{top: row.Before}, image{top: row.After, beneath: row.Before}
	switch row.Op {
	case canal.Insert:
		after.beneath = nil
		return []*rowState{g.appear(w, rows, r, row, after)}
	case canal.Delete:
		if r.part != rootPart && !r.aggregate.wantsChanges() && rows.find(w.stateKey(r, before), true) == nil {
			return nil
		}
		return g.vanish(w, rows, r, row, before)
	case canal.Update:
	case canal.Truncate:
		return nil
	}
	from, to := w.stateKey(r, before), w.stateKey(r, after)
	s := rows.find(from, true)
	if s == nil && !r.wants(row) {
		return nil
	}
	if s != nil { // it knows columns that this change need not carry
		after.beneath = s.now
	}
	if from != to {
		states := g.vanish(w, rows, r, row, before)
		return append(states, g.appear(w, rows, r, row, after))
	}
	if s == nil {
		s = rows.add(from, &rowState{role: r, place: row.Place, before: g.keep(before, len(row.Before))})
	}
	g.set(s, after)
	return []*rowState{s}
}

// wants reports whether a change of a row that the transaction did not insert matters to the aggregate.
func (r *role) wants(row *canal.Row) bool {
	if r.aggregate.wantsChanges() {
		return true
	}
	if r.part == rootPart {
		return changesPrimaryKey(row)
	}
	for _, i := range r.joins[0] { // it may come to belong to a root that is inserted
		if row.After[i].Kind != canal.KindAbsent && !row.After[i].Equal(row.Before[i]) {
			return true
		}
	}
	return false
}

// wantsChanges reports whether the aggregate is about more than roots that are inserted.
func (a *aggregate) wantsChanges() bool {
	return a.children || a.ops.Has(canal.Update) || a.ops.Has(canal.Delete)
}

// appear notes that a row is there now.
func (g *gathered) appear(w *Worker, rows *rowStates, r *role, row *canal.Row, now image) *rowState {
	key := w.stateKey(r, now)
	s := rows.find(key, false)
	if s == nil {
		s = rows.add(key, &rowState{role: r, place: row.Place})
	}
	g.set(s, now)
	return s
}

// vanish notes that a row is gone.
func (g *gathered) vanish(w *Worker, rows *rowStates, r *role, row *canal.Row, before image) []*rowState {
	key := w.stateKey(r, before)
	s := rows.find(key, true)
	if s == nil {
		s = rows.add(key, &rowState{role: r, place: row.Place, before: g.keep(before, len(row.Before))})
	}
	g.size -= sizeOf(s.now)
	s.now = nil
	return []*rowState{s}
}

// set gives a row its new state.
func (g *gathered) set(s *rowState, now image) {
	old := sizeOf(s.now)
	s.now = g.keep(now, len(now.top))
	g.size -= old
}

// stateKey tells rows apart: by their primary key, or all columns.
func (w *Worker) stateKey(r *role, row image) string {
	b := append(w.preimage[:0], r.plan.hashNames...)
	for _, i := range r.identity {
		b = appendIDValue(b, *row.at(i))
	}
	w.preimage = b
	return string(b)
}

// find returns a row that is there now, or one that was and is not.
func (s *rowStates) find(key string, there bool) *rowState {
	for _, state := range slices.Backward(s.byKey[key]) {
		if (state.now != nil) == there {
			return state
		}
	}
	return nil
}

func (s *rowStates) add(key string, state *rowState) *rowState {
	if s.byKey == nil {
		s.byKey = map[string][]*rowState{}
	}
	s.byKey[key] = append(s.byKey[key], state)
	s.order = append(s.order, state)
	return state
}

// keep copies a row of n columns, whose bytes are the decoder's.
func (g *gathered) keep(row image, n int) []canal.Value {
	kept := make([]canal.Value, n)
	size := 0
	for i := range kept {
		kept[i] = *row.at(i)
		size += len(kept[i].Bytes)
	}
	g.size += sizeOf(kept)
	text := make([]byte, 0, size)
	for i := range kept {
		if kept[i].Bytes != nil {
			start := len(text)
			text = append(text, kept[i].Bytes...)
			kept[i].Bytes = text[start:len(text):len(text)]
		}
	}
	return kept
}

// sizeOf is what the values of a row take in memory, in bytes.
func sizeOf(row []canal.Value) (size int64) {
	for i := range row {
		size += valueCost + int64(len(row[i].Bytes))
	}
	return size
}

// hold keeps events of the default mapping back until it is known whether their row is part of an aggregate.
func (w *Worker) hold(events []Event, states []*rowState) {
	for _, event := range events {
		for _, s := range states {
			s.held = append(s.held, len(w.gathered.held))
		}
		w.gathered.held = append(w.gathered.held, heldEvent{event: event})
		w.gathered.aggregates[states[0].role.index].size += int64(len(event.Payload))
	}
}
