package mapping

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/binlogd/binlogd/canal"
)

// appendValue appends v as JSON (RFC 8259), as the contract renders each kind: numbers
// with every digit, DECIMAL and the temporal kinds as strings, byte strings in base64,
// and those kinds that are JSON already as they are. v must not be KindAbsent: an
// absent column has no member to write.
func appendValue(b []byte, v canal.Value) []byte {
	switch v.Kind {
	case canal.KindInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case canal.KindUint:
		return strconv.AppendUint(b, v.Uint(), 10)
	case canal.KindFloat:
		return appendFloat(b, float64(v.Float32()), 32)
	case canal.KindDouble:
		return appendFloat(b, v.Float64(), 64)
	case canal.KindDecimal, canal.KindText, canal.KindDate, canal.KindDateTime,
		canal.KindTime, canal.KindInstant, canal.KindEnum:
		return appendString(b, v.Bytes)
	case canal.KindBinary:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes)
		return append(b, '"')
	case canal.KindSet, canal.KindJSON, canal.KindGeometry, canal.KindVector:
		return append(b, v.Bytes...)
	case canal.KindAbsent, canal.KindNull:
	}
	return append(b, "null"...)
}

// appendFloat appends the shortest JSON number that reads back as the same float of
// the given bit size, negative zero included; exponents are used where ECMAScript uses
// them (below 1e-6 and from 1e21), so that no number has hundreds of zeros. MySQL stores
// neither NaN nor infinities.
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

// appendString appends s as a JSON string. It escapes what RFC 8259, section 7,
// demands (quotation mark, reverse solidus, control characters) and nothing else. Bytes
// that are not UTF-8 become U+FFFD one by one, so that the output is always valid;
// the decoder gives none.
func appendString(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for len(s) > 0 {
		n := plainPrefix(s)
		b = append(b, s[:n]...)
		s = s[n:]
		if len(s) == 0 {
			break
		}
		c := s[0]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s)
			b = utf8.AppendRune(b, r)
			s = s[size:]
			continue
		}
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[1:]
	}
	return append(b, '"')
}

// plainPrefix is the number of leading bytes of s that stand for themselves in a JSON
// string and are ASCII. It looks at eight bytes at a time: a byte's high bit in stop is set
// where the byte is not ASCII, below 0x20, a quotation mark or a reverse solidus.
// (After the first such byte, borrows can set more: they only send the rest through the
// slower loop.)
func plainPrefix(s []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(s[n:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		stop := (x | (x - 0x20*ones) | (quote - ones) | (slash - ones)) & highs
		if stop != 0 {
			break
		}
	}
	for n < len(s) {
		if c := s[n]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
		n++
	}
	return n
}
