package mapping

import (
	"fmt"
	"sync"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// maxDecisions bounds what a Mapper remembers of tables that it was asked about: servers on
// which tables come and go must not make it grow.
const maxDecisions = 1 << 16

// Mapper turns row changes into events. It is safe for use by several goroutines; each
// maps with a Worker of its own.
type Mapper struct {
	name   string
	tables string // the patterns of entries and exclude, as they are written
	options

	mu        sync.RWMutex
	decisions map[tableName]int // index into entries, or notCaptured
}

// Decisions that are no index.
const (
	notCaptured    = -1
	onlyAggregated = -2 // its rows are captured for aggregates, and have no events of their own
)

type tableName struct{ database, table string }

// New returns a Mapper, or the mistakes in opts as Validate gives them.
func New(opts Options) (*Mapper, error) {
	read, err := opts.read()
	if err != nil {
		return nil, fmt.Errorf("read the mapping: %w", err)
	}
	return &Mapper{name: opts.Name, tables: opts.tables(), options: read, decisions: map[tableName]int{}}, nil
}

// SameTables reports whether other captures the tables that m does, whichever there are.
func (m *Mapper) SameTables(other *Mapper) bool { return m.tables == other.tables }

// Captured reports whether the table's changes become events. Names are compared exactly.
func (m *Mapper) Captured(database, table string) bool {
	return m.decision(database, table) != notCaptured
}

// Match gives the index of the entry of Options.Tables that decides about a table, and
// whether there is one.
func (m *Mapper) Match(database, table string) (entry int, ok bool) {
	entry = m.decision(database, table)
	return entry, entry >= 0
}

func (m *Mapper) decision(database, table string) int {
	name := tableName{database, table}
	m.mu.RLock()
	entry, known := m.decisions[name]
	m.mu.RUnlock()
	if !known {
		entry = m.decide(name)
		m.mu.Lock()
		if len(m.decisions) >= maxDecisions {
			clear(m.decisions)
		}
		m.decisions[name] = entry
		m.mu.Unlock()
	}
	return entry
}

func (m *Mapper) decide(name tableName) int {
	for _, p := range m.exclude {
		if p.matches(name.database, name.table) {
			return notCaptured
		}
	}
	for i, e := range m.entries {
		if e != nil && e.pattern.matches(name.database, name.table) {
			return i
		}
	}
	if m.aggregated(name) {
		return onlyAggregated
	}
	return notCaptured
}

// Topic gives the topic of a captured table's events, of those that rules send elsewhere apart; empty where it depends on
// the row. Its error is an *OptionError: the names make no topic.
func (m *Mapper) Topic(database, table string) (string, error) {
	i, ok := m.Match(database, table)
	if !ok {
		return "", fmt.Errorf("name the topic of %s.%s: the table is not captured", database, table)
	}
	return m.entries[i].topicOf(m.entries[i].topic, database, table)
}

// topicOf renders the entry's topic, or that of one of its rules, for a table; empty where it depends on the row.
func (e *entry) topicOf(template *topicTemplate, database, table string) (string, error) {
	if template == nil || template.dynamic() { // an outbox has none
		return "", nil
	}
	topic, err := template.render(database, table, e.pattern.shard(database, table))
	if err != nil {
		return "", &OptionError{
			Key: template.at,
			Problem: fmt.Sprintf("table %s.%s: %v; write an entry for this table before %s, with a topic of its own, or exclude the table",
				database, table, err, e.at),
		}
	}
	return topic, nil
}

// Check reports whether a captured table can be mapped as configured: its columns hold those of key, its names make a
// topic, and every expression of its rules fits the columns. Its error is an *OptionError, or several, joined.
func (m *Mapper) Check(table *canal.Table) error {
	if _, err := m.plan(table); err != nil {
		return err
	}
	i, ok := m.Match(table.Database, table.Name)
	if !ok {
		return nil
	}
	bare := &canal.Table{Database: table.Database, Name: table.Name}
	p := m.planTable(bare, m.entries[i], "")
	_, err := m.entries[i].emitters(p, expression.OpSet(canal.Truncate))
	return err
}

// CheckColumns reports columns and masks of an entry that none of its tables has: with a pattern of several tables, some may lack them, but
// a column that all lack is a mistake. entry is an index of Options.Tables. Its error is an *OptionError.
func (m *Mapper) CheckColumns(entry int, tables []*canal.Table) error {
	e := m.entries[entry]
	if e == nil {
		return nil // an aggregate: it names columns of tables that have them
	}
	names := map[string]string{}
	for _, mask := range e.masks {
		names[mask.Column] = e.at + ".mask." + mask.Column
	}
	for key, columns := range map[string][]string{"include": e.columns.Include, "exclude": e.columns.Exclude, "rename": sortedKeys(e.columns.Rename)} {
		for _, column := range columns {
			names[column] = e.at + ".columns." + key
		}
	}
	for _, table := range tables {
		for i := range table.Columns {
			delete(names, table.Columns[i].Name)
		}
	}
	for column, key := range names {
		return &OptionError{Key: key, Problem: fmt.Sprintf("none of the entry's tables has a column %q: mend its name, or remove it", column)}
	}
	return nil
}

// NewWorker returns a Worker, for one goroutine.
func (m *Mapper) NewWorker() *Worker {
	return &Worker{mapper: m, plans: map[tableName]*plan{}}
}
