package mapping

import "fmt"

// Options say which tables become events, and where those go.
type Options struct {
	// Name is the pipeline's: it stands in the source of every event.
	Name string `yaml:"name"`
	// Tables are the entries of the configuration's events section. The first whose
	// pattern fits a table decides; tables that fit none are not captured.
	Tables []TableRule `yaml:"events"`
	// Exclude are patterns of tables that are not captured whatever Tables says.
	Exclude []string `yaml:"exclude"`
	// MaskKey is the secret of masks that hash: never in messages.
	MaskKey string `yaml:"mask_key"`
}

// TableRule is one entry of the events section.
type TableRule struct {
	// Table is a pattern, "database.table": * stands for any characters, ? for one,
	// {a,b} for one of several, {0000..1023} for the numbers of a range; \ before a
	// character takes its meaning away.
	Table string `yaml:"table"`
	// Name is what the tables of the pattern are called as one: their events' types begin with it in the place of the table's own
	// name, and without a Topic they go to one that is called so. For shards.
	Name string `yaml:"name"`
	// Topic is where the events go; {database}, {table} and {shard} in it stand for what the table is
	// called, other braces for expressions. "{database}.{table}" when empty.
	Topic string `yaml:"topic"`
	// Topics are those that a Topic with expressions may name.
	Topics []string `yaml:"topics"`
	// Key names the columns that make the partition key, in order. The primary key when
	// empty, and "database.table" for tables without one. An update that changes such a
	// column, but not the primary key, goes to the new key: order holds per key, not per row.
	Key []string `yaml:"key"`
	// Columns are shown where whole rows are.
	Columns Columns `yaml:"columns"`
	// Mask hides values.
	Mask Masks `yaml:"mask"`
	// Emit are the rules. Without them each change becomes TABLE.created, TABLE.updated or
	// TABLE.deleted; with them, what they say, and nothing where none fits.
	Emit []EmitRule `yaml:"emit"`
	// Envelope is the form of the events: cloudevents when empty, binary or row.
	Envelope string `yaml:"envelope"`
	// KeyFormat is the form of their keys: text when empty, or json.
	KeyFormat string `yaml:"key_format"`
	// Tombstones has a record without a value follow each deletion, for compacted topics.
	Tombstones bool `yaml:"tombstones"`
	// OutboxRule makes the entry an outbox, whose rows are messages.
	OutboxRule
	// AggregateRule makes the entry an aggregate, which has neither Table nor Mask nor Emit. Topic, Key and Columns are then
	// about its root.
	AggregateRule
}

// Patterns are the entry's patterns of tables by their keys below the entry's: one, or the root and the parts of an aggregate.
func (t *TableRule) Patterns() (keys, patterns []string) {
	if !t.OutboxRule.isZero() {
		return []string{"outbox"}, []string{t.Outbox}
	}
	if t.AggregateRule.isZero() {
		return []string{"table"}, []string{t.Table}
	}
	keys, patterns = []string{"root"}, []string{t.Root}
	for _, part := range t.Include {
		keys, patterns = append(keys, "include."+part.Name+".table"), append(patterns, part.Table)
	}
	return keys, patterns
}

// OptionError is a mistake in the configuration.
type OptionError struct {
	Key     string // of the YAML document, as "events[2].table"
	Problem string // and what to write instead
}

func (e *OptionError) Error() string { return e.Key + ": " + e.Problem }

// tables is a text that options have in common which capture the same tables, whichever there are.
func (o Options) tables() string {
	var patterns []string
	for i := range o.Tables {
		_, of := o.Tables[i].Patterns()
		patterns = append(patterns, o.Tables[i].Aggregate) // whether transactions are read as a whole hangs on it, too
		patterns = append(patterns, of...)
	}
	return fmt.Sprintf("%q %q", patterns, o.Exclude)
}

// Validate returns nil or all mistakes, joined: each an *OptionError. What needs the tables' columns, Mapper.Check finds.
func (o Options) Validate() error {
	_, err := o.read()
	return err
}

// options are Options, read.
type options struct {
	entries    []*entry // by their index in Options.Tables; nil for aggregates
	aggregates []*aggregate
	exclude    []pattern
}

// read reads the entries and the exclusions.
func (o Options) read() (read options, err error) {
	var r ruleReader
	if o.Name == "" {
		r.mistake("name", "missing: write a name for this pipeline, such as name: shop")
	}
	if len(o.Tables) == 0 {
		r.mistake("events", "no tables: write at least one entry, such as - table: shop.*")
	}
	if o.MaskKey != "" && len(o.MaskKey) < minMaskKey {
		r.mistake("mask_key", "shorter than %d bytes: values could be tried out; set it to random characters", minMaskKey)
	}
	seen := map[string]int{}
	var roots []string
	for i := range o.Tables {
		t := &o.Tables[i]
		key := fmt.Sprintf("events[%d]", i)
		if t.Name != "" && t.Table == "" {
			r.mistake(key+".name", "it goes with table: remove it")
		}
		if !t.OutboxRule.isZero() {
			read.entries = append(read.entries, r.readOutbox(i, t))
			continue
		}
		if !t.AggregateRule.isZero() {
			read.aggregates = append(read.aggregates, r.readAggregate(i, t))
			read.entries = append(read.entries, nil)
			roots = append(roots, t.Root)
			continue
		}
		p, err := parsePattern(t.Table)
		if t.Table == "" {
			r.mistake(key+".table", "missing: write database.table; * stands for any")
		} else if err != nil {
			r.mistake(key+".table", "%v", err)
		} else if first, ok := seen[t.Table]; ok {
			r.mistake(key+".table", "%q stands in events[%d] already, which decides: remove one of them", t.Table, first)
		} else {
			seen[t.Table] = i
		}
		r.checkKeyColumns(key+".key", t.Key)
		r.checkMisplaced(key, &t.AggregateRule)
		e := r.readEntry(i, named(t, p), o.MaskKey)
		e.pattern = p
		read.entries = append(read.entries, e)
	}
	r.checkAggregateTypes(read.aggregates, roots)
	for i, text := range o.Exclude {
		p, err := parsePattern(text)
		if err != nil {
			r.mistake(fmt.Sprintf("exclude[%d]", i), "%v", err)
		}
		read.exclude = append(read.exclude, p)
	}
	return read, r.joined()
}

// named is a rule whose tables, where they have one name, also have one topic.
func named(t *TableRule, p pattern) *TableRule {
	if t.Name == "" || t.Topic != "" {
		return t
	}
	one := *t
	if one.Topic = t.Name; p.database.exact() {
		one.Topic = "{database}." + t.Name
	}
	return &one
}
