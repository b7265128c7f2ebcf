package mapping

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pattern says which tables an entry is about: "database.table", where both sides may
// hold
//
//   - any characters, none included
//     ?            one character
//     {a,b*}       one of several texts, which may hold * and ?
//     {0000..1023} a number of the range, with the width of its ends; {1..20} without zeros
//     \            makes the next character stand for itself
//
// Names are compared exactly, in upper and lower case as the server keeps them. The
// server's own databases (mysql, sys, information_schema, performance_schema) are matched
// only where the database's side names them without * and ?.
type pattern struct {
	database, table glob
}

// parsePattern reads a pattern. Its errors say what to write instead.
func parsePattern(s string) (pattern, error) {
	p := patternParser{rest: s}
	database, err := p.side()
	if err != nil {
		return pattern{}, err
	}
	if p.rest == "" {
		return pattern{}, fmt.Errorf("%q has no dot: write database.table, or %s.* for all tables of a database", s, s)
	}
	p.rest = p.rest[1:]
	table, err := p.side()
	if err != nil {
		return pattern{}, err
	}
	if p.rest != "" {
		return pattern{}, fmt.Errorf(`%q has more than one dot: write \. for a dot that belongs to a name`, s)
	}
	if len(database.nodes) == 0 || len(table.nodes) == 0 {
		return pattern{}, fmt.Errorf("%q names nothing before or after its dot: write database.table; * stands for any", s)
	}
	return pattern{database: database, table: table}, nil
}

// matches reports whether the pattern is about the table.
func (p pattern) matches(database, table string) bool {
	if p.database.wild && systemDatabase(database) {
		return false
	}
	return p.database.matches(database) && p.table.matches(table)
}

// exact reports whether the pattern names one table.
func (p pattern) exact() bool { return p.database.exact() && p.table.exact() }

// shard is what tells a table apart from the others of the pattern: the part of its name, and of its database's, that
// the pattern leaves open, joined by a dot. It is empty for a pattern that names one table.
func (p pattern) shard(database, table string) string {
	d, t := p.database.open(database), p.table.open(table)
	if d != "" && t != "" {
		return d + "." + t
	}
	return d + t
}

func systemDatabase(name string) bool {
	switch name {
	case "mysql", "sys", "information_schema", "performance_schema":
		return true
	}
	return false
}

// QuotePattern returns name as a side of a table pattern that matches exactly it.
func QuotePattern(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(special, name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// special are the characters that a pattern gives, or reserves, a meaning.
const special = `\.*?{}[],`

// patternParser reads a pattern from its front.
type patternParser struct {
	rest string
	dots bool // a dot is a character like any other
}

// side reads up to the dot, or to the end.
func (p *patternParser) side() (glob, error) {
	g, err := p.text(".")
	if err == nil && strings.HasPrefix(p.rest, "}") {
		err = errors.New(`"}" without "{": write \} for the character itself`)
	}
	return g, err
}

// text reads up to one of the bytes of end outside sets, or a closing brace, or to the end
// of the pattern.
func (p *patternParser) text(end string) (glob, error) {
	var g glob
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			g.nodes = append(g.nodes, node{kind: nodeLiteral, text: string(literal)})
			literal = literal[:0]
		}
	}
	for p.rest != "" {
		c := p.rest[0]
		if c == '}' || strings.IndexByte(end, c) >= 0 {
			break
		}
		p.rest = p.rest[1:]
		switch c {
		case '\\':
			if p.rest == "" {
				return g, errors.New(`it ends with "\": write \\ for the character itself`)
			}
			literal = append(literal, p.rest[0])
			p.rest = p.rest[1:]
		case '*', '?':
			flush()
			g.wild = true
			kind := nodeRun
			if c == '?' {
				kind = nodeRune
			}
			g.nodes = append(g.nodes, node{kind: kind})
		case '{':
			if end == "," {
				return g, errors.New("sets inside sets are not supported: write all texts in one set, {a1,a2,b}")
			}
			flush()
			set, err := p.set()
			if err != nil {
				return g, err
			}
			for _, option := range set.options {
				g.wild = g.wild || option.wild
			}
			g.nodes = append(g.nodes, set)
		case '[', ']':
			return g, fmt.Errorf(`%q has no meaning: write a set such as {a,b,c}, or \%c for the character itself`, c, c)
		case '.':
			if p.dots {
				literal = append(literal, c)
				continue
			}
			return g, errors.New(`a dot inside a set belongs to a range of numbers, {0000..1023}: write \. for the character itself`)
		default:
			literal = append(literal, c)
		}
	}
	flush()
	return g, nil
}

// set reads the texts and ranges of a set, after its opening brace.
func (p *patternParser) set() (node, error) {
	n := node{kind: nodeSet}
	for {
		option, err := p.option()
		if err != nil {
			return n, err
		}
		n.options = append(n.options, option)
		switch {
		case p.rest == "":
			return n, errors.New(`"{" without "}": write {a,b}, or \{ for the character itself`)
		case p.rest[0] == '}':
			p.rest = p.rest[1:]
			if len(n.options) == 1 && len(option.nodes) == 0 {
				return n, errors.New("{} is an empty set: write {a,b}")
			}
			return n, nil
		}
		p.rest = p.rest[1:] // the comma
	}
}

// option reads one text or range of a set.
func (p *patternParser) option() (glob, error) {
	to := strings.IndexAny(p.rest, ",}")
	if to < 0 || !strings.Contains(p.rest[:to], "..") {
		return p.text(",")
	}
	n, err := parseNumbers(p.rest[:to])
	if err != nil {
		return glob{}, err
	}
	p.rest = p.rest[to:]
	return glob{nodes: []node{n}}, nil
}

// parseNumbers reads a range of numbers, "0000..1023".
func parseNumbers(s string) (node, error) {
	first, last, _ := strings.Cut(s, "..")
	low, lowErr := strconv.ParseUint(first, 10, 64)
	high, highErr := strconv.ParseUint(last, 10, 64)
	padded := len(first) > 1 && first[0] == '0' || len(last) > 1 && last[0] == '0'
	switch {
	case lowErr != nil || highErr != nil:
		return node{}, fmt.Errorf("{%s} is not a range of numbers: write {0000..1023}", s)
	case low > high:
		return node{}, fmt.Errorf("{%s} is empty: write {%s..%s}", s, last, first)
	case padded && len(first) != len(last):
		width := max(len(first), len(last))
		return node{}, fmt.Errorf("{%s} has ends of different width: write {%0*d..%0*d}, or {%d..%d} for numbers without leading zeros", s, width, low, width, high, low, high)
	}
	n := node{kind: nodeNumbers, low: low, high: high, minWidth: len(first), maxWidth: len(last)}
	return n, nil
}

// glob is one side of a pattern, or one text of a set.
type glob struct {
	nodes []node
	wild  bool // holds * or ?
}

// exact reports whether the glob is one name.
func (g glob) exact() bool { return len(g.nodes) == 1 && g.nodes[0].kind == nodeLiteral }

// open is the part of a name that matches between the literal beginning and end of the glob.
func (g glob) open(name string) string {
	if len(g.nodes) == 0 {
		return ""
	}
	if first := g.nodes[0]; first.kind == nodeLiteral {
		name = strings.TrimPrefix(name, first.text)
	}
	if last := g.nodes[len(g.nodes)-1]; len(g.nodes) > 1 && last.kind == nodeLiteral {
		name = strings.TrimSuffix(name, last.text)
	}
	return name
}

type nodeKind uint8

const (
	nodeLiteral nodeKind = iota // text
	nodeRune                    // one character
	nodeRun                     // any characters
	nodeSet                     // one of options
	nodeNumbers                 // a decimal number in [low, high]
)

type node struct {
	kind      nodeKind
	text      string
	options   []glob
	low, high uint64
	// minWidth and maxWidth are the numbers of digits that are allowed: those of the
	// range's ends.
	minWidth, maxWidth int
}

// matches reports whether the whole name fits. It keeps the set of places up to which
// the name fits the nodes so far, so that its time is at most proportional to the
// product of both lengths, whatever the pattern.
func (g glob) matches(name string) bool {
	if len(g.nodes) == 1 && g.nodes[0].kind == nodeLiteral {
		return g.nodes[0].text == name
	}
	start := make([]bool, len(name)+1)
	start[0] = true
	return g.advance(name, start)[len(name)]
}

// advance gives the places in name that are reached from those in from.
func (g glob) advance(name string, from []bool) []bool {
	for _, n := range g.nodes {
		from = n.advance(name, from)
	}
	return from
}

func (n node) advance(name string, from []bool) []bool {
	to := make([]bool, len(from))
	if n.kind == nodeSet {
		for _, option := range n.options {
			for i, reached := range option.advance(name, from) {
				to[i] = to[i] || reached
			}
		}
		return to
	}
	for i, reached := range from {
		if !reached {
			continue
		}
		switch n.kind {
		case nodeLiteral:
			if strings.HasPrefix(name[i:], n.text) {
				to[i+len(n.text)] = true
			}
		case nodeRune:
			if i < len(name) {
				_, size := utf8.DecodeRuneInString(name[i:])
				to[i+size] = true
			}
		case nodeRun:
			for ; i < len(to); i++ {
				to[i] = true
			}
			return to
		case nodeNumbers:
			for width := n.minWidth; width <= n.maxWidth && i+width <= len(name); width++ {
				if n.holds(name[i : i+width]) {
					to[i+width] = true
				}
			}
		case nodeSet:
		}
	}
	return to
}

// holds reports whether the digits are a number of the range, with leading zeros only
// where the range's ends have the same width.
func (n node) holds(digits string) bool {
	if n.minWidth != n.maxWidth && len(digits) > 1 && digits[0] == '0' {
		return false
	}
	if strings.Trim(digits, "0123456789") != "" {
		return false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && number >= n.low && number <= n.high
}
