package mapping

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// aggregatePlace is added to the place of a root's first change, or of its children's, in the sequence of an aggregate's
// event: it shows the end of the transaction, so it comes behind the events of all single changes.
const aggregatePlace = 5_000_000_000

// removedMember is where an aggregate shows the rows that do not belong to it any more.
const removedMember = "removed"

// End appends what depends on the transaction as a whole: the events of its aggregates, and those of single changes that
// are part of none after all. It follows the last row of the last piece; start is where the events of this piece begin in
// dst, which End brings into the order of their sequence. The error is as of Append; dst is then returned as it was.
func (w *Worker) End(dst []Event, start int) ([]Event, error) {
	g := w.gathered
	if g == nil {
		return dst, nil
	}
	w.gathered = nil
	events := dst
	fired := map[uint64]byte{} // events by the place of their first change
	for i, a := range w.mapper.aggregates {
		of := &g.aggregates[i]
		if of.failed {
			continue
		}
		var err error
		if events, err = w.appendAggregates(events, g, of, a, fired); err != nil {
			return dst, fmt.Errorf("map aggregate %s in transaction %s: %w", a.name, w.transaction.name, err)
		}
	}
	for i := range g.held {
		if !g.held[i].used {
			events = append(events, g.held[i].event)
		}
	}
	slices.SortStableFunc(events[start:], func(a, b Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, nil
}

// belonging are the rows that belong to one root, by part: those that are there, and those that are not any more.
type belonging struct {
	present, removed [][]*rowState
}

func (b *belonging) changed() bool {
	for i := range b.present {
		if slices.ContainsFunc(b.present[i], (*rowState).differs) || len(b.removed[i]) > 0 {
			return true
		}
	}
	return false
}

// differs reports whether the row is other than before the transaction.
func (s *rowState) differs() bool {
	return (s.before == nil) != (s.now == nil) || !slices.EqualFunc(s.before, s.now, func(a, b canal.Value) bool {
		return a.Kind == canal.KindAbsent || b.Kind == canal.KindAbsent || a.Equal(b)
	})
}

// appendAggregates appends the events of one aggregate, in the order of their roots.
func (w *Worker) appendAggregates(dst []Event, g *Gathered, of *gathered, a *aggregate, fired map[uint64]byte) ([]Event, error) {
	parts, failure := w.children(of, a)
	if failure != nil {
		return w.skipOr(dst, a, failure)
	}
	for _, root := range of.roots.order {
		if root.before == nil && root.now == nil {
			continue
		}
		children := root.claim(w, parts)
		op := root.op()
		if !a.ops.Has(op) && (!a.children || op != canal.Update || !children.changed()) {
			continue
		}
		if op == canal.Update && !root.differs() && (!a.children || !children.changed()) {
			continue // as it was: by REPLACE, or changed and changed back
		}
		event, ok, failure := w.aggregateEvent(root, children, fired)
		if failure != nil {
			if dst, err := w.skipOr(dst, a, failure); err != nil {
				return dst, err
			}
			continue
		}
		if ok {
			dst = append(dst, event)
			g.use(root, children)
		}
	}
	if a.children {
		return w.appendOrphans(dst, g, a, parts, fired)
	}
	return dst, nil
}

// skipOr returns the failure, or takes note of it where the aggregate says on_error: skip.
func (w *Worker) skipOr(dst []Event, a *aggregate, failure *RuleError) ([]Event, error) {
	if !a.skipping {
		return dst, failure
	}
	w.skipped = append(w.skipped, Skip{Table: a.name, Transaction: w.transaction.name, Err: failure})
	return dst, nil
}

// op is what became of the row in the transaction as a whole.
func (s *rowState) op() canal.Op {
	switch {
	case s.before == nil:
		return canal.Insert
	case s.now == nil:
		return canal.Delete
	}
	return canal.Update
}

// family is the rows of all parts that refer to one root, by the values of the columns that they refer to.
type family struct {
	belonging
	root    []canal.Value // the columns' values
	place   uint64        // of the first change
	claimed bool          // its root is in the transaction
}

// children sorts the rows of all parts by the root that they refer to. What each part refers to may differ, so that there is
// a key space for each.
func (w *Worker) children(of *gathered, a *aggregate) (parts []map[string]*family, failure *RuleError) {
	parts = make([]map[string]*family, len(a.include))
	for i := range a.include {
		parts[i] = map[string]*family{}
		if of.parts == nil {
			continue
		}
		for _, s := range of.parts[i].order {
			from, to, err := w.joinKeys(s)
			if err != nil {
				return nil, &RuleError{Rule: a.include[i].at, Type: a.kind, Part: "on", Key: s.role.plan.name, Err: err}
			}
			if to != "" {
				f := familyOf(parts[i], to, len(a.include), s, s.now)
				f.present[i] = append(f.present[i], s)
			}
			if from != "" && from != to {
				f := familyOf(parts[i], from, len(a.include), s, s.before)
				f.removed[i] = append(f.removed[i], s)
			}
		}
	}
	return parts, nil
}

func familyOf(families map[string]*family, key string, parts int, s *rowState, row []canal.Value) *family {
	f := families[key]
	if f == nil {
		f = &family{belonging: belonging{present: make([][]*rowState, parts), removed: make([][]*rowState, parts)}, place: s.place}
		for _, column := range s.role.joins[0] {
			f.root = append(f.root, row[column])
		}
		families[key] = f
	}
	f.place = min(f.place, s.place)
	return f
}

// joinKeys are the keys of the root that a row referred to before, where that matters, and of the one that it refers to now;
// empty where there is none.
func (w *Worker) joinKeys(s *rowState) (from, to string, err error) {
	r := s.role
	if s.before != nil && r.aggregate.wantsChanges() {
		from, err = w.joinKey(r, r.part, r.joins[0], s.before)
	}
	if s.now != nil && err == nil {
		to, err = w.joinKey(r, r.part, r.joins[0], s.now)
	}
	return from, to, err
}

// joinKey tells roots apart by the text of the columns that a part refers to, and by the shard. Numbers of different types are
// equal by it, as they are for the server. It is empty where one of the columns is NULL: that refers to nothing.
func (w *Worker) joinKey(r *role, part int, columns []int, row []canal.Value) (string, error) {
	of, table := r.aggregate.include[part].pattern, r.plan.table
	b := w.text[:0]
	if !of.exact() && !r.aggregate.root.exact() {
		if r.part == rootPart {
			of = r.aggregate.root
		}
		b = appendIDText(b, of.shard(table.Database, table.Name))
	}
	ok := true
	for _, i := range columns {
		if row[i].Kind == canal.KindNull {
			return "", nil
		}
		if b, ok = appendKeyPart(append(b, ','), row[i]); !ok {
			return "", fmt.Errorf("column %q of table %s: %w; set binlog_row_image=FULL on the server", table.Columns[i].Name, r.plan.name, ErrKeyNotCarried)
		}
	}
	w.text = b
	return string(b), nil
}

// claim returns the rows that belong to a root, as it was or as it is.
func (s *rowState) claim(w *Worker, parts []map[string]*family) *belonging {
	b := &belonging{present: make([][]*rowState, len(parts)), removed: make([][]*rowState, len(parts))}
	row := s.now
	if row == nil {
		row = s.before
	}
	for i, families := range parts {
		key, err := w.joinKey(s.role, i, s.role.joins[i], row)
		if f := families[key]; err == nil && f != nil {
			f.claimed = true
			b.present[i], b.removed[i] = f.present[i], f.removed[i]
		}
	}
	return b
}

// use marks the events of rows that became part of an aggregate.
func (g *Gathered) use(root *rowState, children *belonging) {
	mark := func(s *rowState) {
		for _, i := range s.held {
			g.held[i].used = true
		}
	}
	if root != nil {
		mark(root)
	}
	for i := range children.present {
		for _, s := range children.present[i] {
			mark(s)
		}
		for _, s := range children.removed[i] {
			mark(s)
		}
	}
}

// aggregateEvent makes the event of a root that is in the transaction.
func (w *Worker) aggregateEvent(root *rowState, children *belonging, fired map[uint64]byte) (event Event, ok bool, failure *RuleError) {
	r := root.role
	shown := root.now
	if shown == nil {
		shown = root.before
	}
	fail := func(part string, err error) (Event, bool, *RuleError) {
		return Event{}, false, &RuleError{Rule: r.aggregate.at, Type: r.aggregate.kind, Part: part, Key: w.keyForMessage(r.plan, change{shown: image{top: shown}}), Err: err}
	}
	if r.when != nil {
		row := &canal.Row{Table: r.plan.table, Op: root.op(), Before: root.before, After: root.now}
		w.prepareRow(r.plan, row)
		truth, err := r.when.Eval(&w.row)
		if err != nil {
			return fail("when", err)
		}
		if truth != expression.True {
			return Event{}, false, nil
		}
	}
	if err := w.writeKeyOf(r.plan, r.key, image{top: shown}); err != nil {
		return fail("key", err)
	}
	identity := root.before
	if identity == nil {
		identity = root.now
	}
	marks := w.writeAggregateEnvelope(r.plan, &r.kind, root.place, fired, r.plan.table.PrimaryKey, identity)
	w.payload = append(w.payload, `,"data":`...)
	start := len(w.payload)
	w.payload = r.plan.appendImage(w.payload, r.shape, image{top: shown})
	w.payload = w.payload[:len(w.payload)-1]
	if err := w.appendParts(r.aggregate, children, len(w.payload) == start+1, root.now == nil); err != nil {
		return fail("include", err)
	}
	w.payload = append(w.payload, '}', '}')
	event = w.finish(&r.aggregate.output, r.plan, r.aggregate.kind, marks)
	event.Topic = r.topic
	return event, true, nil
}

// writeAggregateEnvelope is writeEnvelope for an aggregate. The ordinal in its id is 0: no single change has that.
func (w *Worker) writeAggregateEnvelope(p *plan, kind *kindPlan, place uint64, fired map[uint64]byte, identity []int, row []canal.Value) marks {
	half := fired[place]
	fired[place]++
	of := *p
	of.identity = identity
	c := change{half: min(half, byte(len(sequenceDigits)-1)), identity: image{top: row}}
	return w.writeEnvelope(&of, kind, &canal.Row{Place: place + aggregatePlace}, c)
}

// appendParts appends the members of an aggregate's parts to w.payload. Of a root that is gone they show the rows that
// went with it.
func (w *Worker) appendParts(a *aggregate, children *belonging, first, gone bool) error {
	comma := func() {
		if !first {
			w.payload = append(w.payload, ',')
		}
		first = false
	}
	for i, part := range a.include {
		rows, before := children.present[i], false
		if gone {
			rows, before = children.removed[i], true
		}
		comma()
		w.payload = append(appendString(w.payload, []byte(part.Name)), ':')
		if !part.One {
			w.appendRows(rows, before)
			continue
		}
		switch len(rows) {
		case 0:
			w.payload = append(w.payload, "null"...)
		case 1:
			w.appendRow(rows[0], before)
		default:
			return fmt.Errorf("%d rows of %s belong to it, and %s says one: true", len(rows), rows[0].role.plan.name, part.at)
		}
	}
	if gone || !slices.ContainsFunc(children.removed, func(rows []*rowState) bool { return len(rows) > 0 }) {
		return nil
	}
	comma()
	w.payload = append(w.payload, `"`+removedMember+`":`...)
	start := len(w.payload)
	for i, part := range a.include {
		if len(children.removed[i]) > 0 {
			w.payload = append(w.payload, ',')
			w.payload = append(appendString(w.payload, []byte(part.Name)), ':')
			w.appendRows(children.removed[i], true)
		}
	}
	w.payload = closeObject(w.payload, start)
	return nil
}

func (w *Worker) appendRows(rows []*rowState, before bool) {
	w.payload = append(w.payload, '[')
	for i, s := range rows {
		if i > 0 {
			w.payload = append(w.payload, ',')
		}
		w.appendRow(s, before)
	}
	w.payload = append(w.payload, ']')
}

func (w *Worker) appendRow(s *rowState, before bool) {
	row := s.now
	if before {
		row = s.before
	}
	w.payload = s.role.plan.appendImage(w.payload, s.role.shape, image{top: row})
}

// appendOrphans appends the events of roots whose children alone are in the transaction: they show the columns that
// those refer to.
func (w *Worker) appendOrphans(dst []Event, g *Gathered, a *aggregate, parts []map[string]*family, fired map[uint64]byte) ([]Event, error) {
	families := map[string]*family{}
	for i := range parts {
		for key, f := range parts[i] {
			all := families[key]
			if all == nil {
				families[key] = f
				continue
			}
			all.present[i], all.removed[i] = f.present[i], f.removed[i]
			all.place, all.claimed = min(all.place, f.place), all.claimed || f.claimed
		}
	}
	var orphans []*family
	for _, f := range families {
		if !f.claimed && f.changed() {
			orphans = append(orphans, f)
		}
	}
	slices.SortFunc(orphans, func(x, y *family) int { return cmp.Compare(x.place, y.place) })
	p, topic, err := w.mapper.childrenPlan(a)
	if err != nil {
		return dst, err
	}
	kind := planKind(a.kind, p.source)
	for _, f := range orphans {
		if err := w.writeKeyOf(p, p.key, image{top: f.root}); err != nil {
			return dst, err
		}
		marks := w.writeAggregateEnvelope(p, &kind, f.place, fired, p.identity, f.root)
		w.payload = append(w.payload, `,"data":`...)
		w.payload = p.appendImage(w.payload, nil, image{top: f.root})
		w.payload = w.payload[:len(w.payload)-1]
		if err := w.appendParts(a, &f.belonging, false, false); err != nil {
			failure := &RuleError{Rule: a.at, Type: a.kind, Part: "include", Key: string(w.key), Err: err}
			if dst, err = w.skipOr(dst, a, failure); err != nil {
				return dst, err
			}
			continue
		}
		w.payload = append(w.payload, '}', '}')
		event := w.finish(&a.output, p, a.kind, marks)
		event.Topic = topic
		dst = append(dst, event)
		g.use(nil, &f.belonging)
	}
	return dst, nil
}

// childrenPlan is the plan of a root of which nothing is known but the columns that its children refer to.
func (m *Mapper) childrenPlan(a *aggregate) (p *plan, topic string, err error) {
	table := &canal.Table{Database: a.root.database.nodes[0].text, Name: a.root.table.nodes[0].text}
	for _, column := range a.include[0].rootColumns() {
		table.Columns = append(table.Columns, canal.Column{Name: column})
	}
	p = m.planTable(table, nil, "")
	for i, column := range table.Columns {
		p.members = append(p.members, append(appendString([]byte{','}, []byte(column.Name)), ':'))
		p.identity = append(p.identity, i)
	}
	for _, column := range a.key {
		p.key = append(p.key, columnIndex(table, column))
	}
	if len(a.key) == 0 {
		p.key = p.identity
	}
	topic, err = aggregateTopic(a, table.Database, table.Name)
	return p, topic, err
}
