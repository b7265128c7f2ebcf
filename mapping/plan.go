package mapping

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
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
	table  *canal.Table
	name   string // "database.table"
	topic  string
	source string
	// kinds are indexed by changeKind, of those that are about a row.
	kinds [3]kindPlan
	// members are the columns' names as JSON strings, each with its colon.
	members [][]byte
	// key are indexes of the columns of the partition key; empty: name stands in.
	key []int
	// identity are indexes of the columns that the event id is made of.
	identity []int
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
func (m *Mapper) plan(table *canal.Table) (*plan, error) {
	topic, err := m.Topic(table.Database, table.Name)
	if err != nil {
		return nil, err
	}
	entry, _ := m.Match(table.Database, table.Name)
	key, err := keyColumns(table, entry, m.rules[entry].key)
	if err != nil {
		return nil, err
	}
	p := m.planTable(table, topic)
	p.key = key
	p.identity = table.PrimaryKey
	if len(p.identity) == 0 {
		for i := range table.Columns {
			p.identity = append(p.identity, i)
		}
	}
	for i := range table.Columns {
		p.members = append(p.members, append(appendString(nil, []byte(table.Columns[i].Name)), ':'))
	}
	for kind := range p.kinds {
		p.kinds[kind] = planKind(table.Name+"."+changeKind(kind).String(), p.source)
	}
	return p, nil
}

// planTable works out what does not depend on the table's columns.
func (m *Mapper) planTable(table *canal.Table, topic string) *plan {
	return &plan{
		table:     table,
		name:      table.Database + "." + table.Name,
		topic:     topic,
		source:    "/" + url.PathEscape(m.name) + "/" + url.PathEscape(table.Database) + "/" + url.PathEscape(table.Name),
		hashNames: appendIDText(appendIDText(nil, table.Database), table.Name),
	}
}

func planKind(name, source string) kindPlan {
	b := append([]byte(nil), `","source":`...)
	b = appendString(b, []byte(source))
	b = append(b, `,"type":`...)
	b = appendString(b, []byte(name))
	return kindPlan{name: name, envelope: b, hash: appendIDText(nil, name)}
}

// keyColumns finds the columns of the partition key: those that the entry names, or
// the primary key's.
func keyColumns(table *canal.Table, entry int, names []string) ([]int, error) {
	if len(names) == 0 {
		return table.PrimaryKey, nil
	}
	var columns []int
	for _, name := range names {
		i := slices.IndexFunc(table.Columns, func(c canal.Column) bool { return c.Name == name })
		if i < 0 {
			return nil, &OptionError{
				Key: fmt.Sprintf("events[%d].key", entry),
				Problem: fmt.Sprintf("table %s.%s has no column %q: write one of %s",
					table.Database, table.Name, name, columnNames(table)),
			}
		}
		columns = append(columns, i)
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

// fits reports whether the plan holds for table, too: the same names, columns and primary key.
func (p *plan) fits(table *canal.Table) bool {
	same := func(a, b canal.Column) bool { return a.Name == b.Name }
	return p.table == table ||
		p.table.Database == table.Database && p.table.Name == table.Name &&
			slices.Equal(p.table.PrimaryKey, table.PrimaryKey) &&
			slices.EqualFunc(p.table.Columns, table.Columns, same)
}
