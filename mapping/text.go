package mapping

import (
	"encoding/base64"
	"strconv"

	"github.com/binlogd/binlogd/canal"
)

// appendKeyText appends v as it stands in keys and subjects: numbers in decimal, text
// as it is, byte strings in base64, NULL as "null". It reports false where the binlog
// does not carry the column: then there is no key.
func appendKeyText(b []byte, v canal.Value) ([]byte, bool) {
	switch v.Kind {
	case canal.KindAbsent:
		return b, false
	case canal.KindNull:
		return append(b, "null"...), true
	case canal.KindBinary:
		return base64.StdEncoding.AppendEncode(b, v.Bytes), true
	default:
		return appendText(b, v), true
	}
}

// appendKeyPart appends the text of one column of a composite key, with a reverse
// solidus before each comma and reverse solidus, so that joined with commas no two keys
// are the same text.
func appendKeyPart(b []byte, v canal.Value) ([]byte, bool) {
	start := len(b)
	b, ok := appendKeyText(b, v)
	special := 0
	for _, c := range b[start:] {
		if c == ',' || c == '\\' {
			special++
		}
	}
	if special == 0 {
		return b, ok
	}
	// Widen from the back, so that each byte moves once.
	from := len(b) - 1
	b = append(b, make([]byte, special)...)
	for to := len(b) - 1; to > from; to, from = to-1, from-1 {
		b[to] = b[from]
		if b[from] == ',' || b[from] == '\\' {
			to--
			b[to] = '\\'
		}
	}
	return b, ok
}

// appendText appends the canonical text of a value that is neither absent nor NULL:
// numbers in decimal, everything else as its bytes. Event ids are made of it, so it must
// never depend on the configuration, nor change.
func appendText(b []byte, v canal.Value) []byte {
	switch v.Kind {
	case canal.KindInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case canal.KindUint:
		return strconv.AppendUint(b, v.Uint(), 10)
	case canal.KindFloat:
		return appendFloat(b, float64(v.Float32()), 32)
	case canal.KindDouble:
		return appendFloat(b, v.Float64(), 64)
	default:
		return append(b, v.Bytes...)
	}
}
