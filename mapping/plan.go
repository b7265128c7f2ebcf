package mapping

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// changeKind is what the default mapping calls a change.
type changeKind uint8

const (
	created changeKind = iota
	updated
	deleted
	truncated // the table as a whole
)

func (k changeKind) String() string {
	switch k {
	case created:
		return "created"
	case updated:
		return "updated"
	case deleted:
		return "deleted"
	case truncated:
		return "truncated"
	}
	return "unknown"
}

// plan is all that the mapping of a row needs and that depends on its table alone.
type plan struct {
	table   *canal.Table
	name    string // "database.table"
	logical string // the table's name, or what the entry calls all its tables
	topic   string
	source  string
	// texts are what expressions know of the table.
	texts struct{ database, table, shard []byte }
	// emitters are the compiled rules; nil: the default mapping.
	emitters []*emitter
	// shape is how whole rows are shown; nil: as members say.
	shape *shape
	// output is how the events leave; outbox is not nil where rows are messages.
	output output
	outbox *outboxPlan
	// masks hide values of columns; nil: of none.
	masks []expression.Mask
	// kinds are indexed by changeKind, of those that are about a row.
	kinds [3]kindPlan
	// members are the columns' names as JSON strings, each with a comma before it and its colon.
	members [][]byte
	// key are indexes of the columns of the partition key; empty: name stands in.
	key []int
	// identity are indexes of the columns that the event id is made of.
	identity []int
	// roles are what rows are in aggregates; quiet: they have no events of their own.
	roles []*role
	quiet bool
	// hashNames are the fields of the id's hash that name the table.
	hashNames []byte
}

type kindPlan struct {
	name string // "orders.created"
	// envelope is the event's text between id and subject.
	envelope []byte
	// hash is the field of the id's hash that names the type.
	hash []byte
}

// plan works out how the rows of table are mapped. The table must be captured.
func (m *Mapper) plan(table *canal.Table) (p *plan, err error) {
	i := m.decision(table.Database, table.Name)
	if i == notCaptured {
		return nil, fmt.Errorf("plan the mapping of %s.%s: the table is not captured", table.Database, table.Name)
	}
	var e *entry // stays nil for a table that is captured for aggregates alone
	topic := ""
	if i != onlyAggregated {
		e = m.entries[i]
		if topic, err = e.topicOf(e.topic, table.Database, table.Name); err != nil {
			return nil, err
		}
	}
	p = m.planTable(table, e, topic)
	p.quiet = e == nil
	p.identity = table.PrimaryKey
	if len(p.identity) == 0 {
		for i := range table.Columns {
			p.identity = append(p.identity, i)
		}
	}
	for i := range table.Columns {
		p.members = append(p.members, append(appendString([]byte{','}, []byte(table.Columns[i].Name)), ':'))
	}
	for kind := range p.kinds {
		p.kinds[kind] = planKind(p.logical+"."+changeKind(kind).String(), p.source)
	}
	if err := p.planEntry(table, e); err != nil {
		return nil, err
	}
	if p.roles, err = m.roles(p, e); err != nil {
		return nil, err
	}
	return p, nil
}

// planEntry works out what the table's entry says of its rows; e is nil where it has none.
func (p *plan) planEntry(table *canal.Table, e *entry) (err error) {
	if e == nil {
		return nil
	}
	if p.masks, err = newMasks(table, e.at, e.masks, e.maskKey, e.pattern.exact()); err != nil {
		return err
	}
	if p.key, err = e.keyColumns(table, e.at+".key", e.key); err != nil {
		return err
	}
	if e.outbox != nil {
		return p.planOutbox(e)
	}
	if p.shape, err = newShape(table, e.at, e.columns, p.masks, e.pattern.exact()); err != nil {
		return err
	}
	if err := p.checkFlat(e); err != nil {
		return err
	}
	if p.emitters, err = e.emitters(p, expression.OpSet(canal.Insert, canal.Update, canal.Delete)); err != nil {
		return err
	}
	return nil
}

// checkFlat refuses a column that is called as what stands beside the columns.
func (p *plan) checkFlat(e *entry) error {
	for i := range p.table.Columns {
		if name, shown := p.shownAs(p.shape, i); p.output.flat && shown && name == "old" {
			return &OptionError{
				Key:     e.at + ".envelope",
				Problem: fmt.Sprintf("table %s has a column %q, where envelope: row shows what an update replaced: rename it, columns: {rename: {%s: …}}, or write another envelope", p.name, name, p.table.Columns[i].Name),
			}
		}
	}
	return nil
}

// planTable works out what does not depend on the table's columns; e may be nil.
func (m *Mapper) planTable(table *canal.Table, e *entry, topic string) *plan {
	p := &plan{
		table:     table,
		name:      table.Database + "." + table.Name,
		topic:     topic,
		source:    "/" + url.PathEscape(m.name) + "/" + url.PathEscape(table.Database) + "/" + url.PathEscape(table.Name),
		hashNames: appendIDText(appendIDText(nil, table.Database), table.Name),
	}
	p.texts.database, p.texts.table = []byte(table.Database), []byte(table.Name)
	p.logical = table.Name
	if e != nil && e.name != "" {
		p.logical = e.name
	}
	p.output = output{format: structuredFormat}
	if e != nil {
		p.output = e.output
		p.texts.shard = []byte(e.pattern.shard(table.Database, table.Name))
	}
	return p
}

func planKind(name, source string) kindPlan {
	b := append([]byte(nil), `","source":`...)
	b = appendString(b, []byte(source))
	b = append(b, `,"type":`...)
	b = appendString(b, []byte(name))
	return kindPlan{name: name, envelope: b, hash: appendIDText(nil, name)}
}

// keyColumns finds the columns of a partition key: those of names, or the primary key's. A key of hidden values would be one
// key for all rows.
func (e *entry) keyColumns(table *canal.Table, at string, names []string) ([]int, error) {
	columns := table.PrimaryKey
	if len(names) > 0 {
		columns = nil
	}
	for _, name := range names {
		i := columnIndex(table, name)
		if i < 0 {
			return nil, unknownColumn(table, at, name)
		}
		columns = append(columns, i)
	}
	for _, i := range columns {
		name := table.Columns[i].Name
		for _, m := range e.masks {
			if m.Column == name && m.Method != maskHash {
				return nil, &OptionError{
					Key:     e.at + ".mask." + name,
					Problem: fmt.Sprintf("the column is in the key of the events of table %s.%s, where %s would make one key of many: write hash, or another key", table.Database, table.Name, m.Method),
				}
			}
		}
	}
	return columns, nil
}

func columnNames(table *canal.Table) string {
	var names []string
	for i := range table.Columns {
		names = append(names, table.Columns[i].Name)
	}
	return strings.Join(names, ", ")
}

// fits reports whether the plan holds for table, too: the same names, columns and primary key; with rules, the same
// types.
func (p *plan) fits(table *canal.Table) bool {
	same := func(a, b canal.Column) bool { return a.Name == b.Name }
	if p.emitters != nil || p.roles != nil {
		same = func(a, b canal.Column) bool {
			return a.Name == b.Name && a.Type == b.Type && a.Meta == b.Meta && a.Unsigned == b.Unsigned && a.Charset == b.Charset && slices.Equal(a.Labels, b.Labels)
		}
	}
	return p.table == table ||
		p.table.Database == table.Database && p.table.Name == table.Name &&
			slices.Equal(p.table.PrimaryKey, table.PrimaryKey) &&
			slices.EqualFunc(p.table.Columns, table.Columns, same)
}
