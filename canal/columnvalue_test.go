package canal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParseValue: a value that is written as events show it is what the binlog would have given.
func TestParseValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		columnType, charset, text string
		want                      Value
		problem                   string
	}{
		{columnType: "bigint", text: "-9223372036854775808", want: NewInt(-9223372036854775808)},
		{columnType: "bigint unsigned", text: "18446744073709551615", want: NewUint(18446744073709551615)},
		{columnType: "bigint", text: "9223372036854775808", problem: "it is too large"},
		{columnType: "int", text: "1.5", problem: "write a number"},
		{columnType: "decimal(10,2)", text: "19.9", want: NewBytes(KindDecimal, []byte("19.90"))},
		{columnType: "decimal(10,2)", text: "20", want: NewBytes(KindDecimal, []byte("20.00"))},
		{columnType: "decimal(10,2)", text: "0.999", problem: "at most 2 digits"},
		{columnType: "decimal(10,2)", text: "1e3", problem: "write it as events show it"},
		{columnType: "double", text: "0.1", want: NewDouble(0.1)},
		{columnType: "enum('new','paid')", charset: "utf8mb4", text: "paid", want: NewBytes(KindEnum, []byte("paid"))},
		{columnType: "enum('new','paid')", charset: "utf8mb4", text: "pay", problem: "write one of new, paid"},
		{columnType: "set('a','b','c')", charset: "utf8mb4", text: "c,a", want: NewBytes(KindSet, []byte(`["a","c"]`))},
		{columnType: "set('a','b','c')", charset: "utf8mb4", text: "", want: NewBytes(KindSet, []byte(`[]`))},
		{columnType: "set('a','b','c')", charset: "utf8mb4", text: "a,d", problem: "write labels of a, b, c"},
		{columnType: "blob", charset: "", text: "AP8=", want: NewBytes(KindBinary, []byte("\x00\xff"))},
		{columnType: "blob", charset: "", text: "!", problem: "base64"},
		{columnType: "varchar(20)", charset: "utf8mb4", text: "Grüße", want: NewText("Grüße")},
		{columnType: "json", text: `{"a": 1}`, want: NewBytes(KindJSON, []byte(`{"a": 1}`))},
		{columnType: "json", text: `{`, problem: "it is no JSON"},
		{columnType: "datetime(3)", text: "2026-11-29 10:00:00.5", want: NewBytes(KindDateTime, []byte("2026-11-29T10:00:00.500"))},
		{columnType: "datetime", text: "2026-11-29T10:00:00", want: NewBytes(KindDateTime, []byte("2026-11-29T10:00:00"))},
		{columnType: "timestamp(2)", text: "2026-11-29 10:00:00", want: NewBytes(KindInstant, []byte("2026-11-29T10:00:00.00Z"))},
		{columnType: "datetime", text: "yesterday", problem: "write it as events show it"},
	} {
		column, err := NewColumn("c", c.columnType, c.charset)
		require.NoError(t, err, c.columnType)
		got, err := column.ParseValue(c.text)
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem, c.columnType)
			continue
		}
		require.NoError(t, err, c.columnType)
		require.True(t, c.want.Equal(got), "%s %q: %s", c.columnType, c.text, got.Bytes)
		require.Equal(t, c.want.Kind, got.Kind)
	}
}
