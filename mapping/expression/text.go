package expression

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/binlogd/binlogd/canal"
)

var errNotNumbers = errors.New("a value is no number")

// appendValueText appends a value that is not NULL as texts show it: as in keys.
func appendValueText(b []byte, v canal.Value) []byte {
	switch v.Kind { //nolint:exhaustive // the others are texts already
	case canal.KindInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case canal.KindUint:
		return strconv.AppendUint(b, v.Uint(), 10)
	case canal.KindFloat:
		return appendFloat(b, float64(v.Float32()), 32)
	case canal.KindDouble:
		return appendFloat(b, v.Float64(), 64)
	}
	return append(b, v.Bytes...)
}

// appendFloat appends the shortest text that reads back as the same float, with exponents where events have them.
func appendFloat(b []byte, f float64, bits int) []byte {
	small, large := 1e-6, 1e21
	if bits == 32 {
		small, large = float64(float32(small)), float64(float32(large))
	}
	if abs := math.Abs(f); abs != 0 && (abs < small || abs >= large) {
		return strconv.AppendFloat(b, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(b, f, 'f', -1, bits)
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return strings.Join(quoted, ", ")
}

// texts compiles parts that must be texts.
func (c *compiler) texts(n ast.Node, parts ...ast.Node) ([]*node, error) {
	compiled := make([]*node, len(parts))
	for i, part := range parts {
		p, err := c.compile(part)
		if err != nil {
			return nil, err
		}
		switch p.typ.class {
		case classText, classAny, classJSON, classNull, classBinary:
		default:
			return nil, fault(n, "%s is %s, where a text is needed: write string(%s)", part, p.typ.describe(), part)
		}
		compiled[i] = p
	}
	return compiled, nil
}

// ofTexts gives the value of two texts; NULL where one is NULL.
func ofTexts(left, right *node, test func(a, b []byte) bool) *node {
	first, second := left.scalar(), right.scalar()
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
		case !isTextual(classOf(a.Kind)) || !isTextual(classOf(b.Kind)):
			return False, nil
		}
		return truthOf(test(a.Bytes, b.Bytes)), nil
	}}
}

func (c *compiler) textOperator(n *ast.BinaryNode) (*node, error) {
	sides, err := c.texts(n, n.Left, n.Right)
	if err != nil {
		return nil, err
	}
	test := bytes.Contains
	switch n.Operator {
	case "startsWith":
		test = bytes.HasPrefix
	case "endsWith":
		test = bytes.HasSuffix
	}
	return ofTexts(sides[0], sides[1], test), nil
}

// Bounds of a regular expression: those of RE2 take time in proportion to their size times the text's.
const (
	maxPattern      = 500    // bytes
	maxPatternParts = 10_000 // instructions
)

// matches compiles text matches "regular expression".
func (c *compiler) matches(n *ast.BinaryNode) (*node, error) {
	sides, err := c.texts(n, n.Left, n.Right)
	if err != nil {
		return nil, err
	}
	if !sides[1].constant || sides[1].typ.class != classText {
		return nil, fault(n, `a regular expression does not come from a row: write it in quotes, matches "^A[0-9]+$"`)
	}
	expression, err := compilePattern(string(sides[1].of().Bytes))
	if err != nil {
		return nil, fault(n, "%v", err)
	}
	return ofTexts(sides[0], sides[1], func(text, _ []byte) bool { return expression.Match(text) }), nil
}

func compilePattern(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the regular expression is %d bytes long: at most %d are allowed", len(pattern), maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the regular expression cannot be read (RE2 syntax): %w", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("the regular expression cannot be read (RE2 syntax): %w", err)
	}
	if parts := len(program.Inst); parts > maxPatternParts {
		return nil, fmt.Errorf("the regular expression has %d parts once its repetitions are written out: at most %d are allowed", parts, maxPatternParts)
	}
	return regexp.Compile(pattern)
}

// concatenation compiles text + text.
func (c *compiler) concatenation(n *ast.BinaryNode, left *node) (*node, error) {
	right, err := c.compile(n.Right)
	if err != nil {
		return nil, err
	}
	switch right.typ.class {
	case classText, classAny, classJSON, classNull:
	default:
		return nil, fault(n, "a text and %s: write string(%s), or concat(…)", right.typ.describe(), n.Right)
	}
	return concat(left, right), nil
}

// concat joins the texts of its parts; NULL where one is NULL.
func concat(parts ...*node) *node {
	values := make([]func(*Row) (canal.Value, error), len(parts))
	for i, part := range parts {
		values[i] = part.scalar()
	}
	return &node{typ: valueType{class: classText}, value: func(r *Row) (canal.Value, error) {
		var text []byte // parts may use the scratch memory themselves
		for _, value := range values {
			v, err := value(r)
			if err != nil || v.Kind == canal.KindNull {
				return null, err
			}
			text = appendValueText(text, v)
		}
		return canal.NewBytes(canal.KindText, text), nil
	}}
}

var temporalExamples = map[class]string{
	classDate: "2026-11-29", classDateTime: "2026-11-29T10:00:00", classInstant: "2026-11-29T10:00:00Z", classTime: "10:00:00",
}

// temporalConstant reads a text as a constant of a temporal class; a DATETIME may have a space for its T. Zero dates are allowed, as
// the servers have them.
func temporalConstant(c class, text string) (*node, bool) {
	const date, clock = "2006-01-02", "2006-01-02T15:04:05"
	text = strings.Replace(text, " ", "T", 1)
	parses := func(layouts ...string) bool {
		for _, layout := range layouts {
			if _, err := time.Parse(layout, text); err == nil {
				return true
			}
		}
		return strings.HasPrefix(text, "0000-00-00") && strings.Trim(text, "0-T:.Z") == ""
	}
	switch c { //nolint:exhaustive // the others are not temporal
	case classDate, classDateTime:
		if !parses(date, clock) {
			return nil, false
		}
		return constant(canal.NewBytes(canal.KindDateTime, []byte(text))), true
	case classInstant:
		moment, err := time.Parse(time.RFC3339Nano, text)
		switch {
		case err == nil:
			text = moment.UTC().Format(time.RFC3339Nano)
		case !strings.HasPrefix(text, "0000-00-00") || !parses():
			return nil, false
		}
		return constant(canal.NewBytes(canal.KindInstant, []byte(text))), true
	case classTime:
		if !timePattern.MatchString(text) {
			return nil, false
		}
		return constant(canal.NewBytes(canal.KindTime, []byte(text))), true
	}
	return nil, false
}

var timePattern = regexp.MustCompile(`^-?\d{1,3}:[0-5]\d:[0-5]\d(\.\d{1,6})?$`)
