package mapping

import (
	"fmt"
	"sync"

	"github.com/binlogd/binlogd/canal"
)

// maxDecisions bounds what a Mapper remembers of tables that it was asked about: servers on
// which tables come and go must not make it grow.
const maxDecisions = 1 << 16

// Mapper turns row changes into events. It is safe for use by several goroutines; each
// maps with a Worker of its own.
type Mapper struct {
	name    string
	rules   []rule
	exclude []pattern

	mu        sync.RWMutex
	decisions map[tableName]int // index into rules, or notCaptured
}

const notCaptured = -1

type tableName struct{ database, table string }

// rule is a TableRule, read.
type rule struct {
	pattern pattern
	topic   string // template
	key     []string
}

// New returns a Mapper, or the mistakes in opts as Validate gives them.
func New(opts Options) (*Mapper, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("read the mapping: %w", err)
	}
	m := &Mapper{name: opts.Name, decisions: map[tableName]int{}}
	for _, t := range opts.Tables {
		p, err := parsePattern(t.Table)
		if err != nil {
			return nil, fmt.Errorf("read table pattern: %w", err)
		}
		topic := t.Topic
		if topic == "" {
			topic = defaultTopic
		}
		m.rules = append(m.rules, rule{pattern: p, topic: topic, key: t.Key})
	}
	for _, text := range opts.Exclude {
		p, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("read exclusion pattern: %w", err)
		}
		m.exclude = append(m.exclude, p)
	}
	return m, nil
}

// Captured reports whether the table's changes become events. Names are compared exactly.
func (m *Mapper) Captured(database, table string) bool {
	_, ok := m.Match(database, table)
	return ok
}

// Match gives the index of the entry of Options.Tables that decides about a table, and
// whether there is one.
func (m *Mapper) Match(database, table string) (entry int, ok bool) {
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
	return entry, entry != notCaptured
}

func (m *Mapper) decide(name tableName) int {
	for _, p := range m.exclude {
		if p.matches(name.database, name.table) {
			return notCaptured
		}
	}
	for i, r := range m.rules {
		if r.pattern.matches(name.database, name.table) {
			return i
		}
	}
	return notCaptured
}

// Topic gives the topic of a captured table's events. Its error is an *OptionError: the
// names make no topic.
func (m *Mapper) Topic(database, table string) (string, error) {
	entry, ok := m.Match(database, table)
	if !ok {
		return "", fmt.Errorf("name the topic of %s.%s: the table is not captured", database, table)
	}
	topic, err := renderTopic(m.rules[entry].topic, database, table)
	if err != nil {
		return "", &OptionError{
			Key: fmt.Sprintf("events[%d].topic", entry),
			Problem: fmt.Sprintf("table %s.%s: %v; write an entry for this table before events[%d], with a topic of its own, or exclude the table",
				database, table, err, entry),
		}
	}
	return topic, nil
}

// Check reports whether a captured table can be mapped as configured: its columns hold
// those of key, its names make a topic. Its error is an *OptionError.
func (m *Mapper) Check(table *canal.Table) error {
	_, err := m.plan(table)
	return err
}

// NewWorker returns a Worker, for one goroutine.
func (m *Mapper) NewWorker() *Worker {
	return &Worker{mapper: m, plans: map[tableName]*plan{}}
}
