package mapping

import "github.com/binlogd/binlogd/canal"

// EmitRule is one rule of an entry: which changes of its tables become an event of which type, and what that shows. The
// texts that are called expressions are those of package expression.
type EmitRule struct {
	// Type of the events, such as "order.paid". An entry gives a change at most one event of a type.
	Type string `yaml:"type"`
	// On are the kinds of changes; all of rows when empty.
	On Operations `yaml:"on"`
	// When is a condition; changes for which it is false or unknown give no event. Empty is always.
	When string `yaml:"when"`
	// Topic and Topics stand in for the entry's.
	Topic  string   `yaml:"topic"`
	Topics []string `yaml:"topics"`
	// Key stands in for the entry's.
	Key RuleKey `yaml:"key"`
	// Subject is an expression; the key when empty.
	Subject string `yaml:"subject"`
	// Headers are names with expressions; one that gives NULL is left out.
	Headers Object `yaml:"headers"`
	// Data is what the event shows; row and old as in the default mapping when empty.
	Data Object `yaml:"data"`
	// Columns stand in for the entry's.
	Columns Columns `yaml:"columns"`
	// OnError is what becomes of a change for which an expression fails.
	OnError string `yaml:"on_error"`
}

// The values of EmitRule.OnError.
const (
	onErrorStop       = "stop" // the default
	onErrorSkip       = "skip" // no event; counted and logged
	onErrorDeadLetter = "dead_letter"
)

// Operations are kinds of changes: insert, update, delete, truncate.
type Operations []string

// RuleKey is a partition key: the texts of columns, or an expression.
type RuleKey struct {
	Columns    []string
	Expression string
}

// Object is a JSON object in the order in which it is written.
type Object []Member

// Member is a member of an Object: an expression, an object or a list.
type Member struct {
	Name  string
	Value Template
}

// Template is what a JSON value is made from: exactly one of its fields is set.
type Template struct {
	Expression string
	Object     Object     // not nil
	List       []Template // not nil
}

// Columns say which columns of a table are shown, and how they are called. They do not change what expressions name.
type Columns struct {
	Include []string          `yaml:"include"` // all when empty
	Exclude []string          `yaml:"exclude"`
	Rename  map[string]string `yaml:"rename"` // shown names by columns'
}

func (c Columns) isZero() bool {
	return len(c.Include) == 0 && len(c.Exclude) == 0 && len(c.Rename) == 0
}

// Masks are the masks of an entry, a column once.
type Masks []ColumnMask

// ColumnMask says what is shown in the place of a column's values: in row and old, in data, headers, subject and key.
// Conditions see the value itself. NULL stays NULL.
type ColumnMask struct {
	Column string
	// Method is hash (an HMAC-SHA256 in hexadecimal), redact ("***"), last ("***" and the last characters) or null.
	Method string
	Last   int // characters that last shows
}

// The values of ColumnMask.Method.
const (
	maskHash   = "hash"
	maskRedact = "redact"
	maskLast   = "last"
	maskNull   = "null"
)

// operationNames are the kinds of changes by their names in the configuration.
var operationNames = map[string]canal.Op{
	"insert": canal.Insert, "update": canal.Update, "delete": canal.Delete, "truncate": canal.Truncate,
}
