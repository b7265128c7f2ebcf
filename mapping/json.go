package mapping

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/binlogd/binlogd/canal"
)

// appendValue appends v as JSON (RFC 8259), as the contract renders each kind: numbers
// with every digit, DECIMAL and the temporal kinds as strings, byte strings in base64,
// and those kinds that are JSON already as they are. v must not be KindAbsent: an
// absent column has no member to write.
func appendValue(b []byte, v *canal.Value) []byte {
	switch v.Kind {
	case canal.KindInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case canal.KindUint:
		return strconv.AppendUint(b, v.Uint(), 10)
	case canal.KindFloat:
		return appendFloat(b, float64(v.Float32()), 32)
	case canal.KindDouble:
		return appendFloat(b, v.Float64(), 64)
	case canal.KindText, canal.KindEnum:
		if !v.Plain() {
			return appendString(b, v.Bytes)
		}
		return appendQuoted(b, v.Bytes)
	case canal.KindDecimal, canal.KindDate, canal.KindDateTime, canal.KindTime, canal.KindInstant:
		return appendQuoted(b, v.Bytes) // digits and punctuation of the decoder's own
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

// appendQuoted appends s, in which nothing is to be escaped, as a JSON string.
func appendQuoted(b, s []byte) []byte {
	n := len(b)
	b = slices.Grow(b, len(s)+2)[:n+len(s)+2]
	b[n] = '"'
	copy(b[n+1:], s)
	b[len(b)-1] = '"'
	return b
}

// appendString appends s as a JSON string. It escapes what RFC 8259, section 7,
// demands (quotation mark, reverse solidus, control characters) and nothing else. Bytes
// that are not UTF-8 become U+FFFD one by one, so that the output is always valid;
// the decoder gives none.
func appendString(b, s []byte) []byte {
	plain := plainPrefix(s)
	if plain == len(s) {
		return appendQuoted(b, s)
	}
	b = append(b, '"')
	clean := 0 // s[clean:i] is still to be copied as it is
	for i := plain; i < len(s); {
		if c := s[i]; c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[clean:i]...)
				b = append(b, "\uFFFD"...)
				clean = i + 1
			}
			i += size
			continue
		}
		i += plainPrefix(s[i:])
		if i == len(s) || s[i] >= utf8.RuneSelf {
			continue
		}
		b = append(b, s[clean:i]...)
		b = appendEscape(b, s[i])
		i++
		clean = i
	}
	b = append(b, s[clean:]...)
	return append(b, '"')
}

// appendEscape appends the escape of a character that cannot stand in a JSON string.
func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// plainPrefix is the number of leading bytes of s that stand for themselves in a JSON
// string and are ASCII. It looks at eight bytes at a time: a byte's high bit in stop is set
// where the byte is not ASCII, below 0x20, a quotation mark or a reverse solidus.
// (After the first such byte, borrows can set more bits: only the lowest counts.)
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
			return n + bits.TrailingZeros64(stop)/8
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
