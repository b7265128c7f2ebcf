package expression

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// TestArithmeticIsExact: the fast ways give the digits of the slow one, and its kinds.
func TestArithmeticIsExact(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	number := func() canal.Value {
		n := random.Int64N(2_000_000_000) - 1_000_000_000
		if random.IntN(4) == 0 {
			n = random.Int64N(200) - 100
		}
		if random.IntN(2) == 0 {
			return canal.NewInt(n)
		}
		scale := 1 + random.IntN(6)
		digits := fmt.Sprintf("%0*d", scale+1, max(n, -n))
		text := digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
		if n < 0 {
			text = "-" + text
		}
		return of(canal.KindDecimal, text)
	}
	r := &Row{}
	for range 20_000 {
		a, b := number(), number()
		op := "+-*%/"[random.IntN(5)]
		got, err := r.arithmetic(op, a, b)
		require.NoError(t, err)
		want, err := r.bigArithmetic(op, a, b)
		require.NoError(t, err)
		require.Equal(t, want.Kind, got.Kind, "%s %c %s", appendValueText(nil, a), op, appendValueText(nil, b))
		require.Equal(t, string(appendValueText(nil, want)), string(appendValueText(nil, got)), "%s %c %s", appendValueText(nil, a), op, appendValueText(nil, b))
		r.scratch = r.scratch[:0]
	}
}

// TestNumbersCompareAsTheirDigits: an order of numbers of all kinds that no rounding disturbs.
func TestNumbersCompareAsTheirDigits(t *testing.T) {
	t.Parallel()
	ordered := []canal.Value{
		canal.NewDouble(-1e300), of(canal.KindDecimal, "-99999999999999999999999999999.5"), canal.NewInt(-9223372036854775808), of(canal.KindDecimal, "-9223372036854775807.99"),
		canal.NewInt(-1), of(canal.KindDecimal, "-0.01"), of(canal.KindDecimal, "0.00"), canal.NewDouble(5e-324), canal.NewFloat(0.1), of(canal.KindDecimal, "0.1000000000000000000000000001"),
		canal.NewInt(9223372036854775807), of(canal.KindDecimal, "9223372036854775807.01"), canal.NewUint(9223372036854775808), canal.NewUint(18446744073709551615),
		of(canal.KindDecimal, "18446744073709551615.000001"), canal.NewDouble(1e300),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, cmp.Compare(i, j), compareNumbers(a, b), "%d %d", i, j)
		}
	}
	zeros := []canal.Value{canal.NewInt(0), canal.NewUint(0), canal.NewDouble(0), of(canal.KindDecimal, "-0.00"), of(canal.KindDecimal, "0")}
	for _, a := range zeros {
		for _, b := range zeros {
			require.Zero(t, compareNumbers(a, b))
		}
	}
}
