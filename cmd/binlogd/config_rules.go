package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/binlogd/binlogd/mapping"
)

// maxRuleDepth bounds objects inside objects in the data of a rule; the mapping has a lower limit of its own.
const maxRuleDepth = 100

// rulePart decodes the parts of rules that can be written in several ways. It reports whether into is one of them.
func (d *yamlDecoder) rulePart(node ast.Node, path string, into reflect.Value) (is bool, err error) {
	switch target := into.Addr().Interface().(type) {
	case *mapping.Operations:
		*target, err = d.oneOrMore(node, path)
	case *mapping.RuleKey:
		if _, list := node.(ast.ArrayNode); list {
			target.Columns, err = d.oneOrMore(node, path)
		} else {
			target.Expression, err = d.text(node, path)
		}
	case *mapping.Object:
		*target, err = d.object(node, path, 0)
	case *mapping.Masks:
		*target, err = d.masks(node, path)
	case *mapping.Includes:
		*target, err = d.includes(node, path)
	case *mapping.Joins:
		*target, err = d.joins(node, path)
	case *mapping.Size:
		var bytes size
		err = d.scalar(node, path, reflect.ValueOf(&bytes).Elem())
		*target = mapping.Size(bytes)
	case *mapping.OutboxHeaders:
		*target, err = d.outboxHeaders(node, path)
	case *[]string:
		if !strings.HasSuffix(path, "].key") { // of an entry, which may be one column
			return false, nil
		}
		*target, err = d.oneOrMore(node, path)
	case *map[string]string:
		*target, err = d.texts(node, path)
	default:
		return false, nil
	}
	return true, err
}

// text is a scalar as it is written, with its variables expanded.
func (d *yamlDecoder) text(node ast.Node, path string) (text string, err error) {
	err = d.scalar(node, path, reflect.ValueOf(&text).Elem())
	return text, err
}

// oneOrMore reads one text, or a list of them.
func (d *yamlDecoder) oneOrMore(node ast.Node, path string) ([]string, error) {
	if _, list := node.(ast.ArrayNode); list {
		var texts []string
		err := d.sequence(node, path, reflect.ValueOf(&texts).Elem())
		return texts, err
	}
	text, err := d.text(node, path)
	if err != nil || text == "" {
		return nil, err
	}
	return []string{text}, nil
}

// members calls member for each key of a mapping, in the order in which they are written.
func (d *yamlDecoder) members(node ast.Node, path string, member func(name, at string, value ast.Node) error) error {
	if node.Type() == ast.NullType {
		return nil
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		return d.fault(node, path, "write names with a value each: {name: value}")
	}
	seen := map[string]bool{}
	for entries := m.MapRange(); entries.Next(); {
		key := entries.Key()
		if key.IsMergeKey() {
			return d.fault(key, path, "merge keys (<<) are not known here: write the keys out")
		}
		name := scalarText(key)
		at := joinPath(path, name)
		if seen[name] {
			return d.fault(key, at, "it stands here twice: remove one of them")
		}
		seen[name] = true
		d.lines[at] = line(key)
		value, err := d.resolve(entries.Value(), at)
		if err != nil {
			return err
		}
		if err := member(name, at, value); err != nil {
			return err
		}
	}
	return nil
}

// object reads data and headers: expressions, objects and lists.
func (d *yamlDecoder) object(node ast.Node, path string, depth int) (mapping.Object, error) {
	object := mapping.Object{}
	err := d.members(node, path, func(name, at string, value ast.Node) error {
		template, err := d.template(value, at, depth+1)
		object = append(object, mapping.Member{Name: name, Value: template})
		return err
	})
	return object, err
}

func (d *yamlDecoder) template(node ast.Node, path string, depth int) (t mapping.Template, err error) {
	if depth > maxRuleDepth {
		return t, d.fault(node, path, "objects inside objects more than %d deep: make it flatter", maxRuleDepth)
	}
	if d.parts++; d.parts > maxRuleParts {
		return t, d.fault(node, path, "more than %d values in all rules: is it made of aliases?", maxRuleParts)
	}
	if text, torn := tornScalar(node); torn {
		t.Expression, err = expand(text, d.variables)
		if err != nil {
			err = d.fault(node, path, "%w", err)
		}
		return t, err
	}
	switch n := node.(type) {
	case ast.MapNode:
		t.Object, err = d.object(node, path, depth)
	case ast.ArrayNode:
		t.List = []mapping.Template{}
		for entries := n.ArrayRange(); entries.Next(); {
			at := fmt.Sprintf("%s[%d]", path, len(t.List))
			d.lines[at] = line(entries.Value())
			element, err := d.resolve(entries.Value(), at)
			if err != nil {
				return t, err
			}
			value, err := d.template(element, at, depth+1)
			if err != nil {
				return t, err
			}
			t.List = append(t.List, value)
		}
	case *ast.NullNode:
		t.Expression = "null"
	default:
		t.Expression, err = d.text(node, path)
	}
	return t, err
}

// maxRuleParts bounds what aliases of aliases can blow up.
const maxRuleParts = 100_000

// texts reads names with a text each.
func (d *yamlDecoder) texts(node ast.Node, path string) (map[string]string, error) {
	texts := map[string]string{}
	err := d.members(node, path, func(name, at string, value ast.Node) (err error) {
		texts[name], err = d.text(value, at)
		return err
	})
	return texts, err
}

// masks reads {column: hash, column: {last: 4}, column: null}.
func (d *yamlDecoder) masks(node ast.Node, path string) (masks mapping.Masks, err error) {
	err = d.members(node, path, func(column, at string, value ast.Node) error {
		mask := mapping.ColumnMask{Column: column, Method: "null"}
		switch value.(type) {
		case *ast.NullNode:
		case ast.MapNode:
			var arguments map[string]string
			arguments, err := d.texts(value, at)
			if err != nil {
				return err
			}
			last, ok := arguments["last"]
			if !ok || len(arguments) != 1 {
				return d.fault(value, at, "write hash, redact, null or {last: 4}")
			}
			if mask.Last, err = strconv.Atoi(strings.TrimSpace(last)); err != nil {
				return d.fault(value, at, "%w", errors.New("write a number of characters: {last: 4}"))
			}
			mask.Method = "last"
		default:
			if mask.Method, err = d.text(value, at); err != nil {
				return err
			}
		}
		masks = append(masks, mask)
		return nil
	})
	return masks, err
}

// includes reads the parts of an aggregate: {items: {table: …, on: …}}.
func (d *yamlDecoder) includes(node ast.Node, path string) (includes mapping.Includes, err error) {
	includes = mapping.Includes{}
	err = d.members(node, path, func(name, at string, value ast.Node) error {
		include := mapping.Include{Name: name}
		err := d.mapping(value, at, reflect.ValueOf(&include).Elem())
		includes = append(includes, include)
		return err
	})
	return includes, err
}

// joins reads {order_id: id}: a column, and the root's that it refers to.
func (d *yamlDecoder) joins(node ast.Node, path string) (joins mapping.Joins, err error) {
	err = d.members(node, path, func(column, at string, value ast.Node) error {
		root, err := d.text(value, at)
		joins = append(joins, mapping.Join{Column: column, Root: root})
		return err
	})
	return joins, err
}

// outboxHeaders reads the name of a column, or headers with a column each.
func (d *yamlDecoder) outboxHeaders(node ast.Node, path string) (headers mapping.OutboxHeaders, err error) {
	if _, object := node.(ast.MapNode); !object {
		headers.Column, err = d.text(node, path)
		return headers, err
	}
	err = d.members(node, path, func(name, at string, value ast.Node) error {
		column, err := d.text(value, at)
		headers.Columns = append(headers.Columns, mapping.HeaderColumn{Name: name, Column: column})
		return err
	})
	return headers, err
}
