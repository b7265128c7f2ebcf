package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/binlogd/binlogd/canal"
)

// pathStep leads from a JSON value to one inside it.
type pathStep struct {
	name    string
	index   int
	isIndex bool
}

var errBadJSON = errors.New("the text is no JSON")

var nullText = []byte("null")

// find gives the member as JSON; NULL where there is none, or null.
func (s pathStep) find(document []byte) (canal.Value, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	opening, err := d.Token()
	if err != nil {
		return null, errBadJSON
	}
	switch {
	case opening == json.Delim('{') && !s.isIndex:
	case opening == json.Delim('[') && s.isIndex && s.index >= 0:
	default:
		return null, nil
	}
	for i := 0; d.More(); i++ {
		found := i == s.index
		if !s.isIndex {
			name, err := d.Token()
			if err != nil {
				return null, errBadJSON
			}
			found = name == s.name
		}
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return null, errBadJSON
		}
		if found && !bytes.Equal(member, nullText) {
			return canal.NewBytes(canal.KindJSON, member), nil
		}
	}
	return null, nil
}

// jsonValue turns a JSON scalar into a value that compares as columns do: texts, numbers with all their digits, truth
// values, NULL. Objects and arrays stay KindJSON.
func jsonValue(text []byte) (canal.Value, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return null, errBadJSON
	}
	switch text[0] {
	case '{', '[':
		return canal.NewBytes(canal.KindJSON, text), nil
	case '"':
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return null, errBadJSON
		}
		return canal.NewText(s), nil
	case 't':
		return True.value(), nil
	case 'f':
		return False.value(), nil
	case 'n':
		return null, nil
	}
	number := string(text)
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return canal.NewInt(n), nil
	}
	if !strings.ContainsAny(number, "eE") && isDecimalText(number) {
		return canal.NewBytes(canal.KindDecimal, text), nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return null, errBadJSON
	}
	return canal.NewDouble(f), nil
}

// scalar gives the value of a part for comparing and computing: what JSON holds in the place of the JSON.
func (n *node) scalar() func(*Row) (canal.Value, error) {
	value := n.asValue()
	if n.typ.class != classJSON && n.typ.class != classAny {
		return value
	}
	return func(r *Row) (canal.Value, error) {
		v, err := value(r)
		if err != nil || v.Kind != canal.KindJSON {
			return v, err
		}
		return jsonValue(v.Bytes)
	}
}

// holdsLabel reports whether a SET's labels, a JSON array of texts, hold the label.
func holdsLabel(set, label []byte) bool {
	for rest := bytes.TrimPrefix(set, []byte("[")); len(rest) > 1; {
		end := 1
		escaped := false
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				escaped = true
				end++
			}
			end++
		}
		end = min(end+1, len(rest))
		if !escaped && bytes.Equal(rest[1:end-1], label) || escaped && unquoted(rest[:end]) == string(label) {
			return true
		}
		rest = bytes.TrimPrefix(rest[end:], []byte(","))
	}
	return false
}

// unquoted reads a JSON text; empty where it is none.
func unquoted(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}
