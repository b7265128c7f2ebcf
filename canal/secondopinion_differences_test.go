package canal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// cell is a value as both decoders give it, or the error that go-mysql gives for its transaction.
type cell struct {
	table  *Table
	column *Column
	ours   Value
	theirs any
	err    error
}

// same reports whether both give the same value, each in its own form.
func (c cell) same() bool {
	switch c.ours.Kind { //nolint:exhaustive // the others are text
	case KindNull:
		return c.theirs == nil
	case KindFloat:
		f, ok := c.theirs.(float32)
		return ok && math.Float32bits(f) == math.Float32bits(c.ours.Float32())
	case KindDouble:
		f, ok := c.theirs.(float64)
		return ok && math.Float64bits(f) == math.Float64bits(c.ours.Float64())
	case KindJSON:
		text, ok := c.theirs.(string)
		return ok && compactJSON(text) == string(c.ours.Bytes)
	}
	if c.theirs == nil {
		return false
	}
	return string(c.theirBytes()) == asText(c.ours)
}

// theirBytes are text and bytes as they are, and numbers as text.
func (c cell) theirBytes() []byte {
	switch v := c.theirs.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return fmt.Append(nil, c.theirs)
}

// theirNumber is a number of any size with its sign extended; ok: it is one.
func (c cell) theirNumber() (n int64, ok bool) {
	n, err := strconv.ParseInt(fmt.Sprint(c.theirs), 10, 64)
	return n, err == nil
}

// difference is a way in which go-mysql's values differ, by the name that it has in docs/DECODING.md.
type difference struct {
	name     string
	explains func(c cell) bool // theirs is ours in that way
}

// oldFractions is looked for in rows as a whole.
const oldFractions = "MariaDB's own temporal formats with fractions"

var differences = []difference{
	{"ENUM is the label's number", func(c cell) bool {
		n, ok := c.theirNumber()
		if !ok || c.ours.Kind != KindEnum || n > int64(len(c.column.Labels)) {
			return false
		}
		return n == 0 && len(c.ours.Bytes) == 0 || n > 0 && c.column.Labels[n-1] == string(c.ours.Bytes)
	}},
	{"SET is a bit mask", func(c cell) bool {
		mask, ok := c.theirNumber()
		var labels []string
		for i, label := range c.labels() {
			if uint64(mask)>>i&1 != 0 {
				labels = append(labels, label)
			}
		}
		return ok && c.ours.Kind == KindSet && strings.Join(labels, ",") == asText(c.ours)
	}},
	{"BIT(64) is signed", func(c cell) bool {
		n, ok := c.theirs.(int64)
		return ok && n < 0 && c.columnType() == mysql.MYSQL_TYPE_BIT && uint64(n) == c.ours.Uint()
	}},
	{"UNSIGNED is signed where the table map does not say it", func(c cell) bool {
		n, ok := c.theirNumber()
		size := map[byte]int{mysql.MYSQL_TYPE_TINY: 8, mysql.MYSQL_TYPE_SHORT: 16, mysql.MYSQL_TYPE_INT24: 24, mysql.MYSQL_TYPE_LONG: 32, mysql.MYSQL_TYPE_LONGLONG: 64}[c.columnType()]
		return ok && n < 0 && size > 0 && c.ours.Kind == KindUint && uint64(n)<<(64-size)>>(64-size) == c.ours.Uint()
	}},
	{"Text is in the column's character set", func(c cell) bool {
		if c.ours.Kind != KindText {
			return false
		}
		cs := charsetByName(c.column.Charset)
		if cs == nil {
			return false
		}
		text, invalid := cs.appendUTF8(nil, c.theirBytes())
		return cs.form != formUTF8 && cs.form != formBinary && invalid == 0 && bytes.Equal(text, c.ours.Bytes)
	}},
	{"BINARY lacks the zero bytes at its end", func(c cell) bool {
		theirs := c.theirBytes()
		return c.ours.Kind == KindBinary && c.columnType() == mysql.MYSQL_TYPE_STRING && len(theirs) < len(c.ours.Bytes) &&
			bytes.Equal(append(theirs, make([]byte, len(c.ours.Bytes)-len(theirs))...), c.ours.Bytes)
	}},
	{"TIME lacks a fraction that is zero", func(c cell) bool {
		ours, zeros, _ := strings.Cut(string(c.ours.Bytes), ".")
		return c.ours.Kind == KindTime && strings.Trim(zeros, "0") == "" && ours == c.theirs
	}},
	{"VECTOR is bytes", func(c cell) bool {
		return c.ours.Kind == KindVector && strings.ToUpper(hex.EncodeToString(c.theirBytes())) == vectorHex(c.ours)
	}},
	{"GEOMETRY is bytes", func(c cell) bool {
		text, err := appendGeoJSON(nil, c.theirBytes())
		return c.ours.Kind == KindGeometry && err == nil && bytes.Equal(text, c.ours.Bytes)
	}},
	{"UUID, INET4 and INET6 are bytes", func(c cell) bool {
		render := map[string]func(dst, b []byte) []byte{"uuid": appendMariaDBUUID, "inet4": appendInet4, "inet6": appendInet6}[c.sourceType()]
		return c.ours.Kind == KindText && render != nil && bytes.Equal(render(nil, c.theirBytes()), c.ours.Bytes)
	}},
	{"COMPRESSED columns cannot be decoded", func(c cell) bool {
		if c.err == nil {
			return false
		}
		for _, column := range c.table.Columns {
			unsupported := fmt.Sprintf("unsupport type %d ", column.Type)
			if isCompressedColumn(column.Type) && strings.Contains(c.err.Error(), unsupported) {
				return true
			}
		}
		return false
	}},
	{"Numbers in JSON are written in another way", func(c cell) bool {
		text, ok := c.theirs.(string)
		return ok && c.ours.Kind == KindJSON && sameTokens(text, string(c.ours.Bytes))
	}},
	{"A zero DATETIME in JSON lacks its fraction", func(c cell) bool {
		text, ok := c.theirs.(string)
		return ok && c.ours.Kind == KindJSON && strings.ReplaceAll(compactJSON(text), `"0000-00-00 00:00:00"`, `"0000-00-00 00:00:00.000000"`) == string(c.ours.Bytes)
	}},
	{"A partial JSON update is its first part", func(c cell) bool {
		_, ok := c.theirs.(*replication.JsonDiff)
		return ok && c.ours.Kind == KindJSON
	}},
	{"Negative TIME in MariaDB's own format", func(c cell) bool {
		return c.ours.Kind == KindTime && c.columnType() == mysql.MYSQL_TYPE_TIME && bytes.HasPrefix(c.ours.Bytes, []byte("-"))
	}},
	{oldFractions, func(cell) bool { return false }},
}

// sameTokens reports whether two JSON documents are the same, order included, but for how their numbers with a fraction or an exponent
// are written.
func sameTokens(a, b string) bool {
	first, second := json.NewDecoder(strings.NewReader(a)), json.NewDecoder(strings.NewReader(b))
	first.UseNumber()
	second.UseNumber()
	for {
		x, errX := first.Token()
		y, errY := second.Token()
		if errX != nil || errY != nil {
			return errors.Is(errX, io.EOF) && errors.Is(errY, io.EOF)
		}
		n, isNumber := x.(json.Number)
		m, isNumberToo := y.(json.Number)
		if x == y {
			continue
		}
		if !isNumber || !isNumberToo || !strings.ContainsAny(string(n+m), ".eE") || doubleText(string(n)) != doubleText(string(m)) {
			return false
		}
	}
}

func isCompressedColumn(t byte) bool {
	return t == typeMariaDBBlobCompressed || t == typeMariaDBVarcharCompressed
}

// columnType, labels and sourceType are empty for an error, which has no column.
func (c cell) columnType() byte {
	if c.column == nil {
		return 0
	}
	return c.column.Type
}

func (c cell) labels() []string {
	if c.column == nil {
		return nil
	}
	return c.column.Labels
}

func (c cell) sourceType() string {
	if c.column == nil {
		return ""
	}
	return c.column.SourceType
}
