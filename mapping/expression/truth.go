package expression

import "github.com/binlogd/binlogd/canal"

// Truth is the result of a condition, in SQL's three values.
type Truth uint8

// The truth values. What is not True, does not fire a rule.
const (
	False Truth = iota
	True
	Unknown // a comparison with NULL, and what depends on one
)

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

func (t Truth) not() Truth {
	switch t {
	case False:
		return True
	case True:
		return False
	case Unknown:
	}
	return Unknown
}

var trueText, falseText = []byte("true"), []byte("false")

// value is the truth as a value: NULL where it is unknown.
func (t Truth) value() canal.Value {
	switch t {
	case False:
		return canal.NewBytes(KindBool, falseText)
	case True:
		return canal.NewBytes(KindBool, trueText)
	case Unknown:
	}
	return null
}

// isTrue reads a value of KindBool.
func isTrue(v canal.Value) bool { return len(v.Bytes) == len(trueText) }
