package expression

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

// Scope is what an expression is compiled for.
type Scope struct {
	Table *canal.Table
	// Ops are the kinds of changes that it is evaluated for: they decide whether there is an old and a new row.
	Ops Ops
	// Masks hold, by column, what is shown in the place of its value; nil shows the value. A nil slice masks nothing: for
	// conditions, whose result says no more than their author asks.
	Masks []Mask
}

// Mask appends to b what is shown in the place of v and returns both; v is not NULL. The shown value is NULL or made of
// the bytes that it appended.
type Mask func(b []byte, v canal.Value) ([]byte, canal.Value)

// Condition is a compiled expression that is true, false or unknown.
type Condition struct {
	truth    func(*Row) (Truth, error)
	constant bool
}

// Eval evaluates the condition. Its errors hold no values of the row; *AbsentError is one of them.
func (c *Condition) Eval(r *Row) (Truth, error) { return c.truth(r) }

// Constant reports whether the result is the same for all rows, and which.
func (c *Condition) Constant() (Truth, bool) {
	if !c.constant {
		return Unknown, false
	}
	truth, err := c.truth(&Row{})
	return truth, err == nil
}

// Program is a compiled expression that gives a value: of a column's kind, or of KindBool.
type Program struct {
	value func(*Row) (canal.Value, error)
	typ   valueType
}

// Eval evaluates the expression. The value is never absent. Its errors hold no values of the row; *AbsentError is one of them.
func (p *Program) Eval(r *Row) (canal.Value, error) { return p.value(r) }

// IsText reports whether the value can be shown as a text of its own: it is no JSON, SET, GEOMETRY or VECTOR.
func (p *Program) IsText() bool {
	switch p.typ.class { //nolint:exhaustive // the others can
	case classSet, classGeometry, classVector:
		return false
	}
	return true
}

// Condition compiles e as a condition. Its error is an *Error.
func (e *Expression) Condition(scope *Scope) (*Condition, error) {
	c := compiler{text: e.text, scope: scope}
	n, err := c.condition(e.root)
	if err != nil {
		return nil, err
	}
	return &Condition{truth: n.truth, constant: n.constant}, nil
}

// Program compiles e as a value. Its error is an *Error.
func (e *Expression) Program(scope *Scope) (*Program, error) {
	c := compiler{text: e.text, scope: scope}
	n, err := c.compile(e.root)
	if err != nil {
		return nil, err
	}
	p := &Program{value: n.asValue(), typ: n.typ}
	if v := n.of(); n.constant && v.Kind == canal.KindDecimal {
		// A number that is written is shown as one; a DECIMAL is shown as a text.
		v.Kind = canal.KindJSON
		p.value = func(*Row) (canal.Value, error) { return v, nil }
	}
	return p, nil
}

// node is a compiled part of an expression. Conditions have truth, all others value.
type node struct {
	typ      valueType
	value    func(*Row) (canal.Value, error)
	truth    func(*Row) (Truth, error)
	constant bool // and hence without an error
}

func (n *node) asValue() func(*Row) (canal.Value, error) {
	if n.truth == nil {
		return n.value
	}
	truth := n.truth
	return func(r *Row) (canal.Value, error) {
		t, err := truth(r)
		return t.value(), err
	}
}

// of is the value of a constant.
func (n *node) of() canal.Value {
	v, _ := n.asValue()(&Row{}) // constants have no errors
	return v
}

func constant(v canal.Value) *node {
	return &node{typ: valueType{class: classOf(v.Kind)}, constant: true, value: func(*Row) (canal.Value, error) { return v, nil }}
}

func constantTruth(t Truth) *node {
	return &node{typ: valueType{class: classBool}, constant: true, truth: func(*Row) (Truth, error) { return t, nil }}
}

type compiler struct {
	text  []rune
	scope *Scope
}

// fault is a mistake in a part.
func fault(n ast.Node, format string, args ...any) error {
	return &Error{Part: n.String(), Problem: fmt.Sprintf(format, args...)}
}

func (c *compiler) compile(n ast.Node) (*node, error) {
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(null), nil
	case *ast.BoolNode:
		return constantTruth(truthOf(n.Value)), nil
	case *ast.IntegerNode:
		return constant(canal.NewInt(int64(n.Value))), nil
	case *ast.FloatNode:
		return c.number(n, ""), nil
	case *ast.StringNode:
		return constant(canal.NewText(n.Value)), nil
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.ChainNode:
		return c.compile(n.Node)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.CallNode:
		callee, _ := n.Callee.(*ast.IdentifierNode) // checkTree has seen to it
		return c.call(n, callee.Value, n.Arguments)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.ArrayNode:
		return nil, fault(n, "a list stands only behind in: new.status in [\"paid\", \"sent\"]; lists of data are written in YAML")
	}
	return nil, fault(n, "this is not part of the language of rules")
}

// condition compiles a part that must be a condition.
func (c *compiler) condition(n ast.Node) (*node, error) {
	compiled, err := c.compile(n)
	if err != nil {
		return nil, err
	}
	return asCondition(n, compiled)
}

func asCondition(n ast.Node, compiled *node) (*node, error) {
	switch {
	case compiled.truth != nil:
		return compiled, nil
	case compiled.typ.class == classNull:
		return constantTruth(Unknown), nil
	case compiled.typ.class == classAny || compiled.typ.class == classJSON:
		value := compiled.scalar()
		part := n.String()
		return &node{typ: valueType{class: classBool}, truth: func(r *Row) (Truth, error) {
			v, err := value(r)
			switch {
			case err != nil:
				return Unknown, err
			case v.Kind == canal.KindNull:
				return Unknown, nil
			case v.Kind != KindBool:
				return Unknown, fmt.Errorf("in %s: it is no condition, but %s", abbreviate(part), classOf(v.Kind))
			}
			return truthOf(isTrue(v)), nil
		}}, nil
	case compiled.typ.class == classNumber:
		return nil, fault(n, "it is a number, where a condition is needed: write %s != 0", n)
	}
	return nil, fault(n, "it is %s, where a condition is needed: compare it, as in %s == …", compiled.typ.describe(), n)
}

// number is a number as it was written behind a sign: a float64 would lose digits.
func (c *compiler) number(n *ast.FloatNode, sign string) *node {
	text := strconv.FormatFloat(n.Value, 'f', -1, 64)
	if at := n.Location(); at.From >= 0 && at.To <= len(c.text) && at.From < at.To {
		written := strings.ReplaceAll(string(c.text[at.From:at.To]), "_", "")
		if strings.HasPrefix(written, ".") {
			written = "0" + written
		}
		if isDecimalText(written) {
			text = written
		}
	}
	const longest = 18 // digits that surely fit an int64
	if whole, ok := strings.CutSuffix(text, wholeFraction); ok && len(whole) > longest {
		if number, err := strconv.ParseUint(whole, 10, 64); err == nil && sign == "" {
			return constant(canal.NewUint(number))
		}
		text = whole
	}
	return constant(canal.NewBytes(canal.KindDecimal, []byte(sign+text)))
}

// isDecimalText reports whether text is digits with perhaps a minus before and a point among them.
func isDecimalText(text string) bool {
	text = strings.TrimPrefix(text, "-")
	whole, rest, pointed := strings.Cut(text, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!pointed || digits(rest)) && len(text) <= maxDigits+1
}

func (c *compiler) identifier(n *ast.IdentifierNode) (*node, error) {
	switch n.Value {
	case "null", "NULL":
		return constant(null), nil
	case oldRow, newRow, shownRow:
		return nil, fault(n, "it is a whole row: name a column, as in %s.%s; alone it may stand in data only", n.Value, c.exampleColumn())
	}
	if v, ok := variableTypes[n.Value]; ok {
		return &node{typ: valueType{class: v.class}, value: func(r *Row) (canal.Value, error) { return r.variables[v.variable], nil }}, nil
	}
	if c.columnIndex(n.Value) >= 0 {
		return nil, fault(n, "columns belong to a row: write new.%s or old.%s", n.Value, n.Value)
	}
	return nil, fault(n, `unknown name: columns are written new.NAME and old.NAME, texts in quotes ("%s"); there are also %s`, n.Value, variableNames())
}

func variableNames() string {
	var names []string
	for name := range variableTypes {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (c *compiler) exampleColumn() string {
	if len(c.scope.Table.Columns) > 0 {
		return c.scope.Table.Columns[0].Name
	}
	return "column"
}

func (c *compiler) conditional(n *ast.ConditionalNode) (*node, error) {
	condition, err := c.condition(n.Cond)
	if err != nil {
		return nil, err
	}
	yes, err := c.compile(n.Exp1)
	if err != nil {
		return nil, err
	}
	no, err := c.compile(n.Exp2)
	if err != nil {
		return nil, err
	}
	if yes.truth != nil && no.truth != nil {
		return &node{typ: valueType{class: classBool}, truth: func(r *Row) (Truth, error) {
			switch truth, err := condition.truth(r); {
			case err != nil:
				return Unknown, err
			case truth == True:
				return yes.truth(r)
			}
			return no.truth(r)
		}}, nil
	}
	first, second := yes.asValue(), no.asValue()
	return &node{typ: join(yes.typ, no.typ), value: func(r *Row) (canal.Value, error) {
		switch truth, err := condition.truth(r); {
		case err != nil:
			return null, err
		case truth == True:
			return first(r)
		}
		return second(r)
	}}, nil
}
