package canal

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// MySQL's binary JSON: a type byte, then the value. Objects and arrays have a count and
// their size, entries for keys and values, then the keys and values themselves; small
// ones use offsets of 2 bytes, large ones of 4. Small numbers and literals stand in the
// entry in place of an offset. Offsets count from the object's own start.
// https://dev.mysql.com/doc/dev/mysql-server/latest/ (sql-common/json_binary.h)
const (
	jsonSmallObject = 0x00
	jsonLargeObject = 0x01
	jsonSmallArray  = 0x02
	jsonLargeArray  = 0x03
	jsonLiteral     = 0x04
	jsonInt16       = 0x05
	jsonUint16      = 0x06
	jsonInt32       = 0x07
	jsonUint32      = 0x08
	jsonInt64       = 0x09
	jsonUint64      = 0x0a
	jsonDouble      = 0x0b
	jsonString      = 0x0c
	jsonOpaque      = 0x0f

	jsonNull  = 0x00
	jsonTrue  = 0x01
	jsonFalse = 0x02
)

const (
	// jsonMaxDepth is above MySQL's own limit of 100.
	jsonMaxDepth = 128
	// jsonMaxGrowth is above what any binary JSON of MySQL's grows by as text: its values do not
	// share bytes. Damaged bytes may, and would otherwise mean exponentially much.
	jsonMaxGrowth = 16
)

// jsonBounds end the reading of damaged bytes.
type jsonBounds struct {
	depth int // levels of nesting that are left
	most  int // length of the text, with what was in the buffer before
}

func newJSONBounds(dst []byte, size int) jsonBounds {
	return jsonBounds{depth: jsonMaxDepth, most: len(dst) + jsonMaxGrowth*(size+1)}
}

// check is called at each object and array; inside is for what is in them.
func (b jsonBounds) check(dst []byte) (inside jsonBounds, err error) {
	if b.depth == 0 {
		return b, errJSONDeep
	}
	if len(dst) > b.most {
		return b, errJSONShared
	}
	b.depth--
	return b, nil
}

var (
	errJSONShort  = errors.New("the binary JSON is cut off")
	errJSONDeep   = errors.New("the JSON is nested too deeply")
	errJSONShared = errors.New("the binary JSON uses the same bytes for several values")
)

// appendJSON renders a binary JSON document as text without spaces: keys in stored order,
// doubles with a point or exponent, 64-bit integers and decimals with every digit, dates and
// times as strings as MySQL shows them.
func appendJSON(dst, doc []byte) ([]byte, error) {
	if len(doc) == 0 {
		// What the server stores where a non-nullable JSON column was never set.
		return append(dst, "null"...), nil
	}
	return appendJSONValue(dst, doc[0], doc[1:], newJSONBounds(dst, len(doc)))
}

func appendJSONValue(dst []byte, kind byte, b []byte, bounds jsonBounds) ([]byte, error) {
	switch kind {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		c, err := parseJSONContainer(kind, b)
		if err != nil {
			return dst, err
		}
		return c.append(dst, bounds)
	case jsonString:
		s, err := jsonBytes(b)
		if err != nil {
			return dst, err
		}
		return appendJSONText(dst, s)
	case jsonOpaque:
		return appendJSONOpaque(dst, b)
	default:
		return appendJSONScalar(dst, kind, b)
	}
}

func appendJSONScalar(dst []byte, kind byte, b []byte) ([]byte, error) {
	if len(b) < jsonScalarSize(kind) {
		return dst, errJSONShort
	}
	switch kind {
	case jsonLiteral:
		switch b[0] {
		case jsonNull:
			return append(dst, "null"...), nil
		case jsonTrue:
			return append(dst, "true"...), nil
		case jsonFalse:
			return append(dst, "false"...), nil
		}
		return dst, fmt.Errorf("the binary JSON has literal %d", b[0])
	case jsonInt16:
		return strconv.AppendInt(dst, int64(int16(binary.LittleEndian.Uint16(b))), 10), nil
	case jsonUint16:
		return strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint16(b)), 10), nil
	case jsonInt32:
		return strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))), 10), nil
	case jsonUint32:
		return strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(b)), 10), nil
	case jsonInt64:
		return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(b)), 10), nil
	case jsonUint64:
		return strconv.AppendUint(dst, binary.LittleEndian.Uint64(b), 10), nil
	case jsonDouble:
		return appendJSONDouble(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return dst, fmt.Errorf("the binary JSON has type %d", kind)
}

// jsonScalarSize is the size in bytes of a scalar of fixed size; 0 for other types.
func jsonScalarSize(kind byte) int {
	switch kind {
	case jsonLiteral:
		return 1
	case jsonInt16, jsonUint16:
		return 2
	case jsonInt32, jsonUint32:
		return 4
	case jsonInt64, jsonUint64, jsonDouble:
		return 8
	}
	return 0
}

// jsonContainer is an object or array whose entries lie within data.
type jsonContainer struct {
	data       []byte // from its count to its end
	count      int
	object     bool
	offsetSize int // 2 or 4
	values     int // where the entries of the values begin
}

func parseJSONContainer(kind byte, b []byte) (jsonContainer, error) {
	c := jsonContainer{offsetSize: 2, object: kind == jsonSmallObject || kind == jsonLargeObject}
	if kind == jsonLargeObject || kind == jsonLargeArray {
		c.offsetSize = 4
	}
	if len(b) < 2*c.offsetSize {
		return c, errJSONShort
	}
	c.count = c.offset(b)
	size := c.offset(b[c.offsetSize:])
	if size > len(b) {
		return c, errJSONShort
	}
	c.data = b[:size]
	c.values = c.keyEntry(0)
	if c.object {
		c.values = c.keyEntry(c.count)
	}
	// The entries are checked once, here: a count is never larger than what is there.
	if c.count > size || c.valueEntry(c.count) > size {
		return c, errJSONShort
	}
	return c, nil
}

// offset reads an offset, count or size.
func (c *jsonContainer) offset(b []byte) int {
	if c.offsetSize == 2 {
		return int(binary.LittleEndian.Uint16(b))
	}
	return int(binary.LittleEndian.Uint32(b))
}

// keyEntry is where the entry of key i begins: its offset and, in two bytes, its length.
func (c *jsonContainer) keyEntry(i int) int { return 2*c.offsetSize + i*(c.offsetSize+2) }

// valueEntry is where the entry of value i begins: its type and its offset.
func (c *jsonContainer) valueEntry(i int) int { return c.values + i*(1+c.offsetSize) }

func (c *jsonContainer) key(i int) ([]byte, error) {
	entry := c.data[c.keyEntry(i):]
	start := c.offset(entry)
	end := start + int(binary.LittleEndian.Uint16(entry[c.offsetSize:]))
	if end > len(c.data) {
		return nil, errJSONShort
	}
	return c.data[start:end], nil
}

// value returns the type and the bytes of value i, with what follows them.
func (c *jsonContainer) value(i int) (kind byte, b []byte, err error) {
	entry := c.data[c.valueEntry(i):]
	kind = entry[0]
	if size := jsonScalarSize(kind); size > 0 && size <= c.offsetSize && kind != jsonDouble {
		return kind, entry[1 : 1+c.offsetSize], nil
	}
	start := c.offset(entry[1:])
	// Entries come before values: an offset that points back could go round for ever.
	if start < c.valueEntry(c.count) || start > len(c.data) {
		return 0, nil, errJSONShort
	}
	return kind, c.data[start:], nil
}

func (c *jsonContainer) append(dst []byte, bounds jsonBounds) ([]byte, error) {
	inside, err := bounds.check(dst)
	if err != nil {
		return dst, err
	}
	first, last := byte('['), byte(']')
	if c.object {
		first, last = '{', '}'
	}
	dst = append(dst, first)
	for i := range c.count {
		if i > 0 {
			dst = append(dst, ',')
		}
		if c.object {
			key, err := c.key(i)
			if err != nil {
				return dst, err
			}
			if dst, err = appendJSONText(dst, key); err != nil {
				return dst, err
			}
			dst = append(dst, ':')
		}
		kind, b, err := c.value(i)
		if err != nil {
			return dst, err
		}
		if dst, err = appendJSONValue(dst, kind, b, inside); err != nil {
			return dst, err
		}
	}
	return append(dst, last), nil
}

// jsonBytes reads bytes with their length before them, seven bits a byte, lowest first.
func jsonBytes(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) { // most are short
		return b[1 : 1+int(b[0])], nil
	}
	size := uint64(0)
	for i := 0; i < 5 && i < len(b); i++ {
		size |= uint64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			b = b[i+1:]
			if size > uint64(len(b)) {
				return nil, errJSONShort
			}
			return b[:size], nil
		}
	}
	return nil, errJSONShort
}

// appendJSONOpaque renders a value of an SQL type without a JSON counterpart, as MySQL
// does: a DECIMAL as a number, dates and times as strings, others as base64.
func appendJSONOpaque(dst, b []byte) ([]byte, error) {
	if len(b) < 1 {
		return dst, errJSONShort
	}
	kind := b[0]
	value, err := jsonBytes(b[1:])
	if err != nil {
		return dst, err
	}
	switch kind {
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		if len(value) < 2 {
			return dst, errJSONShort
		}
		precision, scale := int(value[0]), int(value[1])
		size, err := decimalSize(precision, scale)
		if err != nil {
			return dst, err
		}
		if len(value)-2 < size {
			return dst, errJSONShort
		}
		return appendDecimal(dst, value[2:2+size], precision, scale)
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME:
		if len(value) < 8 {
			return dst, errJSONShort
		}
		dst = append(dst, '"')
		dst = appendJSONTemporal(dst, kind, int64(binary.LittleEndian.Uint64(value)))
		return append(dst, '"'), nil
	}
	dst = append(dst, `"base64:type`...)
	dst = strconv.AppendUint(dst, uint64(kind), 10)
	dst = append(dst, ':')
	dst = base64.StdEncoding.AppendEncode(dst, value)
	return append(dst, '"'), nil
}

// appendJSONTemporal renders MySQL's packed form: the parts of DATETIME2 or TIME2, then 24
// bits of microseconds.
func appendJSONTemporal(dst []byte, kind byte, v int64) []byte {
	const digits = 6
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	whole, micros := uint64(v)>>24, uint32(v&0xffffff)
	hms := uint32(whole & (1<<17 - 1))
	if kind == mysql.MYSQL_TYPE_TIME {
		dst = appendHours(dst, uint32(whole>>12&0x3ff))
		dst = append(dst, ':')
		dst = append2(dst, hms>>6&0x3f)
		dst = append(dst, ':')
		dst = append2(dst, hms&0x3f)
		return appendDigits(dst, micros, digits)
	}
	ymd := uint32(whole >> 17)
	dst = appendYMD(dst, ymd>>5/13, ymd>>5%13, ymd&0x1f)
	if kind == mysql.MYSQL_TYPE_DATE {
		return dst
	}
	dst = append(dst, ' ')
	dst = appendClock(dst, hms>>12, hms>>6&0x3f, hms&0x3f)
	return appendDigits(dst, micros, digits)
}
