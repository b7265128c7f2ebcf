package mapping

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// redacted stands in the place of what is not shown.
const redacted = "***"

// newMask makes the mask of one column. It is for one goroutine.
func newMask(m ColumnMask, key []byte) expression.Mask {
	switch m.Method {
	case maskHash:
		return hashMask(key)
	case maskLast:
		return lastMask(m.Last)
	case maskNull:
		return func(b []byte, _ canal.Value) ([]byte, canal.Value) {
			return b, canal.Value{Kind: canal.KindNull}
		}
	}
	return func(b []byte, _ canal.Value) ([]byte, canal.Value) {
		return b, canal.NewBytes(canal.KindText, []byte(redacted))
	}
}

// hashMask shows the HMAC-SHA256 of a value's text, in hexadecimal: equal values stay equal, in all tables, and nobody
// without the key can try values out.
func hashMask(key []byte) expression.Mask {
	h := hmac.New(sha256.New, key)
	var text, sum []byte
	return func(b []byte, v canal.Value) ([]byte, canal.Value) {
		h.Reset()
		text = appendText(text[:0], v)
		h.Write(text)
		clear(text)
		sum = h.Sum(sum[:0])
		start := len(b)
		b = hex.AppendEncode(b, sum)
		return b, canal.NewBytes(canal.KindText, b[start:len(b):len(b)])
	}
}

// lastMask shows the last characters of texts that are at least twice as long, and nothing of others.
func lastMask(characters int) expression.Mask {
	return func(b []byte, v canal.Value) ([]byte, canal.Value) {
		start := len(b)
		b = appendText(b, v)
		text := b[start:]
		var shown string
		if utf8.RuneCount(text) >= 2*characters {
			from := len(text)
			for range characters {
				_, size := utf8.DecodeLastRune(text[:from])
				from -= size
			}
			shown = string(text[from:])
		}
		clear(text)
		b = append(append(b[:start], redacted...), shown...)
		return b, canal.NewBytes(canal.KindText, b[start:len(b):len(b)])
	}
}
