package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
)

// samples are a file of `binlogd mapping test`: tables, changes of their rows, and the events that rules are to make of them.
type samples struct {
	// Config is the configuration whose rules are tested, beside the file. Events, Exclude and MaskKey stand in for it.
	Config  string              `yaml:"config"`
	Events  []mapping.TableRule `yaml:"events"`
	Exclude []string            `yaml:"exclude"`
	MaskKey string              `yaml:"mask_key"`
	Tables  sampleTables        `yaml:"tables"`
	Tests   []sampleTest        `yaml:"tests"`

	mapper *mapping.Mapper
	locate func(error) error
}

// sampleTables are the tables by their full names.
type sampleTables map[string]*canal.Table

// sampleTest is one transaction and what is expected of it.
type sampleTest struct {
	Name    string          `yaml:"name"`
	Changes []sampleChange  `yaml:"changes"`
	Expect  []expectedEvent `yaml:"expect"`
	// Error is a part of the message with which the rules are to stop, in the place of Expect.
	Error string `yaml:"error"`
}

// sampleChange is one change of a row: of the table that Insert, Update, Delete or Truncate names.
type sampleChange struct {
	Insert   string     `yaml:"insert"`
	Update   string     `yaml:"update"`
	Delete   string     `yaml:"delete"`
	Truncate string     `yaml:"truncate"`
	Row      sampleJSON `yaml:"row"` // of inserts and deletions
	Old      sampleJSON `yaml:"old"` // of updates
	New      sampleJSON `yaml:"new"` // of updates: the columns that change
}

// expectedEvent is an event, as far as the test cares: what is left out is not compared.
type expectedEvent struct {
	Type    string     `yaml:"type"`
	Topic   string     `yaml:"topic"`
	Key     string     `yaml:"key"`
	Subject string     `yaml:"subject"`
	ID      string     `yaml:"id"`
	Headers sampleJSON `yaml:"headers"`
	Data    sampleJSON `yaml:"data"`
}

// sampleJSON is a value, written in YAML.
type sampleJSON struct {
	raw json.RawMessage // nil: not written
}

// members are those of an object; none where nothing was written.
func (s sampleJSON) members() (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if s.raw == nil {
		return members, nil
	}
	if err := json.Unmarshal(s.raw, &members); err != nil {
		return nil, errors.New("write columns with a value each: {id: 1}")
	}
	return members, nil
}

// unsetVariable stands in for variables of the configuration that are not set: secrets, which tests do not need.
const unsetVariable = "not-set-for-tests"

// loadSamples reads a file and the rules that it is about. rulesFrom, if not empty, is the configuration.
func loadSamples(path, rulesFrom string, variables func(string) (string, bool)) (*samples, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the tests: %w", err)
	}
	lenient := func(name string) (string, bool) {
		if value, ok := variables(name); ok {
			return value, true
		}
		return unsetVariable, true
	}
	s := &samples{}
	d := &yamlDecoder{file: path, variables: lenient}
	if err := d.decode(document, s); err != nil {
		return nil, err
	}
	rules := mapping.Options{Name: "test", Tables: s.Events, Exclude: s.Exclude, MaskKey: s.MaskKey}
	s.locate = d.locate
	if rulesFrom == "" && s.Config != "" {
		rulesFrom = filepath.Join(filepath.Dir(path), s.Config)
	}
	switch {
	case rulesFrom != "" && len(s.Events) > 0:
		return nil, d.locate(errors.New("events: the rules stand here and in a configuration: leave one out"))
	case rulesFrom == "" && len(s.Events) == 0:
		return nil, d.locate(errors.New("config: missing: name the configuration whose rules are tested, or write events here"))
	case rulesFrom != "":
		if rules, s.locate, err = loadRules(rulesFrom, lenient); err != nil {
			return nil, err
		}
	}
	if s.mapper, err = mapping.New(rules); err != nil {
		return nil, (&config{located: s.locate}).locateAll(err)
	}
	return s, s.check(d)
}

// check looks for mistakes in the tests, and in the rules against the tables.
func (s *samples) check(d *yamlDecoder) error {
	var mistakes []error
	if len(s.Tests) == 0 {
		mistakes = append(mistakes, d.locate(errors.New("tests: missing: write at least one test")))
	}
	for _, table := range s.Tables {
		if s.mapper.Captured(table.Database, table.Name) {
			if err := s.mapper.Check(table); err != nil {
				mistakes = append(mistakes, (&config{located: s.locate}).locateAll(err))
			}
		}
	}
	for i := range s.Tests {
		test := &s.Tests[i]
		if test.Name == "" {
			test.Name = fmt.Sprintf("test %d", i+1)
		}
		if test.Error != "" && len(test.Expect) > 0 {
			mistakes = append(mistakes, d.locate(fmt.Errorf("tests[%d].error: it goes without expect", i)))
		}
		for j := range test.Changes {
			if _, err := test.Changes[j].row(s.Tables); err != nil {
				mistakes = append(mistakes, d.locate(fmt.Errorf("tests[%d].changes[%d]: %w", i, j, err)))
			}
		}
	}
	return errors.Join(mistakes...)
}

// loadRules reads the rules of a configuration, whatever the rest of it says.
func loadRules(path string, variables func(string) (string, bool)) (mapping.Options, func(error) error, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return mapping.Options{}, nil, fmt.Errorf("read the configuration: %w", err)
	}
	cfg := defaults()
	d := &yamlDecoder{file: path, variables: variables, later: laterKeys}
	if err := d.decode(document, &cfg); err != nil {
		return mapping.Options{}, nil, err
	}
	return cfg.mapping(), d.locate, nil
}

// samplePart decodes what only files of tests hold. It reports whether into is one of them.
func (d *yamlDecoder) samplePart(node ast.Node, path string, into reflect.Value) (is bool, err error) {
	switch target := into.Addr().Interface().(type) {
	case *sampleTables:
		*target, err = d.sampleTables(node, path)
	case *sampleJSON:
		target.raw, err = d.json(node, path, 0)
	default:
		return false, nil
	}
	return true, err
}

// sampleTables reads {shop.orders: {columns: {id: bigint, …}, primary_key: [id]}}.
func (d *yamlDecoder) sampleTables(node ast.Node, path string) (sampleTables, error) {
	tables := sampleTables{}
	err := d.members(node, path, func(name, at string, value ast.Node) error {
		database, table, ok := cutPattern(name)
		if !ok {
			return d.fault(value, at, "write database.table")
		}
		t := &canal.Table{Database: database, Name: table}
		var primary []string
		err := d.members(value, at, func(key, at string, value ast.Node) (err error) {
			switch key {
			case "columns":
				return d.members(value, at, func(column, at string, value ast.Node) error {
					text, err := d.text(value, at)
					if err != nil {
						return err
					}
					c, err := canal.NewColumn(column, text, sampleCharset(text))
					if err != nil {
						return d.fault(value, at, "%w", err)
					}
					t.Columns = append(t.Columns, c)
					return nil
				})
			case "primary_key":
				primary, err = d.oneOrMore(value, at)
				return err
			}
			return d.fault(value, at, "unknown key%s", suggestion(key, []string{"columns", "primary_key"}))
		})
		if err != nil {
			return err
		}
		for _, column := range primary {
			i := columnOf(t, column)
			if i < 0 {
				return d.fault(value, at+".primary_key", "the table has no column %q here", column)
			}
			t.PrimaryKey = append(t.PrimaryKey, i)
		}
		tables[name] = t
		return nil
	})
	return tables, err
}

// sampleCharset is the character set of columns of a type: that of texts, and of none else.
func sampleCharset(columnType string) string {
	word := strings.ToLower(strings.FieldsFunc(columnType+" ", func(r rune) bool { return r == '(' || r == ' ' })[0])
	if strings.HasSuffix(word, "char") || strings.HasSuffix(word, "text") || word == "enum" || word == "set" {
		return "utf8mb4"
	}
	return ""
}

func columnOf(t *canal.Table, name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// json gives a YAML value as JSON. Numbers keep their digits.
func (d *yamlDecoder) json(node ast.Node, path string, depth int) (json.RawMessage, error) {
	node, err := d.resolve(node, path)
	if err != nil {
		return nil, err
	}
	if depth > maxRuleDepth {
		return nil, d.fault(node, path, "objects inside objects more than %d deep", maxRuleDepth)
	}
	if text, torn := tornScalar(node); torn {
		return json.Marshal(text)
	}
	switch n := node.(type) {
	case *ast.NullNode:
		return json.RawMessage("null"), nil
	case *ast.BoolNode:
		return json.RawMessage(fmt.Sprint(n.Value)), nil
	case *ast.IntegerNode, *ast.FloatNode:
		if text := n.GetToken().Value; json.Valid([]byte(text)) {
			return json.RawMessage(text), nil
		}
	case ast.MapNode:
		object := map[string]json.RawMessage{}
		err := d.members(node, path, func(name, at string, value ast.Node) (err error) {
			object[name], err = d.json(value, at, depth+1)
			return err
		})
		if err != nil {
			return nil, err
		}
		return json.Marshal(object)
	case ast.ArrayNode:
		list := []json.RawMessage{}
		for entries := n.ArrayRange(); entries.Next(); {
			element, err := d.json(entries.Value(), fmt.Sprintf("%s[%d]", path, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		return json.Marshal(list)
	}
	text, err := d.text(node, path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(text)
}

// row is the change as the binlog would have it. Columns that an insert leaves out are NULL.
func (c *sampleChange) row(tables sampleTables) (*canal.Row, error) {
	var names []string
	r := &canal.Row{}
	for _, of := range []struct {
		name string
		op   canal.Op
	}{{c.Insert, canal.Insert}, {c.Update, canal.Update}, {c.Delete, canal.Delete}, {c.Truncate, canal.Truncate}} {
		if of.name != "" {
			names, r.Op = append(names, of.name), of.op
		}
	}
	if len(names) != 1 {
		return nil, errors.New("write one of insert, update, delete and truncate, with the table's name")
	}
	table, ok := tables[names[0]]
	if !ok {
		return nil, fmt.Errorf("table %s does not stand in tables", names[0])
	}
	r.Table = table
	var err error
	switch r.Op {
	case canal.Insert:
		r.After, err = sampleImage(table, nil, c.Row)
	case canal.Delete:
		r.Before, err = sampleImage(table, nil, c.Row)
	case canal.Update:
		if r.Before, err = sampleImage(table, nil, c.Old); err == nil {
			r.After, err = sampleImage(table, r.Before, c.New)
		}
	case canal.Truncate:
	}
	if (r.Op == canal.Update) == (c.Row.raw != nil) && (r.Op == canal.Update || r.Op == canal.Insert || r.Op == canal.Delete) {
		return nil, errors.New("an update has old and new, inserts and deletions have row")
	}
	return r, err
}

// sampleImage is a row: what image says, over what stands beneath it.
func sampleImage(table *canal.Table, beneath []canal.Value, image sampleJSON) ([]canal.Value, error) {
	members, err := image.members()
	if err != nil {
		return nil, err
	}
	row := make([]canal.Value, len(table.Columns))
	copy(row, beneath)
	for i := range table.Columns {
		if beneath == nil {
			row[i] = canal.Value{Kind: canal.KindNull}
		}
		raw, ok := members[table.Columns[i].Name]
		if !ok {
			continue
		}
		delete(members, table.Columns[i].Name)
		if row[i], err = sampleValue(&table.Columns[i], raw); err != nil {
			return nil, err
		}
	}
	for name := range members {
		return nil, fmt.Errorf("table %s.%s has no column %q", table.Database, table.Name, name)
	}
	return row, nil
}

func sampleValue(c *canal.Column, raw json.RawMessage) (canal.Value, error) {
	if string(raw) == "null" {
		return canal.Value{Kind: canal.KindNull}, nil
	}
	kind, _ := c.ValueKind()
	var text string
	var labels []string
	switch {
	case json.Unmarshal(raw, &text) == nil && kind == canal.KindJSON && !json.Valid([]byte(text)):
		text = string(raw) // a JSON text
	case json.Unmarshal(raw, &text) == nil:
	case kind == canal.KindSet && json.Unmarshal(raw, &labels) == nil:
		text = strings.Join(labels, ",")
	default:
		text = string(raw)
	}
	return c.ParseValue(text)
}

// sampleCommit is when the transactions of tests are committed.
var sampleCommit = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
