package canal

import (
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// fieldCode says how a value's bytes become a Value.
type fieldCode uint8

const (
	codeInt8 fieldCode = iota + 1
	codeUint8
	codeInt16
	codeUint16
	codeInt24
	codeUint24
	codeInt32
	codeUint32
	codeInt64
	codeUint64
	codeFloat
	codeDouble
	codeDecimal
	codeBit
	codeYear
	codeDate
	codeTime2
	codeDateTime2
	codeTimestamp2
	codeTimeOld
	codeDateTimeOld
	codeTimestampOld
	codeTimeHires
	codeDateTimeHires
	codeTimestampHires
	codeNull
	codeEnum
	codeSet
	codeBinary // BINARY: zero bytes at the end are not sent
	codeBytes  // VARBINARY, BLOB
	codeUTF8   // text whose bytes need a check but no conversion
	codeText
	codeCompressed
	codeJSON
	codeGeometry
	codeVector
	codeUUID
	codeInet4
	codeInet6
)

// field is a column made ready for walking rows (size, prefix) and for reading them (the
// rest).
type field struct {
	code fieldCode
	// prefix is the size in bytes of the length before the value; 0 for a value of
	// fixed size.
	prefix uint8
	// digits of a second's fraction, or of a DECIMAL behind the point.
	digits    uint8
	precision uint8 // of a DECIMAL
	size      int   // in bytes, of a value of fixed size; of a BINARY with its padding
	charset   *charset
	labels    [][]byte // ENUM: UTF-8; SET: quoted for JSON
	// plainLabels: those of an ENUM stand for themselves in JSON.
	plainLabels bool
}

// stride is a stretch of a row without NULLs: bytes of fixed size, then a value with a
// length of prefix bytes before it (0: none, the last stretch).
type stride struct {
	fixed  int
	prefix int
}

// newField readies c, whose Type and Meta are set, for walking; complete does the rest.
func newField(c *Column) (field, error) {
	meta := int(c.Meta)
	f := field{}
	switch c.Type {
	case mysql.MYSQL_TYPE_TINY:
		f.code, f.size = codeInt8, 1
	case mysql.MYSQL_TYPE_SHORT:
		f.code, f.size = codeInt16, 2
	case mysql.MYSQL_TYPE_INT24:
		f.code, f.size = codeInt24, 3
	case mysql.MYSQL_TYPE_LONG:
		f.code, f.size = codeInt32, 4
	case mysql.MYSQL_TYPE_LONGLONG:
		f.code, f.size = codeInt64, 8
	case mysql.MYSQL_TYPE_FLOAT:
		f.code, f.size = codeFloat, 4
	case mysql.MYSQL_TYPE_DOUBLE:
		f.code, f.size = codeDouble, 8
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		f.code, f.precision, f.digits = codeDecimal, uint8(meta>>8), uint8(meta)
		size, err := decimalSize(meta>>8, meta&0xff)
		if err != nil {
			return f, err
		}
		f.size = size
	case mysql.MYSQL_TYPE_BIT:
		bits := meta>>8*8 + meta&0xff
		if bits < 1 || bits > 64 {
			return f, fmt.Errorf("BIT(%d) is impossible", bits)
		}
		f.code, f.size = codeBit, (bits+7)/8
	case mysql.MYSQL_TYPE_YEAR:
		f.code, f.size = codeYear, 1
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE:
		f.code, f.size = codeDate, 3
	case mysql.MYSQL_TYPE_TIME:
		f.code, f.size = codeTimeOld, 3
	case mysql.MYSQL_TYPE_DATETIME:
		f.code, f.size = codeDateTimeOld, 8
	case mysql.MYSQL_TYPE_TIMESTAMP:
		f.code, f.size = codeTimestampOld, 4
	case mysql.MYSQL_TYPE_TIME2:
		f.code, f.size, f.digits = codeTime2, 3+fracBytes(meta), uint8(meta)
	case mysql.MYSQL_TYPE_DATETIME2:
		f.code, f.size, f.digits = codeDateTime2, 5+fracBytes(meta), uint8(meta)
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		f.code, f.size, f.digits = codeTimestamp2, 4+fracBytes(meta), uint8(meta)
	case mysql.MYSQL_TYPE_NULL:
		f.code = codeNull
	case mysql.MYSQL_TYPE_ENUM:
		if meta != 1 && meta != 2 {
			return f, fmt.Errorf("ENUM of %d bytes is impossible", meta)
		}
		f.code, f.size = codeEnum, meta
	case mysql.MYSQL_TYPE_SET:
		if meta < 1 || meta > 8 {
			return f, fmt.Errorf("SET of %d bytes is impossible", meta)
		}
		f.code, f.size = codeSet, meta
	case mysql.MYSQL_TYPE_STRING:
		f.code, f.size, f.prefix = codeText, meta, lengthBytes(meta)
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING:
		f.code, f.prefix = codeText, lengthBytes(meta)
	case typeMariaDBVarcharCompressed:
		f.code, f.prefix = codeCompressed, lengthBytes(meta)
	case mysql.MYSQL_TYPE_BLOB:
		f.code = codeText
		return f, f.setPrefix(meta)
	case typeMariaDBBlobCompressed:
		f.code = codeCompressed
		return f, f.setPrefix(meta)
	case mysql.MYSQL_TYPE_JSON:
		f.code = codeJSON
		return f, f.setPrefix(meta)
	case mysql.MYSQL_TYPE_GEOMETRY:
		f.code = codeGeometry
		return f, f.setPrefix(meta)
	case mysql.MYSQL_TYPE_VECTOR:
		f.code = codeVector
		return f, f.setPrefix(meta)
	default:
		return f, fmt.Errorf("type %d is unknown to this version of binlogd", c.Type)
	}
	if f.digits > 6 && f.code != codeDecimal {
		return f, fmt.Errorf("%d digits of a second are impossible", f.digits)
	}
	return f, nil
}

// lengthBytes is the size of the length before a string of at most so many bytes.
func lengthBytes(most int) uint8 {
	if most < 256 {
		return 1
	}
	return 2
}

func (f *field) setPrefix(n int) error {
	if n < 1 || n > 4 {
		return fmt.Errorf("a length of %d bytes is impossible", n)
	}
	f.prefix = uint8(n)
	return nil
}

// complete readies f for reading: c has its signedness, character set and labels now.
func (f *field) complete(c *Column) error {
	switch f.code {
	case codeInt8, codeInt16, codeInt24, codeInt32, codeInt64:
		if c.Unsigned {
			f.code++ // the unsigned code follows the signed one
		}
	case codeTimeOld, codeDateTimeOld, codeTimestampOld:
		if c.fraction > 0 && c.fraction <= 6 {
			f.digits, f.size = c.fraction, hiresBytes(f.code, int(c.fraction))
			f.code += codeTimeHires - codeTimeOld
		}
	case codeEnum:
		f.labels, f.plainLabels = make([][]byte, len(c.Labels)), true
		for i, label := range c.Labels {
			f.labels[i] = []byte(label)
			scan := scanText(f.labels[i])
			f.plainLabels = f.plainLabels && !scan.escapes && scan.validUTF8(f.labels[i])
		}
	case codeSet:
		f.labels = make([][]byte, len(c.Labels))
		for i, label := range c.Labels {
			f.labels[i] = appendJSONString(nil, []byte(label))
		}
	case codeText, codeCompressed:
		f.charset = charsetByName(c.Charset)
		if f.charset == nil {
			return fmt.Errorf("character set %q is unknown to this version of binlogd", c.Charset)
		}
		if f.code == codeCompressed {
			return nil
		}
		switch {
		case f.charset.form == formBinary && c.Type == mysql.MYSQL_TYPE_STRING:
			f.code = binaryCode(c)
		case f.charset.form == formBinary && strings.HasPrefix(c.SourceType, "vector("):
			f.code = codeVector // MariaDB's, which is sent as VARBINARY
		case f.charset.form == formBinary:
			f.code = codeBytes
		case f.charset.form == formUTF8:
			f.code = codeUTF8
		}
	default: // nothing more is known of the others
	}
	return nil
}

// binaryCode tells the types apart that MariaDB sends as BINARY of their stored form.
func binaryCode(c *Column) fieldCode {
	switch c.SourceType {
	case "uuid":
		return codeUUID
	case "inet4":
		return codeInet4
	case "inet6":
		return codeInet6
	}
	return codeBinary
}

// stridesOf cuts a row of these fields, with all columns and no NULL, into stretches.
func stridesOf(fields []field) []stride {
	strides := []stride{}
	fixed := 0
	for i := range fields {
		if fields[i].prefix == 0 {
			fixed += fields[i].size
			continue
		}
		strides = append(strides, stride{fixed: fixed, prefix: int(fields[i].prefix)})
		fixed = 0
	}
	if fixed > 0 {
		strides = append(strides, stride{fixed: fixed})
	}
	return strides
}

// isOldTemporal: MariaDB may have written it with a fraction, whose size the table map
// does not tell.
func (f *field) isOldTemporal() bool {
	return f.code == codeTimeOld || f.code == codeDateTimeOld || f.code == codeTimestampOld
}
