package canal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// A DECIMAL is stored in groups of nine digits, four big-endian bytes each, the first group
// before the point and the last one behind it in as few bytes as their digits need. The
// highest bit is flipped; a negative number has all bits inverted.
// https://dev.mysql.com/doc/dev/mysql-server/latest/ (strings/decimal.cc, decimal2bin)

const (
	digitsPerGroup = 9
	groupBytes     = 4
	maxPrecision   = 81 // more than either server allows; bounds the buffers
)

// bytesOfDigits is the size of a group of so many digits.
var bytesOfDigits = [digitsPerGroup + 1]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

var errBadDecimal = errors.New("the bytes are no DECIMAL")

// decimalSize is the number of bytes that a DECIMAL(precision, scale) takes.
func decimalSize(precision, scale int) (int, error) {
	if precision < 1 || precision > maxPrecision || scale < 0 || scale > precision {
		return 0, fmt.Errorf("DECIMAL(%d,%d) is impossible", precision, scale)
	}
	whole := precision - scale
	return whole/digitsPerGroup*groupBytes + bytesOfDigits[whole%digitsPerGroup] +
		scale/digitsPerGroup*groupBytes + bytesOfDigits[scale%digitsPerGroup], nil
}

// appendDecimal renders a DECIMAL(precision, scale) with every digit of its scale and no
// leading zeros but one before the point. len(b) is decimalSize.
func appendDecimal(dst, b []byte, precision, scale int) ([]byte, error) {
	whole := precision - scale
	var invert uint32
	if b[0]&0x80 == 0 {
		invert = 0xffffffff
		dst = append(dst, '-')
	}
	flip := uint32(0x80) // of the first byte only
	group := func(digits int) (uint32, bool) {
		size := bytesOfDigits[digits]
		var v uint32
		if size == groupBytes {
			v = binary.BigEndian.Uint32(b)
		} else {
			for _, c := range b[:size] {
				v = v<<8 | uint32(c)
			}
		}
		shift := 8 * size
		v ^= invert >> (32 - shift)
		v ^= flip << (shift - 8)
		flip = 0
		b = b[size:]
		return v, uint64(v) < decimalPowers[digits]
	}

	start := len(dst)
	if first := whole % digitsPerGroup; first > 0 {
		v, ok := group(first)
		if !ok {
			return dst, errBadDecimal
		}
		if v != 0 {
			dst = strconv.AppendUint(dst, uint64(v), 10)
		}
	}
	for range whole / digitsPerGroup {
		v, ok := group(digitsPerGroup)
		switch {
		case !ok:
			return dst, errBadDecimal
		case len(dst) > start:
			dst = appendPadded(dst, v, digitsPerGroup)
		case v != 0:
			dst = strconv.AppendUint(dst, uint64(v), 10)
		}
	}
	if len(dst) == start {
		dst = append(dst, '0')
	}
	if scale == 0 {
		return dst, nil
	}
	dst = append(dst, '.')
	for range scale / digitsPerGroup {
		v, ok := group(digitsPerGroup)
		if !ok {
			return dst, errBadDecimal
		}
		dst = appendPadded(dst, v, digitsPerGroup)
	}
	if last := scale % digitsPerGroup; last > 0 {
		v, ok := group(last)
		if !ok {
			return dst, errBadDecimal
		}
		dst = appendPadded(dst, v, last)
	}
	return dst, nil
}

var decimalPowers = [digitsPerGroup + 1]uint64{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000}

// appendPadded renders the last digits of v, so many of them.
func appendPadded(dst []byte, v uint32, digits int) []byte {
	n := len(dst)
	dst = extend(dst, digits)
	b := dst[n:]
	for ; len(b) >= 2; b = b[:len(b)-2] {
		put2(b[len(b)-2:], v%100)
		v /= 100
	}
	if len(b) == 1 {
		b[0] = byte('0' + v%10)
	}
	return dst
}
