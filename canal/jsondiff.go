package canal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
)

// A partial JSON update (binlog_row_value_options=PARTIAL_JSON) holds differences, each an
// operation 1, a path with its length before it and, but for a removal, a binary JSON
// value with its length before it.
// https://dev.mysql.com/doc/dev/mysql-server/latest/ (sql-common/json_diff.h)
const (
	jsonDiffReplace = 0
	jsonDiffInsert  = 1
	jsonDiffRemove  = 2
)

var errJSONDiff = errors.New("a partial JSON update does not fit the value before it; SET GLOBAL binlog_row_value_options='' makes the server send whole values")

// jsonNode is a JSON value that differences are applied to. A value that none touches stays
// binary.
type jsonNode struct {
	kind   byte
	b      []byte // unless opened
	opened bool
	object bool
	keys   [][]byte // of an object, in stored order: by length, then by bytes
	values []jsonNode
}

// appendJSONDiffs renders the document before with the differences applied.
func appendJSONDiffs(dst, before, diffs []byte) ([]byte, error) {
	bounds := newJSONBounds(dst, len(before)+len(diffs))
	root := jsonNode{kind: jsonLiteral, b: []byte{jsonNull}}
	if len(before) > 0 {
		root = jsonNode{kind: before[0], b: before[1:]}
	}
	for len(diffs) > 0 {
		operation := diffs[0]
		path, rest, ok := lengthEncodedBytes(diffs[1:])
		if !ok {
			return dst, errJSONShort
		}
		var value jsonNode
		if operation != jsonDiffRemove {
			var b []byte
			if b, rest, ok = lengthEncodedBytes(rest); !ok || len(b) == 0 {
				return dst, errJSONShort
			}
			value = jsonNode{kind: b[0], b: b[1:]}
		}
		diffs = rest
		if err := root.apply(operation, path, value); err != nil {
			return dst, fmt.Errorf("path %s: %w", path, err)
		}
	}
	return root.append(dst, bounds)
}

// lengthEncodedBytes reads bytes with a length-encoded length before them.
func lengthEncodedBytes(b []byte) (value, rest []byte, ok bool) {
	size, n := lengthEncoded(b)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// apply does one operation. The path leads to an existing value, but for the last step of an
// insertion: a new key, or the index before which to insert.
func (n *jsonNode) apply(operation byte, path []byte, value jsonNode) error {
	if len(path) == 0 || path[0] != '$' {
		return errJSONDiff
	}
	steps := path[1:]
	if len(steps) == 0 {
		if operation != jsonDiffReplace {
			return errJSONDiff
		}
		*n = value
		return nil
	}
	for depth := 0; ; depth++ {
		if depth > jsonMaxDepth {
			return errJSONDeep
		}
		if err := n.open(); err != nil {
			return err
		}
		key, index, rest, err := nextJSONStep(steps)
		if err != nil {
			return err
		}
		if n.object != (key != nil) {
			return errJSONDiff
		}
		found := index >= 0 && index < len(n.values)
		if n.object {
			index, found = slices.BinarySearchFunc(n.keys, key, compareJSONKeys)
		}
		steps = rest
		if len(steps) > 0 {
			if !found {
				return errJSONDiff
			}
			n = &n.values[index]
			continue
		}
		return n.change(operation, key, index, found, value)
	}
}

// change does the operation on the member at index; found: it is there.
func (n *jsonNode) change(operation byte, key []byte, index int, found bool, value jsonNode) error {
	switch {
	case operation == jsonDiffReplace && found:
		n.values[index] = value
	case operation == jsonDiffRemove && found:
		n.values = slices.Delete(n.values, index, index+1)
		if n.object {
			n.keys = slices.Delete(n.keys, index, index+1)
		}
	case operation == jsonDiffInsert && n.object && !found:
		n.keys = slices.Insert(n.keys, index, key)
		n.values = slices.Insert(n.values, index, value)
	case operation == jsonDiffInsert && !n.object:
		n.values = slices.Insert(n.values, min(index, len(n.values)), value)
	default:
		return errJSONDiff
	}
	return nil
}

// open makes the members of an object or array nodes of their own.
func (n *jsonNode) open() error {
	if n.opened {
		return nil
	}
	if n.kind > jsonLargeArray {
		return errJSONDiff
	}
	c, err := parseJSONContainer(n.kind, n.b)
	if err != nil {
		return err
	}
	n.opened, n.object = true, c.object
	n.values = make([]jsonNode, c.count)
	if c.object {
		n.keys = make([][]byte, c.count)
	}
	for i := range n.values {
		v := &n.values[i]
		if v.kind, v.b, err = c.value(i); err != nil {
			return err
		}
		if c.object {
			if n.keys[i], err = c.key(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *jsonNode) append(dst []byte, bounds jsonBounds) ([]byte, error) {
	if !n.opened {
		return appendJSONValue(dst, n.kind, n.b, bounds)
	}
	inside, err := bounds.check(dst)
	if err != nil {
		return dst, err
	}
	first, last := byte('['), byte(']')
	if n.object {
		first, last = '{', '}'
	}
	dst = append(dst, first)
	for i := range n.values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if n.object {
			if dst, err = appendJSONText(dst, n.keys[i]); err != nil {
				return dst, err
			}
			dst = append(dst, ':')
		}
		if dst, err = n.values[i].append(dst, inside); err != nil {
			return dst, err
		}
	}
	return append(dst, last), nil
}

// compareJSONKeys is the order in which MySQL stores an object's keys.
func compareJSONKeys(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

// nextJSONStep reads the first step of a path: .key, ."quoted key" or [index]. key is nil
// for an index.
func nextJSONStep(path []byte) (key []byte, index int, rest []byte, err error) {
	switch path[0] {
	case '[':
		end := bytes.IndexByte(path, ']')
		if end < 0 {
			return nil, 0, nil, errJSONDiff
		}
		index, err = strconv.Atoi(string(path[1:end]))
		if err != nil || index < 0 {
			return nil, 0, nil, errJSONDiff
		}
		return nil, index, path[end+1:], nil
	case '.':
		path = path[1:]
		if len(path) > 0 && path[0] == '"' {
			return quotedJSONKey(path[1:])
		}
		end := bytes.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		return path[:end:end], 0, path[end:], nil
	}
	return nil, 0, nil, errJSONDiff
}

// quotedJSONKey reads a key up to its closing quote, with JSON's escapes.
func quotedJSONKey(path []byte) (key []byte, index int, rest []byte, err error) {
	key = []byte{}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '"':
			return key, 0, path[i+1:], nil
		case '\\':
			i++
			if i == len(path) {
				return nil, 0, nil, errJSONDiff
			}
			if path[i] == 'u' {
				r, used := jsonUnicodeEscape(path[i-1:])
				if used == 0 {
					return nil, 0, nil, errJSONDiff
				}
				key = append(key, string(r)...)
				i += used - 2
				continue
			}
			escaped := bytes.IndexByte([]byte(`"\/bfnrt`), path[i])
			if escaped < 0 {
				return nil, 0, nil, errJSONDiff
			}
			key = append(key, "\"\\/\b\f\n\r\t"[escaped])
		default:
			key = append(key, c)
		}
	}
	return nil, 0, nil, errJSONDiff
}

// jsonUnicodeEscape reads \uXXXX, or two of them that are a surrogate pair, and returns
// the number of bytes that it took; 0 where it is none.
func jsonUnicodeEscape(b []byte) (r rune, used int) {
	const size = len(`\u0000`)
	if len(b) < size {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(b[2:size]), 16, 16)
	if err != nil {
		return 0, 0
	}
	r = rune(v)
	if !utf16.IsSurrogate(r) {
		return r, size
	}
	if len(b) < 2*size || b[size] != '\\' || b[size+1] != 'u' {
		return 0, 0
	}
	low, err := strconv.ParseUint(string(b[size+2:2*size]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return utf16.DecodeRune(r, rune(low)), 2 * size
}
