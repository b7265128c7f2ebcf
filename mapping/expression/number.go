package expression

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/binlogd/binlogd/canal"
)

// appendDecimal appends a number as decimal digits without an exponent.
func appendDecimal(b []byte, v canal.Value) []byte {
	switch v.Kind { //nolint:exhaustive // the others are texts of digits
	case canal.KindInt:
		return strconv.AppendInt(b, v.Int(), 10)
	case canal.KindUint:
		return strconv.AppendUint(b, v.Uint(), 10)
	case canal.KindFloat:
		return strconv.AppendFloat(b, float64(v.Float32()), 'f', -1, 32)
	case canal.KindDouble:
		return strconv.AppendFloat(b, v.Float64(), 'f', -1, 64)
	}
	return append(b, v.Bytes...)
}

// decimal is unscaled / 10^scale.
type decimal struct {
	unscaled big.Int
	scale    int
}

// maxDigits bounds the numbers that expressions compute, as MySQL's DECIMAL does.
const maxDigits = 65

var (
	errTooLarge = errors.New("the number has more than 65 digits")
	errNoNumber = errors.New("the text is no number")
)

// divisionDigits is how many digits a quotient has more than the dividend: MySQL's div_precision_increment.
const divisionDigits = 4

// readDecimal reads decimal digits without an exponent.
func readDecimal(text []byte) (d decimal, err error) {
	digits := text
	if i := bytes.IndexByte(text, '.'); i >= 0 {
		d.scale = len(text) - i - 1
		digits = append(append(make([]byte, 0, len(text)), text[:i]...), text[i+1:]...)
	}
	if _, ok := d.unscaled.SetString(string(digits), 10); !ok {
		return d, errNoNumber
	}
	return d, nil
}

var ten = big.NewInt(10)

// powerOfTen is 10^n.
func powerOfTen(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// rescale gives d that many digits behind the point, more than it has.
func (d *decimal) rescale(scale int) {
	d.unscaled.Mul(&d.unscaled, powerOfTen(scale-d.scale))
	d.scale = scale
}

// value is d as a value: KindInt or KindUint where it is whole and fits, else KindDecimal.
func (r *Row) decimalValue(d *decimal) (canal.Value, error) {
	if d.scale == 0 {
		switch {
		case d.unscaled.IsInt64():
			return canal.NewInt(d.unscaled.Int64()), nil
		case d.unscaled.IsUint64():
			return canal.NewUint(d.unscaled.Uint64()), nil
		}
	}
	digits := d.unscaled.Text(10)
	start := len(r.scratch)
	if digits[0] == '-' {
		r.scratch = append(r.scratch, '-')
		digits = digits[1:]
	}
	if len(digits) > maxDigits || d.scale > maxDigits {
		return null, errTooLarge
	}
	for len(digits) <= d.scale {
		digits = "0" + digits
	}
	r.scratch = append(r.scratch, digits[:len(digits)-d.scale]...)
	if d.scale > 0 {
		r.scratch = append(r.scratch, '.')
		r.scratch = append(r.scratch, digits[len(digits)-d.scale:]...)
	}
	return r.keep(canal.KindDecimal, start), nil
}

func isFloat(v canal.Value) bool { return v.Kind == canal.KindFloat || v.Kind == canal.KindDouble }

// float is any number as a float64.
func float(v canal.Value) float64 {
	switch v.Kind { //nolint:exhaustive // the others are texts of digits
	case canal.KindInt:
		return float64(v.Int())
	case canal.KindUint:
		return float64(v.Uint())
	case canal.KindFloat:
		return float64(v.Float32())
	case canal.KindDouble:
		return v.Float64()
	}
	f, _ := strconv.ParseFloat(string(v.Bytes), 64) // digits: out of range is an infinity, which arithmetic reports
	return f
}

// arithmetic computes a op b of two numbers: exactly, unless one is a FLOAT or DOUBLE. Like MySQL's, division gives four digits more
// than the dividend has, and by zero NULL; the remainder has the dividend's sign.
func (r *Row) arithmetic(op byte, a, b canal.Value) (canal.Value, error) {
	if isFloat(a) || isFloat(b) {
		return floatArithmetic(op, float(a), float(b))
	}
	if a.Kind == canal.KindInt && b.Kind == canal.KindInt {
		if v, ok := intArithmetic(op, a.Int(), b.Int()); ok {
			return v, nil
		}
	}
	if v, ok := r.smallArithmetic(op, a, b); ok {
		return v, nil
	}
	return r.bigArithmetic(op, a, b)
}

// bigArithmetic is for numbers of any size.
func (r *Row) bigArithmetic(op byte, a, b canal.Value) (canal.Value, error) {
	x, err := readDecimal(appendDecimal(nil, a))
	if err != nil {
		return null, err
	}
	y, err := readDecimal(appendDecimal(nil, b))
	if err != nil {
		return null, err
	}
	if (op == '/' || op == '%') && y.unscaled.Sign() == 0 {
		return null, nil
	}
	result := &decimal{}
	switch op {
	case '*':
		result.unscaled.Mul(&x.unscaled, &y.unscaled)
		result.scale = x.scale + y.scale
	case '/':
		result.scale = x.scale + divisionDigits
		x.rescale(result.scale + y.scale)
		result.unscaled.Set(quotient(&x.unscaled, &y.unscaled))
	default:
		scale := max(x.scale, y.scale)
		x.rescale(scale)
		y.rescale(scale)
		result.scale = scale
		switch op {
		case '+':
			result.unscaled.Add(&x.unscaled, &y.unscaled)
		case '-':
			result.unscaled.Sub(&x.unscaled, &y.unscaled)
		case '%':
			result.unscaled.Rem(&x.unscaled, &y.unscaled)
		}
	}
	return r.decimalValue(result)
}

// quotient is a/b, halves rounded away from zero.
func quotient(a, b *big.Int) *big.Int {
	q, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).CmpAbs(b) >= 0 {
		q.Add(q, big.NewInt(int64(a.Sign()*b.Sign())))
	}
	return q
}

// intArithmetic is for the common case; ok is false where the result does not fit or is not whole.
func intArithmetic(op byte, a, b int64) (v canal.Value, ok bool) {
	const safe = 1 << 31 // products and sums of less cannot overflow
	if a <= -safe || a >= safe || b <= -safe || b >= safe {
		return null, false
	}
	switch op {
	case '+':
		return canal.NewInt(a + b), true
	case '-':
		return canal.NewInt(a - b), true
	case '*':
		return canal.NewInt(a * b), true
	case '%':
		if b != 0 {
			return canal.NewInt(a % b), true
		}
	}
	return null, false
}

// smallArithmetic adds, subtracts and multiplies decimals of up to nine digits without allocating.
func (r *Row) smallArithmetic(op byte, a, b canal.Value) (v canal.Value, ok bool) {
	var buffer [24]byte
	x, scaleX, okX := smallDecimal(appendDecimal(buffer[:0], a))
	y, scaleY, okY := smallDecimal(appendDecimal(buffer[:0], b))
	if !okX || !okY || op == '/' || op == '%' {
		return null, false
	}
	scale := max(scaleX, scaleY)
	switch op {
	case '*':
		x, scale = x*y, scaleX+scaleY
	default:
		for ; scaleX < scale; scaleX++ {
			x *= 10
		}
		for ; scaleY < scale; scaleY++ {
			y *= 10
		}
		if op == '-' {
			y = -y
		}
		x += y
	}
	if scale == 0 {
		return canal.NewInt(x), true
	}
	start := len(r.scratch)
	if x < 0 {
		r.scratch = append(r.scratch, '-')
		x = -x
	}
	digits := strconv.AppendInt(buffer[:0], x, 10)
	for i := len(digits); i <= scale; i++ { // one digit at least stands before the point
		r.scratch = append(r.scratch, '0')
	}
	r.scratch = append(r.scratch, digits...)
	r.scratch = slices.Insert(r.scratch, len(r.scratch)-scale, '.')
	return r.keep(canal.KindDecimal, start), true
}

// smallDecimal reads a decimal of up to nine digits: unscaled / 10^scale.
func smallDecimal(text []byte) (unscaled int64, scale int, ok bool) {
	digits := 0
	negative := false
	for i, c := range text {
		switch {
		case c == '-' && i == 0:
			negative = true
		case c == '.':
			scale = len(text) - i - 1
		default:
			unscaled = unscaled*10 + int64(c-'0')
			digits++
		}
	}
	if negative {
		unscaled = -unscaled
	}
	return unscaled, scale, digits <= digitsPerSmall
}

// digitsPerSmall is how many digits two factors may have, or two terms of different scale, so that nothing overflows.
const digitsPerSmall = 9

func floatArithmetic(op byte, a, b float64) (canal.Value, error) {
	if (op == '/' || op == '%') && b == 0 {
		return null, nil
	}
	var f float64
	switch op {
	case '+':
		f = a + b
	case '-':
		f = a - b
	case '*':
		f = a * b
	case '/':
		f = a / b
	case '%':
		f = math.Mod(a, b)
	}
	if f-f != 0 { // an infinity or not a number
		return null, errTooLarge
	}
	return canal.NewDouble(f), nil
}
