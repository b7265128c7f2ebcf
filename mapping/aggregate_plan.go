package mapping

import (
	"fmt"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// role is what the rows of one table are in one aggregate: its roots, or one of its parts.
type role struct {
	index     int // of the aggregate in the mapper's
	aggregate *aggregate
	part      int // index of the include, or rootPart

	plan  *plan
	shape *shape
	// identity are the columns that tell rows apart; joins those that refer to the root, or, of a root, those that each part
	// refers to.
	identity []int
	joins    [][]int

	// Of roots:
	kind  kindPlan
	topic string
	key   []int
	when  *expression.Condition
}

// rootPart is the part that the root is.
const rootPart = -1

// aggregated reports whether an aggregate gathers rows of the table.
func (m *Mapper) aggregated(name tableName) bool {
	for _, a := range m.aggregates {
		if a.root.matches(name.database, name.table) {
			return true
		}
		for _, part := range a.include {
			if part.pattern.matches(name.database, name.table) {
				return true
			}
		}
	}
	return false
}

// roles works out what the rows of the table of p, whose other fields are set, are in the aggregates.
func (m *Mapper) roles(p *plan, e *entry) (roles []*role, err error) {
	for i, a := range m.aggregates {
		if a.root.matches(p.table.Database, p.table.Name) {
			r, err := newRootRole(i, a, p, e)
			if err != nil {
				return nil, err
			}
			roles = append(roles, r)
		}
		for j, part := range a.include {
			if !part.pattern.matches(p.table.Database, p.table.Name) {
				continue
			}
			r, err := newPartRole(i, a, j, p, e)
			if err != nil {
				return nil, err
			}
			roles = append(roles, r)
		}
	}
	return roles, nil
}

func newRootRole(index int, a *aggregate, p *plan, e *entry) (r *role, err error) {
	r = &role{index: index, aggregate: a, part: rootPart, plan: p, identity: p.table.PrimaryKey, kind: planKind(a.kind, p.source)}
	if len(r.identity) == 0 {
		return nil, &OptionError{
			Key:     a.at + ".root",
			Problem: fmt.Sprintf("table %s.%s has no primary key, by which the events of an aggregate are told apart: add one to the table", p.table.Database, p.table.Name),
		}
	}
	if r.shape, err = partShape(p, e, a.at, a.columns, a.root.exact()); err != nil {
		return nil, err
	}
	for _, part := range a.include {
		var columns []int
		for _, join := range part.On {
			i := columnIndex(p.table, join.Root)
			if i < 0 {
				return nil, unknownColumn(p.table, part.at+".on."+join.Column, join.Root)
			}
			columns = append(columns, i)
		}
		r.joins = append(r.joins, columns)
	}
	if err := r.checkRoot(); err != nil {
		return nil, err
	}
	masked := &entry{at: a.at}
	if e != nil {
		masked.masks = e.masks
	}
	if r.key, err = masked.keyColumns(p.table, a.at+".key", a.key); err != nil {
		return nil, err
	}
	if r.topic, err = aggregateTopic(a, p.table.Database, p.table.Name); err != nil {
		return nil, err
	}
	if a.when != nil {
		scope := expression.Scope{Table: p.table, Ops: a.ops}
		if r.when, err = a.when.Condition(&scope); err != nil {
			return nil, &OptionError{Key: a.at + ".when", Problem: fmt.Sprintf("%v (table %s.%s)", err, p.table.Database, p.table.Name)}
		}
	}
	return r, nil
}

// checkRoot looks for parts that are called as columns of the root are, and for roots that their children do not name.
func (r *role) checkRoot() error {
	a, table := r.aggregate, r.plan.table
	shown := map[string]bool{}
	for i := range table.Columns {
		if name, ok := r.plan.shownAs(r.shape, i); ok {
			shown[name] = true
		}
	}
	for j, part := range a.include {
		if shown[part.Name] {
			return &OptionError{Key: part.at, Problem: fmt.Sprintf("table %s.%s has a column of this name, which stands beside it: choose another name for the part, or columns: {rename: …}", table.Database, table.Name)}
		}
		if a.children && !sameColumns(r.joins[j], table.PrimaryKey) {
			return &OptionError{
				Key:     part.at + ".on",
				Problem: fmt.Sprintf("on: children tells roots apart by what their children refer to, which must be the primary key of %s.%s, %s: write those columns, or leave children out", table.Database, table.Name, keyNames(table)),
			}
		}
	}
	if shown[removedMember] && a.ops.Has(canal.Update) || shown[removedMember] && a.children {
		return &OptionError{Key: a.at + ".columns", Problem: fmt.Sprintf("table %s.%s has a column %q, which is the name of what was removed from an aggregate: rename it, columns: {rename: {%s: …}}", table.Database, table.Name, removedMember, removedMember)}
	}
	return nil
}

func newPartRole(index int, a *aggregate, part int, p *plan, e *entry) (r *role, err error) {
	of := a.include[part]
	r = &role{index: index, aggregate: a, part: part, plan: p, identity: p.identity}
	if r.shape, err = partShape(p, e, of.at, of.Columns, of.pattern.exact()); err != nil {
		return nil, err
	}
	var columns []int
	for _, join := range of.On {
		i := columnIndex(p.table, join.Column)
		if i < 0 {
			return nil, unknownColumn(p.table, of.at+".on."+join.Column, join.Column)
		}
		columns = append(columns, i)
	}
	r.joins = [][]int{columns}
	return r, nil
}

// partShape is how the rows of a table are shown in an aggregate. The columns of the table's own entry count where the
// aggregate names none, and its masks always.
func partShape(p *plan, e *entry, at string, columns Columns, exact bool) (*shape, error) {
	if columns.isZero() && e != nil {
		return p.shape, nil
	}
	return newShape(p.table, at, columns, p.masks, exact)
}

// shownAs is the name under which an event shows column i.
func (p *plan) shownAs(s *shape, i int) (name string, ok bool) {
	if s == nil {
		return p.table.Columns[i].Name, true
	}
	return s.names[i], s.members[i] != nil
}

func aggregateTopic(a *aggregate, database, table string) (string, error) {
	topic, err := a.topic.render(database, table, a.root.shard(database, table))
	if err != nil {
		return "", &OptionError{Key: a.at + ".topic", Problem: fmt.Sprintf("table %s.%s: %v", database, table, err)}
	}
	return topic, nil
}

func sameColumns(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	in := map[int]bool{}
	for _, i := range a {
		in[i] = true
	}
	for _, i := range b {
		if !in[i] {
			return false
		}
	}
	return true
}

func keyNames(t *canal.Table) (names []string) {
	for _, i := range t.PrimaryKey {
		names = append(names, t.Columns[i].Name)
	}
	return names
}
