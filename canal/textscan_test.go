package canal

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Every byte, at every place of texts of all lengths that are looked at differently, among letters and among bytes of either kind
// of neighbour.
func TestScanText(t *testing.T) {
	for _, neighbour := range []byte{'a', ' ', 0x80, 0xff} {
		for length := range 75 {
			text := bytes.Repeat([]byte{neighbour}, length)
			for place := range text {
				for c := range 256 {
					text[place] = byte(c)
					want := textScan{ascii: c < utf8.RuneSelf && (neighbour < utf8.RuneSelf || length == 1), escapes: c < 0x20 || c == '"' || c == '\\'}
					if got := scanText(text); got != want {
						t.Fatalf("%q: %+v, not %+v", text, got, want)
					}
				}
				text[place] = neighbour
			}
		}
	}
	require.Equal(t, textScan{ascii: true}, scanText(nil))
}

// What text is known to be plain needs no escape, and is UTF-8, in all character sets.
func TestPlainText(t *testing.T) {
	for _, c := range []struct {
		charset, text string
		plain         bool
	}{
		{"utf8mb4", "", true},
		{"utf8mb4", "plain 按门铃 \u2028 \x7f", true},
		{"utf8mb4", "a \"quote\" behind 按门铃", false},
		{"utf8mb4", "back\\slash, then letters", false},
		{"utf8mb4", "a\nline", false},
		{"latin1", "plain", true},
		{"latin1", "a\ttab", false},
		{"gbk", "plain", true},
	} {
		var v Value
		field := field{code: codeText, charset: charsetByName(c.charset), prefix: 1}
		if c.charset == "utf8mb4" {
			field.code = codeUTF8
		}
		_, err := capturing().readValue(&v, &field, append([]byte{byte(len(c.text))}, c.text...))
		require.NoError(t, err)
		require.Equal(t, c.text, string(v.Bytes))
		require.Equal(t, c.plain, v.Plain(), "%q", c.text)
	}
}
