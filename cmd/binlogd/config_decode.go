package main

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// locatedError is an error in a configuration file. It never quotes a value, which may be
// a password.
type locatedError struct {
	file string
	line int // 0 where the error is about the whole file
	err  error
}

func (e *locatedError) Error() string {
	if e.line == 0 {
		return fmt.Sprintf("%s: %v", e.file, e.err)
	}
	return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err)
}

func (e *locatedError) Unwrap() error { return e.err }

// yamlDecoder reads one YAML document into structs with yaml tags: strictly (a key that
// no field bears is an error), with ${VARIABLES} expanded in values, and with scalars as
// they are written (a password 0123 stays 0123).
//
// goccy/go-yaml's own decoder is not used because its errors quote the file around the
// fault, and because it knows neither variables nor which lines later checks should name.
type yamlDecoder struct {
	file      string
	variables func(name string) (string, bool)
	// later holds keys, as paths with [] for any index, that are refused with a word
	// of their own.
	later   map[string]string
	lines   map[string]int // by path: "events[2].table"
	anchors map[string]ast.Node
	parts   int // of the data of rules, so far
}

// decode reads document into the struct that into points to; fields that the document
// does not mention keep their values.
func (d *yamlDecoder) decode(document []byte, into any) error {
	root, err := d.parse(document)
	if err != nil {
		return err
	}
	d.lines = map[string]int{}
	d.anchors = map[string]ast.Node{}
	return d.value(root, "", reflect.ValueOf(into).Elem())
}

func (d *yamlDecoder) parse(document []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(document, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			return nil, d.syntaxError(document, syntax)
		}
		return nil, &locatedError{d.file, 0, errors.New("this is not YAML")}
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		if root != nil {
			return nil, &locatedError{d.file, line(doc.Body), errors.New("a second document begins here: write one configuration a file")}
		}
		root = doc.Body
	}
	if root == nil {
		return nil, &locatedError{d.file, 0, errors.New("the file is empty: `binlogd init` writes one to begin with")}
	}
	return root, nil
}

func (d *yamlDecoder) syntaxError(document []byte, e yaml.Error) error {
	message := e.GetMessage()
	number := e.GetToken().Position.Line
	lines := bytes.Split(document, []byte("\n"))
	if number > 0 && number <= len(lines) && bytes.Contains(lines[number-1], []byte("${")) {
		message += " (inside { } or [ ], values with ${…} need quotes)"
	}
	return &locatedError{d.file, number, errors.New(message)}
}

func (d *yamlDecoder) value(node ast.Node, path string, into reflect.Value) error {
	node, err := d.resolve(node, path)
	if err != nil {
		return err
	}
	if into.Kind() == reflect.Pointer {
		if node.Type() == ast.NullType && into.Type().Elem().Kind() != reflect.Struct {
			return nil
		}
		// A section without keys ("stdout:") is there all the same.
		into.Set(reflect.New(into.Type().Elem()))
		return d.value(node, path, into.Elem())
	}
	if _, ok := reflect.TypeAssert[encoding.TextUnmarshaler](into.Addr()); ok {
		return d.scalar(node, path, into)
	}
	if is, err := d.rulePart(node, path, into); is {
		return err
	}
	if is, err := d.samplePart(node, path, into); is {
		return err
	}
	switch into.Kind() { //nolint:exhaustive // every other kind is a scalar
	case reflect.Struct:
		return d.mapping(node, path, into)
	case reflect.Slice:
		return d.sequence(node, path, into)
	}
	return d.scalar(node, path, into)
}

// resolve goes through anchors and aliases.
func (d *yamlDecoder) resolve(node ast.Node, path string) (ast.Node, error) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		d.anchors[n.Name.GetToken().Value] = n.Value
		return d.resolve(n.Value, path)
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		target, ok := d.anchors[name]
		if !ok {
			return nil, d.fault(node, path, "no anchor &%s stands before this alias", name)
		}
		// An alias to an alias would need its anchor first, so this ends.
		delete(d.anchors, name)
		defer func() { d.anchors[name] = target }()
		return d.resolve(target, path)
	case *ast.TagNode:
		return nil, d.fault(node, path, "YAML tags are not known here: leave %s out", n.Start.Value)
	}
	return node, nil
}

func (d *yamlDecoder) mapping(node ast.Node, path string, into reflect.Value) error {
	if node.Type() == ast.NullType {
		return nil
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		return d.fault(node, path, "write keys and values here: %s", strings.Join(keysOf(into.Type()), ", "))
	}
	for entries := m.MapRange(); entries.Next(); {
		key := entries.Key()
		if key.IsMergeKey() {
			return d.fault(key, path, "merge keys (<<) are not known here: write the keys out")
		}
		name := scalarText(key)
		at := joinPath(path, name)
		d.lines[at] = line(key)
		if reason, ok := d.later[anyIndex(at)]; ok {
			return d.fault(key, at, "%s", reason)
		}
		field, ok := fieldOf(into, name)
		if !ok {
			return d.fault(key, at, "unknown key%s", suggestion(name, keysOf(into.Type())))
		}
		if err := d.value(entries.Value(), at, field); err != nil {
			return err
		}
	}
	return nil
}

func (d *yamlDecoder) sequence(node ast.Node, path string, into reflect.Value) error {
	if node.Type() == ast.NullType {
		return nil
	}
	list, ok := node.(ast.ArrayNode)
	if !ok {
		return d.fault(node, path, "write a list here: [a, b], or one line each that begins with a dash")
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	for entries := list.ArrayRange(); entries.Next(); {
		at := fmt.Sprintf("%s[%d]", path, into.Len())
		d.lines[at] = line(entries.Value())
		element := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(entries.Value(), at, element); err != nil {
			return err
		}
		into.Set(reflect.Append(into, element))
	}
	return nil
}

func (d *yamlDecoder) scalar(node ast.Node, path string, into reflect.Value) error {
	if node.Type() == ast.NullType {
		return nil
	}
	text, ok := tornScalar(node)
	if _, scalar := node.(ast.ScalarNode); scalar {
		text, ok = scalarText(node), true
	}
	if !ok {
		return d.fault(node, path, "write %s here, not keys or a list", wanted(into.Type()))
	}
	text, err := expand(text, d.variables)
	if err != nil {
		return d.fault(node, path, "%w", err)
	}
	if err := setScalar(into, text); err != nil {
		return d.fault(node, path, "%w", err)
	}
	return nil
}

// setScalar parses text as into's type asks.
func setScalar(into reflect.Value, text string) error {
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](into.Addr()); ok {
		return u.UnmarshalText([]byte(text))
	}
	wrong := fmt.Errorf("write %s here", wanted(into.Type()))
	if into.Type() == reflect.TypeFor[time.Duration]() {
		duration, err := time.ParseDuration(text)
		if err != nil {
			return wrong
		}
		into.SetInt(int64(duration))
		return nil
	}
	switch {
	case into.Kind() == reflect.String:
		into.SetString(text)
	case into.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return wrong
		}
		into.SetBool(text == "true")
	case into.CanInt():
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return wrong
		}
		into.SetInt(n)
	case into.CanUint():
		n, err := strconv.ParseUint(text, 10, into.Type().Bits())
		if err != nil {
			return wrong
		}
		into.SetUint(n)
	case into.CanFloat():
		f, err := strconv.ParseFloat(text, into.Type().Bits())
		if err != nil {
			return wrong
		}
		into.SetFloat(f)
	default:
		return fmt.Errorf("no value of type %s can be configured", into.Type())
	}
	return nil
}

// wanted says what to write for a value of type t.
func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 500ms or 10s"
	case t == reflect.TypeFor[size]():
		return "a size such as 16MiB"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "one text"
	}
	switch t.Kind() { //nolint:exhaustive // the rest is numbers
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<(t.Bits()-1)*2-1)
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// locate adds the file and line to an error of a Validate method, which begins with the
// path of the key that it is about.
func (d *yamlDecoder) locate(err error) error {
	path, _, _ := strings.Cut(err.Error(), " ")
	path = strings.TrimSuffix(path, ":")
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return &locatedError{d.file, line, err}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return &locatedError{d.file, 0, err}
}

func (d *yamlDecoder) fault(node ast.Node, path, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return &locatedError{d.file, line(node), err}
}

func line(node ast.Node) int {
	if token := node.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 0
}

// scalarText is a scalar as it is written, without its quotes.
func scalarText(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.MappingKeyNode:
		return scalarText(n.Value)
	}
	return node.GetToken().Value
}

// tornScalar puts a text together again that goccy/go-yaml tears: inside braces it reads
// the list [kafka:9092] as [{kafka: 9092}], although YAML asks for a space after the colon
// of a key.
func tornScalar(node ast.Node) (string, bool) {
	m, ok := node.(*ast.MappingNode)
	if !ok || len(m.Values) != 1 {
		return "", false
	}
	entry := m.Values[0]
	colon, value := entry.Start, entry.Value.GetToken()
	if colon == nil || value == nil || value.Position.Line != colon.Position.Line || value.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	if _, ok := entry.Value.(ast.ScalarNode); !ok {
		return "", false
	}
	return scalarText(entry.Key) + ":" + scalarText(entry.Value), true
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// anyIndex replaces the indexes in a path: events[2].emit becomes events[].emit.
func anyIndex(path string) string {
	var b strings.Builder
	inside := false
	for _, r := range path {
		if r == ']' {
			inside = false
		}
		if !inside {
			b.WriteRune(r)
		}
		if r == '[' {
			inside = true
		}
	}
	return b.String()
}
