package expression

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

// function is one that expressions can call.
type function struct {
	usage    string
	min, max int // arguments; max 0 is any number
	compile  func(c *compiler, n ast.Node, arguments []ast.Node) (*node, error)
}

// functions returns the function of a name.
func functionNamed(name string) (function, bool) {
	switch name {
	case "changed":
		return function{`changed("column", …)`, 1, 0, (*compiler).changed}, true
	case "was":
		return function{`was("column", value)`, 2, 2, (*compiler).was}, true
	case "became":
		return function{`became("column", value)`, 2, 2, (*compiler).became}, true
	case "present":
		return function{"present(new.column)", 1, 1, (*compiler).present}, true
	case "coalesce":
		return function{"coalesce(value, …)", 1, 0, (*compiler).coalesce}, true
	case "lower":
		return function{"lower(text)", 1, 1, textFunction(bytes.ToLower)}, true
	case "upper":
		return function{"upper(text)", 1, 1, textFunction(bytes.ToUpper)}, true
	case "trim":
		return function{"trim(text)", 1, 1, textFunction(bytes.TrimSpace)}, true
	case "length":
		return function{"length(text)", 1, 1, (*compiler).length}, true
	case "substring":
		return function{"substring(text, from, characters)", 2, 3, (*compiler).substring}, true
	case "concat":
		return function{"concat(value, …)", 1, 0, (*compiler).concat}, true
	case "string":
		return function{"string(value)", 1, 1, (*compiler).concat}, true
	case "number":
		return function{"number(text)", 1, 1, (*compiler).toNumber}, true
	case "json":
		return function{"json(text)", 1, 1, (*compiler).json}, true
	case "date":
		return function{"date(time)", 1, 1, (*compiler).date}, true
	}
	return function{}, false
}

func functionNames() string {
	return "changed, was, became, present, coalesce, lower, upper, trim, length, substring, concat, string, number, json, date"
}

func (c *compiler) call(n ast.Node, name string, arguments []ast.Node) (*node, error) {
	f, ok := functionNamed(name)
	switch {
	case name == "now":
		return nil, fault(n, "events must be the same in every repeat, so there is no clock: write committed_at for the time of the commit")
	case !ok:
		return nil, fault(n, "unknown function %s: there are %s", name, functionNames())
	case len(arguments) < f.min || f.max > 0 && len(arguments) > f.max:
		return nil, fault(n, "%d arguments: write %s", len(arguments), f.usage)
	}
	return f.compile(c, n, arguments)
}

// namedColumn reads an argument that names a column by a text.
func (c *compiler) namedColumn(n, argument ast.Node) (int, error) {
	name, ok := argument.(*ast.StringNode)
	if !ok {
		return 0, fault(n, `the column is named by a text: write its name in quotes, as in changed("%s")`, c.exampleColumn())
	}
	column := c.columnIndex(name.Value)
	if column < 0 {
		return 0, fault(n, "%s", c.unknownColumn(name.Value))
	}
	return column, nil
}

// changed compiles changed("a", "b"): one of the columns has another value than before. All have, where the row is new or
// gone.
func (c *compiler) changed(n ast.Node, arguments []ast.Node) (*node, error) {
	if c.scope.Ops&OpSet(canal.Update) == 0 {
		return nil, fault(n, "only updates change columns: add update to on, or leave it out")
	}
	var columns []int
	for _, argument := range arguments {
		column, err := c.namedColumn(n, argument)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	table := c.scope.Table
	return &node{typ: valueType{class: classBool}, truth: func(r *Row) (Truth, error) {
		for _, column := range columns {
			changed, known := r.changed(column)
			if !known {
				return Unknown, &AbsentError{Image: oldRow, Column: table.Columns[column].Name}
			}
			if changed {
				return True, nil
			}
		}
		return False, nil
	}}, nil
}

// valueOf compiles old.column == value or new.column == value.
func (c *compiler) valueOf(n ast.Node, image string, arguments []ast.Node) (*node, error) {
	column, err := c.namedColumn(n, arguments[0])
	if err != nil {
		return nil, err
	}
	if err := c.checkImage(n, image); err != nil {
		return nil, err
	}
	value, err := c.compile(arguments[1])
	if err != nil {
		return nil, err
	}
	return c.comparison(n, "==", c.column(reference{image, column, c.scope.Table.Columns[column].Name}), value)
}

// was compiles was("column", value): it had the value before.
func (c *compiler) was(n ast.Node, arguments []ast.Node) (*node, error) {
	return c.valueOf(n, oldRow, arguments)
}

// became compiles became("column", value): it has the value, and had not.
func (c *compiler) became(n ast.Node, arguments []ast.Node) (*node, error) {
	changed, err := c.changed(n, arguments[:1])
	if err != nil {
		return nil, err
	}
	is, err := c.valueOf(n, newRow, arguments)
	if err != nil {
		return nil, err
	}
	return &node{typ: is.typ, truth: func(r *Row) (Truth, error) {
		if truth, err := is.truth(r); err != nil || truth != True {
			return truth, err
		}
		return changed.truth(r)
	}}, nil
}

// present compiles present(new.column): the binlog carries it.
func (c *compiler) present(n ast.Node, arguments []ast.Node) (*node, error) {
	member, ok := arguments[0].(*ast.MemberNode)
	var ref reference
	var err error
	if ok {
		ref, ok, err = c.reference(member)
	}
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fault(n, "it asks about a column: write present(new.%s)", c.exampleColumn())
	}
	return &node{typ: valueType{class: classBool}, truth: func(r *Row) (Truth, error) {
		return truthOf(r.find(ref.image, ref.column).Kind != canal.KindAbsent), nil
	}}, nil
}

func (c *compiler) coalesce(_ ast.Node, arguments []ast.Node) (*node, error) {
	var result *node
	for _, argument := range slices.Backward(arguments) {
		value, err := c.compile(argument)
		if err != nil {
			return nil, err
		}
		if result == nil {
			result = value
			continue
		}
		result = coalesce(value, result)
	}
	return result, nil
}

// textFunction is a function of one text that gives a text.
func textFunction(f func([]byte) []byte) func(c *compiler, n ast.Node, arguments []ast.Node) (*node, error) {
	return func(c *compiler, n ast.Node, arguments []ast.Node) (*node, error) {
		text, err := c.texts(n, arguments...)
		if err != nil {
			return nil, err
		}
		return mapText(text[0], classText, func(_ *Row, text []byte) (canal.Value, error) {
			return canal.NewBytes(canal.KindText, f(text)), nil
		}), nil
	}
}

// mapText gives what f makes of a text; NULL of NULL.
func mapText(text *node, result class, f func(r *Row, text []byte) (canal.Value, error)) *node {
	value := text.scalar()
	return &node{typ: valueType{class: result}, value: func(r *Row) (canal.Value, error) {
		v, err := value(r)
		switch {
		case err != nil || v.Kind == canal.KindNull:
			return null, err
		case !isTextual(classOf(v.Kind)):
			return f(r, appendValueText(nil, v))
		}
		return f(r, v.Bytes)
	}}
}

func (c *compiler) length(n ast.Node, arguments []ast.Node) (*node, error) {
	text, err := c.texts(n, arguments...)
	if err != nil {
		return nil, err
	}
	return mapText(text[0], classNumber, func(_ *Row, text []byte) (canal.Value, error) {
		return canal.NewInt(int64(utf8.RuneCount(text))), nil
	}), nil
}

// substring counts characters from 1, as SQL does; from the end where from is negative.
func (c *compiler) substring(n ast.Node, arguments []ast.Node) (*node, error) {
	text, err := c.texts(n, arguments[0])
	if err != nil {
		return nil, err
	}
	var bounds [2]int
	bounds[1] = -1
	for i, argument := range arguments[1:] {
		bound, err := c.compile(argument)
		if err != nil {
			return nil, err
		}
		if !bound.constant || bound.of().Kind != canal.KindInt {
			return nil, fault(n, "from and characters are whole numbers that do not change: substring(text, 1, 3)")
		}
		bounds[i] = int(bound.of().Int())
	}
	return mapText(text[0], classText, func(_ *Row, text []byte) (canal.Value, error) {
		return canal.NewBytes(canal.KindText, cut(text, bounds[0], bounds[1])), nil
	}), nil
}

// cut gives count characters (all that are left where it is negative) from the one at from.
func cut(text []byte, from, count int) []byte {
	runes := []rune(string(text))
	if from < 0 {
		from = len(runes) + from + 1
	}
	if from < 1 || from > len(runes) {
		return nil
	}
	runes = runes[from-1:]
	if count >= 0 && count < len(runes) {
		runes = runes[:count]
	}
	return []byte(string(runes))
}

func (c *compiler) concat(_ ast.Node, arguments []ast.Node) (*node, error) {
	parts := make([]*node, len(arguments))
	for i, argument := range arguments {
		part, err := c.compile(argument)
		if err != nil {
			return nil, err
		}
		parts[i] = part
	}
	return concat(parts...), nil
}

// toNumber reads a text of digits, as "12.50".
func (c *compiler) toNumber(n ast.Node, arguments []ast.Node) (*node, error) {
	value, err := c.compile(arguments[0])
	if err != nil {
		return nil, err
	}
	switch value.typ.class {
	case classNumber:
		return value, nil
	case classBool:
		return asNumber(value), nil
	case classText, classJSON, classAny, classNull:
	default:
		return nil, fault(n, "%s is %s, which is no number", arguments[0], value.typ.describe())
	}
	part := n.String()
	scalar := value.scalar()
	return &node{typ: valueType{class: classNumber}, value: func(r *Row) (canal.Value, error) {
		v, err := scalar(r)
		if err != nil || v.Kind == canal.KindNull || classOf(v.Kind) == classNumber {
			return v, err
		}
		text := strings.TrimSpace(string(v.Bytes))
		if !isTextual(classOf(v.Kind)) || !isDecimalText(text) {
			return null, fmt.Errorf("in %s: %w", abbreviate(part), errNoNumber)
		}
		d, err := readDecimal([]byte(text))
		if err != nil {
			return null, err
		}
		return r.decimalValue(&d)
	}}, nil
}

// json reads a text that holds JSON.
func (c *compiler) json(n ast.Node, arguments []ast.Node) (*node, error) {
	text, err := c.compile(arguments[0])
	if err != nil {
		return nil, err
	}
	switch text.typ.class {
	case classJSON, classAny, classText, classNull:
	default:
		return nil, fault(n, "%s is %s, which holds no JSON", arguments[0], text.typ.describe())
	}
	part := n.String()
	value := text.asValue()
	return &node{typ: valueType{class: classJSON}, value: func(r *Row) (canal.Value, error) {
		v, err := value(r)
		switch {
		case err != nil || v.Kind == canal.KindNull || v.Kind == canal.KindJSON:
			return v, err
		case !isTextual(classOf(v.Kind)) || !json.Valid(v.Bytes):
			return null, fmt.Errorf("in %s: %w", abbreviate(part), errBadJSON)
		}
		start := len(r.scratch)
		r.scratch = appendCompact(r.scratch, v.Bytes)
		return r.keep(canal.KindJSON, start), nil
	}}, nil
}

// appendCompact appends JSON without the spaces and line ends between its parts: events are one line.
func appendCompact(b, text []byte) []byte {
	buffer := bytes.NewBuffer(b)
	_ = json.Compact(buffer, text) // it is valid
	return buffer.Bytes()
}

// date is the day of a DATETIME or TIMESTAMP (in UTC).
func (c *compiler) date(n ast.Node, arguments []ast.Node) (*node, error) {
	moment, err := c.compile(arguments[0])
	if err != nil {
		return nil, err
	}
	if !isMoment(moment.typ.class) && moment.typ.class != classAny {
		return nil, fault(n, "%s is %s, which has no date", arguments[0], moment.typ.describe())
	}
	value := moment.asValue()
	return &node{typ: valueType{class: classDate}, value: func(r *Row) (canal.Value, error) {
		const day = len("2026-11-29")
		v, err := value(r)
		if err != nil || v.Kind == canal.KindNull {
			return null, err
		}
		if !isMoment(classOf(v.Kind)) || len(v.Bytes) < day {
			return null, fmt.Errorf("in date: it is %s, which has no date", classOf(v.Kind))
		}
		return canal.NewBytes(canal.KindDate, v.Bytes[:day]), nil
	}}, nil
}
