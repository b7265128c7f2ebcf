package expression

import (
	"bytes"
	"cmp"

	"github.com/binlogd/binlogd/canal"
)

// comparer orders two values that are not NULL: below 0, 0 or above 0. ok is false where they are of kinds that cannot
// be compared, which the checker cannot always know.
type comparer func(a, b canal.Value) (order int, ok bool)

// comparerOf is the comparer for values of two classes that may be compared.
func comparerOf(a, b class) comparer {
	switch {
	case a != b:
		return compareAny
	case a == classNumber:
		return func(a, b canal.Value) (int, bool) { return compareNumbers(a, b), true }
	case a == classText || a == classBinary:
		return func(a, b canal.Value) (int, bool) { return bytes.Compare(a.Bytes, b.Bytes), true }
	}
	return compareAny
}

// compareAny looks at the kinds of the values first.
func compareAny(a, b canal.Value) (order int, ok bool) {
	x, y := classOf(a.Kind), classOf(b.Kind)
	switch {
	case x == classNumber && y == classNumber:
		return compareNumbers(a, b), true
	case x == classTime && y == classTime:
		return compareTimes(a.Bytes, b.Bytes), true
	case isMoment(x) && isMoment(y) && (x == classInstant) == (y == classInstant):
		return compareMoments(a.Bytes, b.Bytes), true
	case isTextual(x) && isTextual(y), x == y && x != classNumber && x != classAny:
		return bytes.Compare(a.Bytes, b.Bytes), true
	}
	return 0, false
}

func isTextual(c class) bool { return c == classText || c == classBinary }

func isMoment(c class) bool { return c == classDate || c == classDateTime || c == classInstant }

// compareMoments orders DATE, DATETIME and TIMESTAMP values, whose texts have their digits in the same places: a day is
// its first moment, and a fraction of a second goes on with zeros.
func compareMoments(a, b []byte) int {
	const day = len("2026-11-29")
	a, b = bytes.TrimSuffix(a, zulu), bytes.TrimSuffix(b, zulu)
	if order := bytes.Compare(a[:min(day, len(a))], b[:min(day, len(b))]); order != 0 {
		return order
	}
	return compareTails(a[min(day, len(a)):], b[min(day, len(b)):], "T00:00:00.000000")
}

var zulu = []byte("Z")

// compareTails orders two texts of which the shorter one goes on as rest does.
func compareTails(a, b []byte, rest string) int {
	for i := range max(len(a), len(b)) {
		x, y := rest[min(i, len(rest)-1)], rest[min(i, len(rest)-1)]
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if i == 0 {
			x, y = 'T', 'T' // or a space
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// compareTimes orders TIME values, "-838:59:59.000".
func compareTimes(a, b []byte) int {
	negativeA, negativeB := bytes.HasPrefix(a, minus), bytes.HasPrefix(b, minus)
	a, b = bytes.TrimPrefix(a, minus), bytes.TrimPrefix(b, minus)
	hoursA, restA, _ := bytes.Cut(a, colon)
	hoursB, restB, _ := bytes.Cut(b, colon)
	order := compareWhole(hoursA, hoursB)
	if order == 0 {
		n := min(len(restA), len(restB), len("59:59"))
		if order = bytes.Compare(restA[:n], restB[:n]); order == 0 {
			order = compareFractions(fraction(restA), fraction(restB))
		}
	}
	return signed(order, negativeA, negativeB, isZeroDigits(a) && isZeroDigits(b))
}

var minus, colon = []byte("-"), []byte(":")

// fraction is what follows the point.
func fraction(b []byte) []byte {
	_, digits, _ := bytes.Cut(b, point)
	return digits
}

// isZeroDigits reports whether a text has no digits but zeros.
func isZeroDigits(b []byte) bool {
	return !bytes.ContainsAny(b, "123456789")
}

// signed turns the order of two amounts into that of the signed values.
func signed(order int, negativeA, negativeB, zero bool) int {
	switch {
	case zero:
		return 0
	case negativeA && negativeB:
		return -order
	case negativeA:
		return -1
	case negativeB:
		return 1
	}
	return order
}

// compareNumbers orders numbers of any kinds, exactly: a FLOAT or DOUBLE is the decimal that events show of it.
func compareNumbers(a, b canal.Value) int {
	switch {
	case a.Kind == canal.KindInt && b.Kind == canal.KindInt:
		return cmp.Compare(a.Int(), b.Int())
	case a.Kind == canal.KindUint && b.Kind == canal.KindUint:
		return cmp.Compare(a.Uint(), b.Uint())
	case a.Kind == canal.KindUint && b.Kind == canal.KindInt:
		if b.Int() < 0 {
			return 1
		}
		return cmp.Compare(a.Uint(), uint64(b.Int()))
	case a.Kind == canal.KindInt && b.Kind == canal.KindUint:
		return -compareNumbers(b, a)
	case a.Kind == canal.KindDouble && b.Kind == canal.KindDouble:
		return cmp.Compare(a.Float64(), b.Float64())
	}
	var bufferA, bufferB [40]byte
	return compareDecimals(appendDecimal(bufferA[:0], a), appendDecimal(bufferB[:0], b))
}

// compareDecimals orders decimal texts: an optional minus, digits, and perhaps a point with digits behind it.
func compareDecimals(a, b []byte) int {
	negativeA, negativeB := bytes.HasPrefix(a, minus), bytes.HasPrefix(b, minus)
	a, b = bytes.TrimPrefix(a, minus), bytes.TrimPrefix(b, minus)
	wholeA, _, _ := bytes.Cut(a, point)
	wholeB, _, _ := bytes.Cut(b, point)
	order := compareWhole(wholeA, wholeB)
	if order == 0 {
		order = compareFractions(fraction(a), fraction(b))
	}
	return signed(order, negativeA, negativeB, isZeroDigits(a) && isZeroDigits(b))
}

var point = []byte(".")

// compareWhole orders digits before the point.
func compareWhole(a, b []byte) int {
	a, b = bytes.TrimLeft(a, "0"), bytes.TrimLeft(b, "0")
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return bytes.Compare(a, b)
}

// compareFractions orders digits behind the point.
func compareFractions(a, b []byte) int {
	return bytes.Compare(bytes.TrimRight(a, "0"), bytes.TrimRight(b, "0"))
}
