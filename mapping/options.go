package mapping

import (
	"errors"
	"fmt"
	"slices"
)

// Options say which tables become events, and where those go.
type Options struct {
	// Name is the pipeline's: it stands in the source of every event.
	Name string `yaml:"name"`
	// Tables are the entries of the configuration's events section. The first whose
	// pattern fits a table decides; tables that fit none are not captured.
	Tables []TableRule `yaml:"events"`
	// Exclude are patterns of tables that are not captured whatever Tables says.
	Exclude []string `yaml:"exclude"`
}

// TableRule is one entry of the events section.
type TableRule struct {
	// Table is a pattern, "database.table": * stands for any characters, ? for one,
	// {a,b} for one of several, {0000..1023} for the numbers of a range; \ before a
	// character takes its meaning away.
	Table string `yaml:"table"`
	// Topic is where the events go; {database} and {table} in it stand for the table's
	// names. "{database}.{table}" when empty.
	Topic string `yaml:"topic"`
	// Key names the columns that make the partition key, in order. The primary key when
	// empty, and "database.table" for tables without one. An update that changes such a
	// column, but not the primary key, goes to the new key: order holds per key, not per row.
	Key []string `yaml:"key"`
}

// OptionError is a mistake in the configuration.
type OptionError struct {
	Key     string // of the YAML document, as "events[2].table"
	Problem string // and what to write instead
}

func (e *OptionError) Error() string { return e.Key + ": " + e.Problem }

// Validate returns nil or all mistakes, joined: each an *OptionError.
func (o Options) Validate() error {
	var errs []error
	mistake := func(key, format string, args ...any) {
		errs = append(errs, &OptionError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	if o.Name == "" {
		mistake("name", "missing: write a name for this pipeline, such as name: shop")
	}
	if len(o.Tables) == 0 {
		mistake("events", "no tables: write at least one entry, such as - table: shop.*")
	}
	seen := map[string]int{}
	for i, rule := range o.Tables {
		key := fmt.Sprintf("events[%d]", i)
		if rule.Table == "" {
			mistake(key+".table", "missing: write database.table; * stands for any")
		} else if _, err := parsePattern(rule.Table); err != nil {
			mistake(key+".table", "%v", err)
		} else if first, ok := seen[rule.Table]; ok {
			mistake(key+".table", "%q stands in events[%d] already, which decides: remove one of them", rule.Table, first)
		} else {
			seen[rule.Table] = i
		}
		if rule.Topic != "" {
			if err := checkTopicTemplate(rule.Topic); err != nil {
				mistake(key+".topic", "%v", err)
			}
		}
		for j, column := range rule.Key {
			if column == "" {
				mistake(fmt.Sprintf("%s.key[%d]", key, j), "empty: write the name of a column")
			} else if slices.Index(rule.Key, column) < j {
				mistake(fmt.Sprintf("%s.key[%d]", key, j), "column %q stands in the key twice: remove one of them", column)
			}
		}
	}
	for i, text := range o.Exclude {
		if _, err := parsePattern(text); err != nil {
			mistake(fmt.Sprintf("exclude[%d]", i), "%v", err)
		}
	}
	return errors.Join(errs...)
}
