package canal

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
)

var (
	errJSONNumber = errors.New("the number is not finite, which JSON cannot say")
	errJSONUTF8   = errors.New("the JSON holds a string that is not UTF-8")
)

// appendJSONText renders UTF-8 as a JSON string, or is an error when it is none.
func appendJSONText(dst, s []byte) ([]byte, error) {
	scan := scanText(s)
	if !scan.validUTF8(s) {
		return dst, errJSONUTF8
	}
	if scan.escapes {
		return appendEscaped(dst, s), nil
	}
	return appendQuoted(dst, s), nil
}

// appendJSONString renders s, which is UTF-8, as a JSON string with no more escapes than
// JSON asks for.
func appendJSONString(dst, s []byte) []byte {
	if scanText(s).escapes {
		return appendEscaped(dst, s)
	}
	return appendQuoted(dst, s)
}

// appendQuoted renders s, which has nothing to escape, as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	n := len(dst)
	dst = extend(dst, len(s)+2)
	quoted := dst[n:]
	quoted[0] = '"'
	quoted[1+copy(quoted[1:], s)] = '"'
	return dst
}

// extend makes dst n bytes longer; what they hold is to be written.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		dst = slices.Grow(dst, n)
	}
	return dst[:len(dst)+n]
}

func appendEscaped(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendJSONDouble renders a double as MySQL does in JSON: the shortest digits that read
// back as the same number, without an exponent from 1e-14 to below 1e15, always with a point or
// an exponent, so that 1.0 stays a double.
func appendJSONDouble(dst []byte, v float64) ([]byte, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dst, errJSONNumber
	}
	start := len(dst)
	if abs := math.Abs(v); v == 0 || abs >= 1e-15 && abs < 1e15 {
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst, nil
	}
	// Go writes 1e+20 and 1e-07, MySQL 1e20 and 1e-7.
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	e := start + bytes.IndexByte(dst[start:], 'e')
	digits := dst[e+1:]
	out := dst[:e+1]
	if digits[0] == '-' {
		out = append(out, '-')
	}
	digits = bytes.TrimLeft(digits[1:], "0")
	return append(out, digits...), nil
}
