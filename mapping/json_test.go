package mapping

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                       `""`,
		"plain":                  `"plain"`,
		"exactly8":               `"exactly8"`,
		`a"b\c/d`:                `"a\"b\\c/d"`,
		"\b\f\n\r\t":             `"\b\f\n\r\t"`,
		"\x00\x1f\x7f":           "\"\\u0000\\u001f\x7f\"",
		"seventeen bytes \x01":   `"seventeen bytes \u0001"`,
		"世界 \u2028\u2029 😀":      "\"世界 \u2028\u2029 😀\"",
		"\ufffd is itself":       "\"\ufffd is itself\"",
		"\xff\xfe":               "\"\ufffd\ufffd\"",
		"cut \xe4\xb8":           "\"cut \ufffd\ufffd\"",
		"surrogate \xed\xa0\x80": "\"surrogate \ufffd\ufffd\ufffd\"",
		"<script>&":              `"<script>&"`,
	} {
		require.Equal(t, want, string(appendString(nil, []byte(in))))
	}
}

// TestAppendStringFindsEachByteAnywhere: every byte in every place of a word of eight.
func TestAppendStringFindsEachByteAnywhere(t *testing.T) {
	for place := range 20 {
		for c := range 256 {
			for _, around := range []string{" ", "~", "\x7f", "!", "#", "[", "]"} {
				s := []byte(strings.Repeat(around, 20))
				s[place] = byte(c)
				checkString(t, s)
			}
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add([]byte(`a"b\c`))
	f.Add([]byte("\x00\x1f\xff\xed\xa0\x80世\u2028"))
	f.Fuzz(func(t *testing.T, s []byte) { checkString(t, s) })
}

// checkString holds appendString against encoding/json as the reader.
func checkString(t *testing.T, s []byte) {
	t.Helper()
	got := appendString([]byte("before"), s)
	got, ok := cutPrefix(got, "before")
	if !ok || !utf8.Valid(got) {
		t.Fatalf("%q became %q", s, got)
	}
	var back string
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%q became %q: %v", s, got, err)
	}
	if want := string([]rune(string(s))); back != want { // the conversion replaces invalid bytes, too
		t.Fatalf("%q became %q, which is %q", s, got, back)
	}
	if strings.ContainsAny(string(got), "\n\r") {
		t.Fatalf("%q became more than one line: %q", s, got)
	}
}

func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(string(b), prefix)
	return []byte(rest), ok
}

func TestAppendFloat(t *testing.T) {
	for _, c := range []struct {
		value canal.Value
		want  string
	}{
		{canal.NewDouble(0), "0"},
		{canal.NewDouble(negativeZero()), "-0"},
		{canal.NewDouble(1), "1"},
		{canal.NewDouble(0.1), "0.1"},
		{canal.NewDouble(1e20), "100000000000000000000"},
		{canal.NewDouble(1e21), "1e+21"},
		{canal.NewDouble(-1e-6), "-0.000001"},
		{canal.NewDouble(1e-7), "1e-07"},
		{canal.NewDouble(math.MaxFloat64), "1.7976931348623157e+308"},
		{canal.NewDouble(math.SmallestNonzeroFloat64), "5e-324"},
		{canal.NewFloat(0.1), "0.1"},
		{canal.NewFloat(16777216), "16777216"},
		{canal.NewFloat(math.MaxFloat32), "3.4028235e+38"},
		{canal.NewFloat(1e-6), "0.000001"},
		{canal.NewFloat(float32(negativeZero())), "-0"},
	} {
		require.Equal(t, c.want, string(appendValue(nil, &c.value)))
	}
}

// FuzzAppendFloat: every finite number is read back as the same bits from valid JSON.
func FuzzAppendFloat(f *testing.F) {
	f.Add(uint64(0), uint32(0))
	f.Add(math.Float64bits(math.MaxFloat64), math.Float32bits(math.MaxFloat32))
	f.Fuzz(func(t *testing.T, wide uint64, narrow uint32) {
		for _, v := range []canal.Value{
			canal.NewDouble(math.Float64frombits(wide)),
			canal.NewFloat(math.Float32frombits(narrow)),
		} {
			number, bits := v.Float64(), 64
			if v.Kind == canal.KindFloat {
				number, bits = float64(v.Float32()), 32
			}
			if math.IsNaN(number) || math.IsInf(number, 0) {
				continue
			}
			got := appendValue(nil, &v)
			require.True(t, json.Valid(got), string(got))
			back, err := strconv.ParseFloat(string(got), bits)
			require.NoError(t, err)
			require.Equal(t, math.Float64bits(number), math.Float64bits(back), string(got))
		}
	})
}

func TestKeyParts(t *testing.T) {
	for in, want := range map[string]string{
		"":       "",
		"plain":  "plain",
		",":      `\,`,
		`\`:      `\\`,
		`,\,a,`:  `\,\\\,a\,`,
		"a,b,c,": `a\,b\,c\,`,
	} {
		got, ok := appendKeyPart([]byte("before,"), text(in))
		require.True(t, ok)
		require.Equal(t, "before,"+want, string(got))
	}
}

// FuzzKeyParts: two composite keys are the same text only if they are the same key.
func FuzzKeyParts(f *testing.F) {
	f.Add("a,", "b", "a", ",b")
	f.Add(`a\`, ",b", `a\,`, "b")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		join := func(x, y string) string {
			key, _ := appendKeyPart(nil, text(x))
			key, _ = appendKeyPart(append(key, ','), text(y))
			return string(key)
		}
		require.Equal(t, a == c && b == d, join(a, b) == join(c, d))
	})
}
