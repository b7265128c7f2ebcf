package expression

import (
	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

// in compiles value in [a, b] and "label" in set.
func (c *compiler) in(n *ast.BinaryNode) (*node, error) {
	value, err := c.compile(n.Left)
	if err != nil {
		return nil, err
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return c.inSet(n, value)
	}
	if len(list.Nodes) == 0 {
		return nil, fault(n, "nothing is in an empty list")
	}
	// As in SQL: a == x || a == y || …
	var tests []func(*Row) (Truth, error)
	constant := true
	for _, part := range list.Nodes {
		element, err := c.compile(part)
		if err != nil {
			return nil, err
		}
		test := constantTruth(Unknown) // as in SQL, NULL in a list equals nothing
		if element.typ.class != classNull {
			if test, err = c.comparison(n, "==", value, element); err != nil {
				return nil, err
			}
		}
		tests = append(tests, test.truth)
		constant = constant && test.constant
	}
	return &node{typ: valueType{class: classBool}, constant: constant, truth: func(r *Row) (Truth, error) {
		result := False
		for _, test := range tests {
			switch truth, err := test(r); {
			case err != nil || truth == True:
				return truth, err
			case truth == Unknown:
				result = Unknown
			}
		}
		return result, nil
	}}, nil
}

// inSet compiles "label" in new.set.
func (c *compiler) inSet(n *ast.BinaryNode, label *node) (*node, error) {
	set, err := c.compile(n.Right)
	if err != nil {
		return nil, err
	}
	if set.typ.class != classSet && set.typ.class != classAny {
		return nil, fault(n, `behind in stands a list, ["a", "b"], or a column of type SET, not %s`, set.typ.describe())
	}
	if !label.constant || label.typ.class != classText {
		return nil, fault(n, `the label of a SET is a text in quotes: "label" in %s`, n.Right)
	}
	text := label.of().Bytes
	if err := checkLabel(n, set.typ.labels, label); err != nil {
		return nil, err
	}
	value := set.value
	return &node{typ: valueType{class: classBool}, truth: func(r *Row) (Truth, error) {
		v, err := value(r)
		switch {
		case err != nil || v.Kind == canal.KindNull:
			return Unknown, err
		case v.Kind != canal.KindSet:
			return False, nil
		}
		return truthOf(holdsLabel(v.Bytes, text)), nil
	}}, nil
}
