package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

func (c *compiler) unary(n *ast.UnaryNode) (*node, error) {
	switch n.Operator {
	case "!", "not":
		inner, err := c.condition(n.Node)
		if err != nil {
			return nil, err
		}
		truth := inner.truth
		return &node{typ: inner.typ, constant: inner.constant, truth: func(r *Row) (Truth, error) {
			t, err := truth(r)
			return t.not(), err
		}}, nil
	case "-":
		switch n := n.Node.(type) {
		case *ast.IntegerNode:
			return constant(canal.NewInt(-int64(n.Value))), nil
		case *ast.FloatNode:
			return c.number(n, "-"), nil
		}
		return c.arithmetic(n, '-', constant(canal.NewInt(0)), n.Node)
	case "+":
		return c.arithmetic(n, '+', constant(canal.NewInt(0)), n.Node)
	}
	return nil, fault(n, "the operator %s is not part of the language of rules", n.Operator)
}

func (c *compiler) binary(n *ast.BinaryNode) (*node, error) {
	switch n.Operator {
	case "&&", "and":
		return c.logic(n, False)
	case "||", "or":
		return c.logic(n, True)
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	case "contains", "startsWith", "endsWith":
		return c.textOperator(n)
	}
	left, err := c.compile(n.Left)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=":
		right, err := c.compile(n.Right)
		if err != nil {
			return nil, err
		}
		return c.comparison(n, n.Operator, left, right)
	case "??":
		right, err := c.compile(n.Right)
		if err != nil {
			return nil, err
		}
		return coalesce(left, right), nil
	case "+":
		if left.typ.class == classText {
			return c.concatenation(n, left)
		}
		return c.arithmetic(n, '+', left, n.Right)
	case "-", "*", "/", "%":
		return c.arithmetic(n, n.Operator[0], left, n.Right)
	}
	return nil, fault(n, "the operator %s is not part of the language of rules", n.Operator)
}

// logic compiles && and ||: decisive is the truth of one side that decides, whatever the other is. Where the left side
// decides, the right one is not evaluated.
func (c *compiler) logic(n *ast.BinaryNode, decisive Truth) (*node, error) {
	left, err := c.condition(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.condition(n.Right)
	if err != nil {
		return nil, err
	}
	first, second := left.truth, right.truth
	return &node{typ: left.typ, constant: left.constant && right.constant, truth: func(r *Row) (Truth, error) {
		a, err := first(r)
		if err != nil || a == decisive {
			return a, err
		}
		b, err := second(r)
		if err != nil || b == decisive || a == b {
			return b, err
		}
		return Unknown, nil
	}}, nil
}

// coalesce is the left value, or the right one where that is NULL.
func coalesce(left, right *node) *node {
	first, second := left.asValue(), right.asValue()
	return &node{typ: join(left.typ, right.typ), value: func(r *Row) (canal.Value, error) {
		v, err := first(r)
		if err != nil || v.Kind != canal.KindNull {
			return v, err
		}
		return second(r)
	}}
}

// comparison compiles one of the six operators. n is for messages.
func (c *compiler) comparison(n ast.Node, operator string, left, right *node) (*node, error) {
	if left.typ.class == classNull || right.typ.class == classNull {
		return nullTest(n, operator, left, right)
	}
	left, right, err := c.comparable(n, left, right)
	if err != nil {
		return nil, err
	}
	holds := orderTest(operator)
	compare := comparerOf(left.typ.class, right.typ.class)
	first, second := left.scalar(), right.scalar()
	equality := operator == "==" || operator == "!="
	return &node{typ: valueType{class: classBool}, constant: left.constant && right.constant, truth: func(r *Row) (Truth, error) {
		a, err := first(r)
		if err != nil {
			return Unknown, err
		}
		b, err := second(r)
		switch {
		case err != nil:
			return Unknown, err
		case a.Kind == canal.KindNull || b.Kind == canal.KindNull:
			return Unknown, nil
		}
		order, ok := compare(a, b)
		switch {
		case ok:
			return truthOf(holds(order)), nil
		case equality: // values of different kinds are different
			return truthOf(operator == "!="), nil
		}
		return Unknown, nil
	}}, nil
}

func orderTest(operator string) func(order int) bool {
	switch operator {
	case "==":
		return func(order int) bool { return order == 0 }
	case "!=":
		return func(order int) bool { return order != 0 }
	case "<":
		return func(order int) bool { return order < 0 }
	case "<=":
		return func(order int) bool { return order <= 0 }
	case ">":
		return func(order int) bool { return order > 0 }
	}
	return func(order int) bool { return order >= 0 }
}

// nullTest compiles a comparison with the word null: == and != test, as IS NULL and IS NOT NULL do in SQL.
func nullTest(n ast.Node, operator string, left, right *node) (*node, error) {
	if operator != "==" && operator != "!=" {
		return nil, fault(n, "nothing is smaller or larger than null: write == null or != null")
	}
	tested := left
	if left.typ.class == classNull {
		tested = right
	}
	value := tested.scalar()
	return &node{typ: valueType{class: classBool}, constant: tested.constant, truth: func(r *Row) (Truth, error) {
		v, err := value(r)
		return truthOf((v.Kind == canal.KindNull) == (operator == "==")), err
	}}, nil
}

// comparable makes two values comparable, or says why they are not. Texts that do not change take the type of the
// other side.
func (c *compiler) comparable(n ast.Node, left, right *node) (l, r *node, err error) {
	if left.constant && !right.constant {
		r, l, err = c.comparable(n, right, left)
		return l, r, err
	}
	a, b := left.typ.class, right.typ.class
	switch {
	case a == classAny || b == classAny || a == classJSON || b == classJSON:
		return left, right, nil
	case a == classSet || b == classSet:
		return nil, nil, fault(n, `a SET is no single value: write "label" in new.column`)
	case a == classGeometry || a == classVector || b == classGeometry || b == classVector:
		return nil, nil, fault(n, "%s cannot be compared with %s: ask changed(\"column\"), or == null", left.typ.describe(), right.typ.describe())
	case isTextual(a) && isTextual(b):
		return left, right, checkLabel(n, left.typ.labels, right)
	case a == b:
		return left, right, nil
	case isMoment(a) && isMoment(b) && (a == classInstant) == (b == classInstant):
		return left, right, nil
	case right.constant && b == classText && (isMoment(a) || a == classTime):
		moment, ok := temporalConstant(a, string(right.of().Bytes))
		if !ok {
			return nil, nil, fault(n, "%s cannot be compared with this text: write one such as %q", left.typ.describe(), temporalExamples[a])
		}
		return left, moment, nil
	case a == classNumber && b == classBool, a == classBool && b == classNumber:
		return asNumber(left), asNumber(right), nil
	case a == classNumber && b == classText:
		return nil, nil, fault(n, "a number cannot be compared with a text: write the number without quotes, or number(…) around the text")
	case a == classText && b == classNumber:
		return nil, nil, fault(n, "a text cannot be compared with a number: write the number in quotes, or number(…) around the text")
	}
	return nil, nil, fault(n, "%s cannot be compared with %s", left.typ.describe(), right.typ.describe())
}

// checkLabel refuses a text that an ENUM or SET never has.
func checkLabel(n ast.Node, labels []string, text *node) error {
	if len(labels) == 0 || !text.constant {
		return nil
	}
	wanted := string(text.of().Bytes)
	if wanted == "" || slices.Contains(labels, wanted) { // the server stores the empty text for an invalid label
		return nil
	}
	return fault(n, "the column has no label %q: write one of %s", wanted, quoteAll(labels))
}

// asNumber turns a condition into 1 or 0, as SQL does.
func asNumber(n *node) *node {
	if n.truth == nil {
		return n
	}
	truth := n.truth
	return &node{typ: valueType{class: classNumber}, constant: n.constant, value: func(r *Row) (canal.Value, error) {
		switch t, err := truth(r); {
		case err != nil || t == Unknown:
			return null, err
		case t == True:
			return canal.NewInt(1), nil
		}
		return canal.NewInt(0), nil
	}}
}

// arithmetic compiles one of + - * / %.
func (c *compiler) arithmetic(n ast.Node, operator byte, left *node, rightPart ast.Node) (*node, error) {
	right, err := c.compile(rightPart)
	if err != nil {
		return nil, err
	}
	for _, side := range []*node{left, right} {
		switch side.typ.class {
		case classNumber, classAny, classJSON, classNull:
		case classText:
			return nil, fault(n, "one side is a text: texts are joined by + after a text only, or by concat(…); write number(…) around a text of digits")
		default:
			return nil, fault(n, "one side is %s, where a number is needed", side.typ.describe())
		}
	}
	first, second := left.scalar(), right.scalar()
	return &node{typ: valueType{class: classNumber}, value: func(r *Row) (canal.Value, error) {
		a, err := first(r)
		if err != nil {
			return null, err
		}
		b, err := second(r)
		switch {
		case err != nil:
			return null, err
		case a.Kind == canal.KindNull || b.Kind == canal.KindNull:
			return null, nil
		case classOf(a.Kind) != classNumber || classOf(b.Kind) != classNumber:
			return null, errNotNumbers
		}
		return r.arithmetic(operator, a, b)
	}}, nil
}
