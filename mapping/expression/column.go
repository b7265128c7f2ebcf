package expression

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

// reference is a column of one of a change's rows.
type reference struct {
	image  string // old, new or row
	column int
	name   string
}

// reference reads new.NAME and new["NAME"].
func (c *compiler) reference(n *ast.MemberNode) (ref reference, ok bool, err error) {
	id, isName := n.Node.(*ast.IdentifierNode)
	if !isName || id.Value != oldRow && id.Value != newRow && id.Value != shownRow {
		return ref, false, nil
	}
	property, isText := n.Property.(*ast.StringNode)
	if !isText {
		return ref, true, fault(n, `a column is named by a text: %s["name"]`, id.Value)
	}
	ref = reference{image: id.Value, name: property.Value, column: c.columnIndex(property.Value)}
	if ref.column < 0 {
		return ref, true, fault(n, "%s", c.unknownColumn(property.Value))
	}
	return ref, true, c.checkImage(n, id.Value)
}

func (c *compiler) columnIndex(name string) int {
	for i := range c.scope.Table.Columns {
		if c.scope.Table.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

func (c *compiler) unknownColumn(name string) string {
	table := c.scope.Table
	names := make([]string, len(table.Columns))
	for i := range table.Columns {
		names[i] = table.Columns[i].Name
		if strings.EqualFold(names[i], name) {
			return fmt.Sprintf("table %s.%s has no column %q: write %s", table.Database, table.Name, name, names[i])
		}
	}
	return fmt.Sprintf("table %s.%s has no column %q: write one of %s", table.Database, table.Name, name, strings.Join(names, ", "))
}

// checkImage refuses old where there never is an old row, and new likewise.
func (c *compiler) checkImage(n ast.Node, image string) error {
	ops := c.scope.Ops
	switch {
	case ops&^OpSet(canal.Truncate) == 0:
		return fault(n, "TRUNCATE has no rows: leave it out, or leave truncate out of on")
	case image == oldRow && ops&OpSet(canal.Update, canal.Delete) == 0:
		return fault(n, "an insert has no old row: write new, or add update or delete to on")
	case image == newRow && ops&OpSet(canal.Insert, canal.Update) == 0:
		return fault(n, "a deletion has no new row: write old, or add insert or update to on")
	}
	return nil
}

// column compiles a reference to a column's value, masked where the scope says so.
func (c *compiler) column(ref reference) *node {
	n := &node{typ: columnType(&c.scope.Table.Columns[ref.column])}
	image := ref.image
	if image == shownRow {
		image = newRow
	}
	n.value = func(r *Row) (canal.Value, error) {
		v := r.find(ref.image, ref.column)
		if v.Kind == canal.KindAbsent {
			return null, &AbsentError{Image: image, Column: ref.name}
		}
		return *v, nil
	}
	if c.scope.Masks == nil || c.scope.Masks[ref.column] == nil {
		return n
	}
	mask, plain := c.scope.Masks[ref.column], n.value
	return &node{typ: valueType{class: classText}, value: func(r *Row) (canal.Value, error) {
		v, err := plain(r)
		if err == nil && v.Kind != canal.KindNull {
			r.scratch, v = mask(r.scratch, v)
		}
		return v, err
	}}
}

// member compiles new.NAME, and a.b and a[0] of JSON.
func (c *compiler) member(n *ast.MemberNode) (*node, error) {
	ref, ok, err := c.reference(n)
	if err != nil {
		return nil, err
	}
	if ok {
		return c.column(ref), nil
	}
	document, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	switch document.typ.class {
	case classJSON, classAny, classNull:
	case classText:
		return nil, fault(n, "%s is a text, which has no members: write json(%s) if it holds JSON", n.Node, n.Node)
	default:
		return nil, fault(n, "%s is %s, which has no members", n.Node, document.typ.describe())
	}
	var step pathStep
	switch p := n.Property.(type) {
	case *ast.StringNode:
		step.name = p.Value
	case *ast.IntegerNode:
		step.index, step.isIndex = p.Value, true
	default:
		return nil, fault(n, `members of JSON are named by texts or numbers that do not change: ["name"], [0]`)
	}
	value := document.asValue()
	return &node{typ: valueType{class: classJSON}, value: func(r *Row) (canal.Value, error) {
		v, err := value(r)
		if err != nil || v.Kind != canal.KindJSON {
			return null, err
		}
		return step.find(v.Bytes)
	}}, nil
}
