package canal

import (
	"encoding/binary"
	"unicode/utf8"
)

// textScan is what one pass over a text says of it.
type textScan struct {
	ascii bool
	// escapes: some byte cannot stand for itself in a JSON string (RFC 8259, section 7): a control
	// character, a quotation mark or a reverse solidus.
	escapes bool
}

// One byte in each of eight.
const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// scanText looks at eight bytes at a time, and at none twice but some of the last.
func scanText(b []byte) textScan {
	var seen, stops uint64
	switch n := len(b); {
	case n >= 8:
		last := binary.LittleEndian.Uint64(b[n-8:])
		for len(b) >= 32 {
			x0, x1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			x2, x3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
			seen |= x0 | x1 | x2 | x3
			stops |= jsonStops(x0) | jsonStops(x1) | jsonStops(x2) | jsonStops(x3)
			b = b[32:]
		}
		for len(b) >= 8 {
			x := binary.LittleEndian.Uint64(b)
			seen |= x
			stops |= jsonStops(x)
			b = b[8:]
		}
		seen |= last
		stops |= jsonStops(last)
	case n >= 4:
		seen = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
		stops = jsonStops(seen)
	case n > 0:
		const spaces = 0x2020202020000000
		seen = spaces | uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
		stops = jsonStops(seen)
	}
	return textScan{ascii: seen&highBits == 0, escapes: stops != 0}
}

// jsonStops is not zero where one of the eight bytes must be escaped in JSON: the high bit of a
// byte is set where it is below 0x20, a quotation mark or a reverse solidus. (A borrow can set it in the
// byte above such a one, too.)
// https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord
func jsonStops(x uint64) uint64 {
	quote, slash := x^('"'*everyByte), x^('\\'*everyByte)
	return ((x - 0x20*everyByte) | (quote - everyByte) | (slash - everyByte)) &^ x & highBits
}

// validUTF8 reports whether b, of which s was found, is UTF-8.
func (s textScan) validUTF8(b []byte) bool { return s.ascii || utf8.Valid(b) }
