package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
)

// maxTransitions is for how many values of a status rules are proposed.
const maxTransitions = 30

// statusName is what columns are called whose changes mean something.
var statusName = regexp.MustCompile(`(?i)(^|_)(status|state|stage|phase)($|_)|(status|state)$`)

// statusColumn is a column whose values rules are proposed for, with those values as expressions.
type statusColumn struct {
	name   string
	values []string // as expressions write them
	words  []string // as types do
}

// findStatuses looks for columns of a status: an ENUM, or a tinyint whose values are looked up.
func findStatuses(ctx context.Context, inspector *canal.Inspector, t canal.TableInfo) (found []statusColumn, err error) {
	table := t.Table()
	for i := range table.Columns {
		c := &table.Columns[i]
		if !statusName.MatchString(c.Name) {
			continue
		}
		s := statusColumn{name: c.Name}
		kind, _ := c.ValueKind()
		switch {
		case kind == canal.KindEnum:
			for _, label := range c.Labels {
				s.values, s.words = append(s.values, strconv.Quote(label)), append(s.words, label)
			}
		case strings.HasPrefix(strings.ToLower(c.SourceType), "tinyint"):
			values, err := inspector.Values(ctx, t, c.Name, maxTransitions)
			if err != nil {
				return nil, err
			}
			if len(values) == 0 {
				values = []string{"1"} // of an empty table, as an example
			}
			for _, value := range values {
				s.values, s.words = append(s.values, value), append(s.words, c.Name+" "+value)
			}
		default:
			continue
		}
		s.values, s.words = s.values[:min(len(s.values), maxTransitions)], s.words[:min(len(s.words), maxTransitions)]
		found = append(found, s)
	}
	return found, nil
}

// rules are commented-out rules of a table: those of the default mapping, and one for each value that a status can come to have.
func (d *configDraft) rules(t canal.TableInfo, name string) string {
	statuses := d.statuses[t.FullName()]
	if len(statuses) == 0 {
		return ""
	}
	plural, single := typeWord(name), singular(typeWord(name))
	seen := map[string]bool{}
	var b strings.Builder
	rule := func(kind, on, when string) {
		base := kind
		for n := 2; seen[kind]; n++ {
			kind = fmt.Sprintf("%s_%d", base, n)
		}
		seen[kind] = true
		fmt.Fprintf(&b, "    #   - {type: %s, on: %s", quoteYAML(kind), on)
		if when != "" {
			fmt.Fprintf(&b, ", when: %s", quoteYAML(when))
		}
		b.WriteString("}\n")
	}
	b.WriteString("    # emit:   # instead of the three types of the table, what a status comes to be; docs/RULES.md\n")
	for _, kind := range []struct{ name, on string }{{"created", "insert"}, {"updated", "update"}, {"deleted", "delete"}} {
		rule(plural+"."+kind.name, kind.on, "")
	}
	for _, s := range statuses {
		for i, value := range s.values {
			rule(single+"."+typeWord(s.words[i]), "update", fmt.Sprintf("became(%s, %s)", strconv.Quote(s.name), value))
		}
	}
	return b.String()
}

// aggregates are commented-out entries: one for each table that others of the database refer to by foreign keys.
func (d *configDraft) aggregates() string {
	var b strings.Builder
	for _, root := range d.tables {
		if len(root.PrimaryKey) == 0 {
			continue
		}
		taken := map[string]bool{}
		for _, column := range root.Columns {
			taken[column] = true
		}
		var parts []string
		for _, child := range d.tables {
			key := referenceTo(child, root)
			if key == nil || child.Name == root.Name {
				continue
			}
			name := child.Name
			for n := 2; taken[name]; n++ {
				name = fmt.Sprintf("%s_%d", child.Name, n)
			}
			taken[name] = true
			var on []string
			for i, column := range key.Columns {
				on = append(on, quoteKey(column)+": "+quoteYAML(key.Referenced[i]))
			}
			parts = append(parts, fmt.Sprintf("  #     %s: {table: %s, on: {%s}}\n", quoteKey(name), quoteYAML(patternOf(child)), strings.Join(on, ", ")))
		}
		if len(parts) == 0 {
			continue
		}
		word := singular(typeWord(root.Name))
		topic := ""
		if legal := topicFor(root, patternOf(root)); legal != "" {
			topic = fmt.Sprintf("  #   topic: %s\n", quoteYAML(legal))
		}
		fmt.Fprintf(&b, "  # - aggregate: %s   # one event of a row and the rows of other tables that its transaction inserts with it\n  #   root: %s\n  #   on: insert\n  #   type: %s\n%s  #   include:\n%s",
			quoteYAML(word), quoteYAML(patternOf(root)), quoteYAML(word+".placed"), topic, strings.Join(parts, ""))
	}
	return b.String()
}

// referenceTo is the first foreign key by which a table refers to another.
func referenceTo(child, root canal.TableInfo) *canal.Reference {
	for i := range child.References {
		if r := &child.References[i]; r.Database == root.Database && r.Table == root.Name {
			return r
		}
	}
	return nil
}

// quoteKey writes a key of a mapping so that it reads back as itself. Nothing is expanded in keys.
func quoteKey(name string) string { return strings.ReplaceAll(quoteYAML(name), "$$", "$") }

func patternOf(t canal.TableInfo) string {
	return mapping.QuotePattern(t.Database) + "." + mapping.QuotePattern(t.Name)
}

// typeWord makes a part of a type of a name: small letters, digits and underscores.
func typeWord(name string) string {
	word := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name), "_")
	return cmp.Or(word[:min(len(word), 60)], "value")
}

// singular is the English word for one of many, as far as that can be guessed.
func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), len(word) < 3:
		return word
	}
	return strings.TrimSuffix(word, "s")
}

// shards are tables that are the same but for a number at the end of their names.
type shards struct {
	tables        []canal.TableInfo
	pattern, name string
}

// numbered splits a name with a number at its end.
var numbered = regexp.MustCompile(`^(.*?[^0-9])([0-9]+)$`)

// findShards takes tables together that look like shards of one: same columns, and names that are the same but for the number at their
// end. Of tables whose names are alike and whose columns are not, the largest group counts. Others come first: what a pattern of
// shards matches, too, keeps an entry of its own before it.
func findShards(tables []canal.TableInfo) []shards {
	type group struct {
		prefix string
		tables []canal.TableInfo
	}
	var groups []*group
	byShape, largest := map[string]*group{}, map[string]*group{}
	for _, t := range tables {
		m := numbered.FindStringSubmatch(t.Name)
		if m == nil || len(m[2]) > 18 {
			continue
		}
		key := m[1] + "\x00" + t.Shape()
		g := byShape[key]
		if g == nil {
			g = &group{prefix: m[1]}
			byShape[key], groups = g, append(groups, g)
		}
		g.tables = append(g.tables, t)
		if most := largest[m[1]]; most == nil || len(g.tables) > len(most.tables) {
			largest[m[1]] = g
		}
	}
	united := map[string]bool{}
	var several []shards
	for _, g := range groups {
		if len(g.tables) < 2 || largest[g.prefix] != g {
			continue
		}
		s := shards{tables: g.tables}
		s.unite()
		several = append(several, s)
		for _, t := range g.tables {
			united[t.Name] = true
		}
	}
	var all []shards
	for _, t := range tables {
		if !united[t.Name] {
			all = append(all, shards{tables: []canal.TableInfo{t}})
		}
	}
	return append(all, several...)
}

// unite works out the pattern and the name of several tables.
func (s *shards) unite() {
	first := numbered.FindStringSubmatch(s.tables[0].Name)
	low, high := first[2], first[2]
	padded := true
	for _, t := range s.tables {
		digits := numbered.FindStringSubmatch(t.Name)[2]
		padded = padded && len(digits) == len(low)
		if number(digits) < number(low) {
			low = digits
		}
		if number(digits) > number(high) {
			high = digits
		}
	}
	// Numbers without leading zeros are of different lengths; with some, the range cannot say it.
	if !padded && slices.ContainsFunc(s.tables, func(t canal.TableInfo) bool {
		digits := numbered.FindStringSubmatch(t.Name)[2]
		return len(digits) > 1 && digits[0] == '0'
	}) {
		s.pattern = mapping.QuotePattern(s.tables[0].Database) + "." + mapping.QuotePattern(first[1]) + "*"
	} else {
		s.pattern = fmt.Sprintf("%s.%s{%s..%s}", mapping.QuotePattern(s.tables[0].Database), mapping.QuotePattern(first[1]), low, high)
	}
	s.name = typeWord(first[1])
}

func number(digits string) uint64 {
	n, _ := strconv.ParseUint(digits, 10, 64) // of at most 18 digits
	return n
}
