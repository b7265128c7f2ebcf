package expression

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Bounds of one expression.
const (
	maxLength = 8 << 10 // bytes of source
	maxNodes  = 1000    // parts
	maxDepth  = 100     // of parts inside parts
)

// Expression is the text of an expression, parsed. It can be compiled for any number of tables.
type Expression struct {
	source string
	text   []rune // what was parsed: the places in the tree count its runes
	root   ast.Node
}

// Error is a mistake in an expression.
type Error struct {
	Part    string // of the expression that is about; empty for the whole
	Problem string // and what to write instead
}

func (e *Error) Error() string {
	if e.Part == "" {
		return e.Problem
	}
	return fmt.Sprintf("in %s: %s", abbreviate(e.Part), e.Problem)
}

// abbreviate cuts a part to what fits a message.
func abbreviate(part string) string {
	const limit = 80
	if utf8.RuneCountInString(part) <= limit {
		return part
	}
	return string([]rune(part)[:limit-1]) + "…"
}

// Parse reads an expression. Its error is an *Error.
func Parse(source string) (*Expression, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, &Error{Problem: `empty: write an expression such as new.status == "paid"`}
	case len(source) > maxLength:
		return nil, &Error{Problem: fmt.Sprintf("%d bytes long: at most %d are allowed", len(source), maxLength)}
	case !utf8.ValidString(source):
		return nil, &Error{Problem: "it is not UTF-8"}
	}
	text := widen(source)
	tree, err := new(parser.Parser).Parse(text, &conf.Config{MaxNodes: maxNodes})
	if err != nil {
		return nil, syntaxError(err)
	}
	e := &Expression{source: source, text: []rune(text), root: tree.Node}
	if err := checkTree(e.root, 0); err != nil {
		return nil, err
	}
	return e, nil
}

// longNumber is a whole number that may not fit an int64, which is all that the parser has, or a text in quotes, whose digits are none.
var longNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|[\w.]*\d{19,}[\w.]*`)

// widen writes such numbers with a fraction, which the compiler takes off again: 18446744073709551615 is an unsigned BIGINT.
func widen(source string) string {
	return longNumber.ReplaceAllStringFunc(source, func(token string) string {
		if strings.Trim(token, "0123456789") != "" {
			return token
		}
		return token + wholeFraction
	})
}

// wholeFraction stands behind whole numbers that are too large for the parser.
const wholeFraction = ".0"

// String is the expression as it was written.
func (e *Expression) String() string { return e.source }

// Image is "old", "new" or "row" where the expression is that word alone, else empty: it stands for all columns then.
func (e *Expression) Image() string {
	if id, ok := e.root.(*ast.IdentifierNode); ok {
		switch id.Value {
		case oldRow, newRow, shownRow:
			return id.Value
		}
	}
	return ""
}

func syntaxError(err error) error {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		return &Error{Problem: err.Error()}
	}
	if strings.Contains(at.Message, "maximum allowed nodes") {
		return &Error{Problem: fmt.Sprintf("more than %d parts: make it simpler, or several rules", maxNodes)}
	}
	return &Error{Problem: fmt.Sprintf("syntax error at character %d: %s", at.From+1, at.Message)}
}

// checkTree refuses what is nested too deep, and what the language of rules leaves out: everything that repeats, and
// everything that has a name for a value.
func checkTree(n ast.Node, depth int) error {
	if depth > maxDepth {
		return &Error{Problem: fmt.Sprintf("parts inside parts more than %d deep: make it simpler", maxDepth)}
	}
	refuse := func(format string, args ...any) error {
		return &Error{Part: n.String(), Problem: fmt.Sprintf(format, args...)}
	}
	var parts []ast.Node
	switch n := n.(type) {
	case nil:
		return &Error{Problem: "it cannot be read"}
	case *ast.NilNode, *ast.IdentifierNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
	case *ast.UnaryNode:
		parts = []ast.Node{n.Node}
	case *ast.BinaryNode:
		parts = []ast.Node{n.Left, n.Right}
		if pattern, ok := n.Right.(*ast.StringNode); ok && n.Operator == "matches" {
			if _, err := compilePattern(pattern.Value); err != nil {
				return refuse("%v", err)
			}
		}
	case *ast.ChainNode:
		parts = []ast.Node{n.Node}
	case *ast.MemberNode:
		parts = []ast.Node{n.Node, n.Property}
	case *ast.CallNode:
		if _, ok := n.Callee.(*ast.IdentifierNode); !ok {
			return refuse("only functions by name can be called: %s", functionNames())
		}
		parts = n.Arguments
	case *ast.BuiltinNode:
		parts = n.Arguments
	case *ast.ConditionalNode:
		parts = []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.ArrayNode:
		parts = n.Nodes
	case *ast.PredicateNode, *ast.PointerNode:
		return refuse("there are no loops in rules: write a condition for each value")
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		return refuse("there are no variables in rules: write one expression")
	case *ast.MapNode, *ast.PairNode:
		return refuse("objects are written in YAML: data: {name: {inner: new.column}}")
	default:
		return refuse("this is not part of the language of rules")
	}
	for _, part := range parts {
		if err := checkTree(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}
