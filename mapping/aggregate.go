package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// DefaultAggregateSize is how many bytes of rows one transaction may hold for an aggregate.
const DefaultAggregateSize = 8 << 20

// minAggregateSize leaves room for a row.
const minAggregateSize = 4 << 10

// AggregateRule is what an entry has in the place of Table and Emit to make one event of the rows of a transaction that
// belong together: a root row, and the rows of other tables that refer to it, all as they are at the end of the transaction.
type AggregateRule struct {
	// Aggregate is what the whole is called, such as order; an entry that has it is an aggregate.
	Aggregate string `yaml:"aggregate"`
	// Root is the pattern of the table that has one row for each aggregate.
	Root string `yaml:"root"`
	// On says what has to become of the root row in the transaction as a whole: insert, update, delete; or children: rows
	// that belong to it were changed, and it was neither inserted nor deleted.
	On Operations `yaml:"on"`
	// Type of the events, such as "order.placed".
	Type string `yaml:"type"`
	// When is a condition over the root row, old before the transaction and new after it. Empty is always.
	When string `yaml:"when"`
	// Include are the tables whose rows belong to a root, and what the list of them is called.
	Include Includes `yaml:"include"`
	// MaxSize bounds the bytes of the rows that one transaction holds for the aggregate; 0 is DefaultAggregateSize. What is
	// larger is an error.
	MaxSize Size `yaml:"max_size"`
	// OnError is what becomes of an aggregate that cannot be made, as in EmitRule.
	OnError string `yaml:"on_error"`
}

// Size is a number of bytes.
type Size int64

// Includes are the parts of an aggregate in the order in which events show them.
type Includes []Include

// Include is one part of an aggregate: the rows of a table.
type Include struct {
	Name string
	// Table is a pattern. With a pattern of several tables, a row belongs to roots of the same shard.
	Table string `yaml:"table"`
	// On are the columns by which its rows refer to the root's.
	On Joins `yaml:"on"`
	// One says that there is at most one row, which is shown as an object, or null, rather than in a list.
	One bool `yaml:"one"`
	// Columns that are shown; those of the table's own entry when empty.
	Columns Columns `yaml:"columns"`
}

// Joins are pairs of columns whose values are equal in rows that belong together.
type Joins []Join

// Join is a column of the included table and the one of the root that it refers to.
type Join struct{ Column, Root string }

// isZero reports whether the entry is about single rows.
func (a *AggregateRule) isZero() bool { return a.Aggregate == "" && a.Root == "" && a.Include == nil }

// checkMisplaced refuses what an entry has beside its rules and belongs into them.
func (r *ruleReader) checkMisplaced(at string, a *AggregateRule) {
	for key, there := range map[string]bool{"on": len(a.On) > 0, "type": a.Type != "", "when": a.When != "", "on_error": a.OnError != ""} {
		if there {
			r.mistake(at+"."+key, "it belongs into a rule: emit: [{type: order.paid, on: update, when: …}]")
		}
	}
	if a.MaxSize != 0 {
		r.mistake(at+".max_size", "it belongs to an aggregate: remove it")
	}
}

// onChildren is the value of AggregateRule.On that is no kind of change of the root.
const onChildren = "children"

// aggregate is an AggregateRule, read.
type aggregate struct {
	at, name, kind string
	root           pattern
	ops            expression.Ops // of the root
	children       bool
	when           *expression.Expression // nil: always
	topic          *topicTemplate
	key            []string
	columns        Columns
	include        []include
	maxSize        int64
	skipping       bool
	output         output
}

// include is an Include, read.
type include struct {
	Include
	at      string
	pattern pattern
}

// readAggregate reads an entry that is an aggregate. i is its index in events.
func (r *ruleReader) readAggregate(i int, t *TableRule) *aggregate {
	at := fmt.Sprintf("events[%d]", i)
	a := &aggregate{at: at, name: t.Aggregate, kind: t.Type, key: t.Key, columns: t.Columns, maxSize: int64(t.MaxSize)}
	a.output = r.readOutput(at, t)
	if t.Tombstones {
		r.mistake(at+".tombstones", "they go with entries of a table, whose deletions they follow")
	}
	if t.Aggregate == "" {
		r.mistake(at+".aggregate", "missing: write what the whole is called, aggregate: order")
	}
	if t.Table != "" || t.Emit != nil || t.Mask != nil {
		r.mistake(at, "table, emit and mask do not go with aggregate: write root in the place of table, and rules of single rows and masks in an entry of their own for the table")
	}
	a.root = r.readPattern(at+".root", t.Root, "shop.orders")
	a.topic = r.readTopic(at, t.Topic, t.Topics)
	if a.topic != nil && a.topic.dynamic() {
		r.mistake(at+".topic", "the topic of an aggregate is not made of values: write it out, or with {database}, {table} and {shard}")
	}
	switch {
	case t.Type == "":
		r.mistake(at+".type", "missing: write what the event is called, such as %s.placed", t.Aggregate)
	case !typePattern.MatchString(t.Type):
		r.mistake(at+".type", `write up to 128 letters, digits, ".", "_", "-", ":" and "/", such as order.placed`)
	}
	a.ops, a.children = r.readAggregateOn(at+".on", t.On)
	if t.When != "" {
		a.when = r.read(at+".when", t.When)
		if a.children {
			r.mistake(at+".when", "the root row is not in a transaction that changes its children alone: remove when, or children from on")
		}
	}
	r.checkKeyColumns(at+".key", t.Key)
	r.checkColumns(at+".columns", t.Columns)
	if len(t.Include) == 0 {
		r.mistake(at+".include", "missing: write the tables whose rows belong to the root, such as {items: {table: shop.order_items, on: {order_id: id}}}")
	}
	for _, part := range t.Include {
		a.include = append(a.include, r.readInclude(at+".include."+part.Name, part))
	}
	r.checkChildren(a)
	switch {
	case a.maxSize == 0:
		a.maxSize = DefaultAggregateSize
	case a.maxSize < minAggregateSize:
		r.mistake(at+".max_size", "write at least 4KiB; 8MiB is the default")
	}
	a.skipping = r.readOnError(at+".on_error", t.OnError)
	return a
}

func (r *ruleReader) readPattern(key, text, example string) pattern {
	if text == "" {
		r.mistake(key, "missing: write database.table, such as %s", example)
		return pattern{}
	}
	p, err := parsePattern(text)
	if err != nil {
		r.mistake(key, "%v", err)
	}
	return p
}

func (r *ruleReader) readAggregateOn(key string, on Operations) (ops expression.Ops, children bool) {
	if len(on) == 0 {
		r.mistake(key, "missing: write insert, update, delete or children, or a list of them")
	}
	for _, name := range on {
		op, ok := operationNames[name]
		switch {
		case name == onChildren:
			children = true
		case !ok || op == canal.Truncate:
			r.mistake(key, "%q does not go with an aggregate: write insert, update, delete or children, or a list of them", name)
		default:
			ops |= expression.OpSet(op)
		}
	}
	return ops, children
}

func (r *ruleReader) readInclude(at string, part Include) include {
	p := include{Include: part, at: at, pattern: r.readPattern(at+".table", part.Table, "shop.order_items")}
	if len(part.On) == 0 {
		r.mistake(at+".on", "missing: write the column that refers to the root, and the root's, such as {order_id: id}")
	}
	for i, join := range part.On {
		same := func(other Join) bool { return other.Root == join.Root || other.Column == join.Column }
		switch {
		case join.Root == "" || join.Column == "":
			r.mistake(at+".on", "a column is missing: write {order_id: id}")
		case slices.ContainsFunc(part.On[:i], same):
			r.mistake(at+".on."+join.Column, "a column stands in it twice: remove one of them")
		}
	}
	r.checkColumns(at+".columns", part.Columns)
	return p
}

// checkChildren looks whether the root's key can be told from its children alone.
func (r *ruleReader) checkChildren(a *aggregate) {
	if !a.children {
		return
	}
	if !a.root.exact() {
		r.mistake(a.at+".root", "on: children needs one table here: the pattern does not say to which of its tables a child belongs; write an entry for each, or leave children out")
	}
	for _, part := range a.include {
		if len(a.include) > 0 && !slices.Equal(part.rootColumns(), a.include[0].rootColumns()) {
			r.mistake(part.at+".on", "on: children needs the same columns of the root in every part, in one order: %s", strings.Join(a.include[0].rootColumns(), ", "))
		}
		for _, column := range a.key {
			if !slices.Contains(part.rootColumns(), column) {
				r.mistake(a.at+".key", "column %q of the root is not known where children alone are changed: write one of %s, or leave key out", column, strings.Join(part.rootColumns(), ", "))
			}
		}
	}
}

func (p include) rootColumns() []string {
	names := make([]string, len(p.On))
	for i, join := range p.On {
		names[i] = join.Root
	}
	return names
}

// checkAggregateTypes refuses two aggregates of one root and type: their events could have one id.
func (r *ruleReader) checkAggregateTypes(aggregates []*aggregate, texts []string) {
	for i, a := range aggregates {
		for j, earlier := range aggregates[:i] {
			if texts[i] == texts[j] && a.kind == earlier.kind && a.kind != "" {
				r.mistake(a.at+".type", "%s is given to the same root by %s already, and the id of an event is made of its type: give it another type, or join both in one entry, on: [insert, update]", a.kind, earlier.at)
			}
		}
	}
}
