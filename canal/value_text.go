package canal

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// readUTF8 reads text that needs a check only.
func (d *Decoder) readUTF8(v *Value, b []byte) error {
	scan := scanText(b)
	if !scan.validUTF8(b) {
		return d.readText(v, charsetByName("utf8mb4"), b)
	}
	*v = Value{Kind: KindText, plain: !scan.escapes, Bytes: b}
	return nil
}

// readText reads text of any character set; what is ASCII in most of them is not copied.
func (d *Decoder) readText(v *Value, cs *charset, b []byte) error {
	if cs.form == formBinary {
		*v = Value{Kind: KindBinary, Bytes: b}
		return nil
	}
	scan := scanText(b)
	if cs.isUTF8(b, scan) {
		*v = Value{Kind: KindText, plain: !scan.escapes, Bytes: b}
		return nil
	}
	start := len(d.text)
	text, invalid := cs.appendUTF8(d.text, b)
	d.text = text
	if invalid > 0 {
		if d.opts.InvalidText == StopOnInvalidText {
			return fmt.Errorf("%w %s (%d places in %d bytes); change the value, or write source.invalid_text: replace", errInvalidText, cs.name, invalid, len(b))
		}
		d.shared.replacedText.Add(1)
	}
	*v = Value{Kind: KindText, Bytes: text[start:len(text):len(text)]}
	return nil
}

// readEnum reads a label's number, from 1; 0 is the empty string that the server stores
// for an invalid label.
func (d *Decoder) readEnum(v *Value, f *field, b []byte) error {
	n := int(b[0])
	if len(b) == 2 {
		n = int(binary.LittleEndian.Uint16(b))
	}
	if n > len(f.labels) {
		return fmt.Errorf("label %d of %d", n, len(f.labels))
	}
	*v = Value{Kind: KindEnum, plain: f.plainLabels, Bytes: []byte{}}
	if n > 0 {
		v.Bytes = f.labels[n-1]
	}
	return nil
}

// readSet reads a bit per label.
func (d *Decoder) readSet(v *Value, f *field, b []byte) error {
	var set uint64
	for i, c := range b {
		set |= uint64(c) << (8 * i)
	}
	if bits.Len64(set) > len(f.labels) {
		return fmt.Errorf("label %d of %d", bits.Len64(set), len(f.labels))
	}
	start := len(d.text)
	d.text = append(d.text, '[')
	for ; set != 0; set &= set - 1 {
		if d.text[len(d.text)-1] != '[' {
			d.text = append(d.text, ',')
		}
		d.text = append(d.text, f.labels[bits.TrailingZeros64(set)]...)
	}
	d.text = append(d.text, ']')
	*v = Value{Kind: KindSet, Bytes: d.text[start:len(d.text):len(d.text)]}
	return nil
}

// padded returns a BINARY with the zero bytes at its end that the server leaves out.
func (d *Decoder) padded(b []byte, size int) []byte {
	if len(b) >= size {
		return b
	}
	start := len(d.text)
	d.text = append(d.text, b...)
	for range size - len(b) {
		d.text = append(d.text, 0)
	}
	return d.text[start:len(d.text):len(d.text)]
}

// typeName names the column's type for people.
func (c *Column) typeName() string {
	if c.SourceType != "" {
		return c.SourceType
	}
	name := wireTypeName(c.Type)
	switch c.Type {
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return fmt.Sprintf("%s(%d,%d)", name, c.Meta>>8, c.Meta&0xff)
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, typeMariaDBVarcharCompressed:
		name = fmt.Sprintf("%s(%d bytes)", name, c.Meta)
	}
	if c.Charset != "" {
		name += " " + c.Charset
	}
	return name
}

// wireTypeName names a type of the table map.
func wireTypeName(t byte) string {
	switch t {
	case mysql.MYSQL_TYPE_TINY:
		return "TINYINT"
	case mysql.MYSQL_TYPE_SHORT:
		return "SMALLINT"
	case mysql.MYSQL_TYPE_INT24:
		return "MEDIUMINT"
	case mysql.MYSQL_TYPE_LONG:
		return "INT"
	case mysql.MYSQL_TYPE_LONGLONG:
		return "BIGINT"
	case mysql.MYSQL_TYPE_FLOAT:
		return "FLOAT"
	case mysql.MYSQL_TYPE_DOUBLE:
		return "DOUBLE"
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return "DECIMAL"
	case mysql.MYSQL_TYPE_BIT:
		return "BIT"
	case mysql.MYSQL_TYPE_YEAR:
		return "YEAR"
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE:
		return "DATE"
	case mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_TIME2:
		return "TIME"
	case mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_DATETIME2:
		return "DATETIME"
	case mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIMESTAMP2:
		return "TIMESTAMP"
	case mysql.MYSQL_TYPE_ENUM:
		return "ENUM"
	case mysql.MYSQL_TYPE_SET:
		return "SET"
	case mysql.MYSQL_TYPE_STRING:
		return "CHAR"
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING:
		return "VARCHAR"
	case typeMariaDBVarcharCompressed:
		return "VARCHAR COMPRESSED"
	case mysql.MYSQL_TYPE_BLOB:
		return "BLOB"
	case typeMariaDBBlobCompressed:
		return "BLOB COMPRESSED"
	case mysql.MYSQL_TYPE_JSON:
		return "JSON"
	case mysql.MYSQL_TYPE_GEOMETRY:
		return "GEOMETRY"
	case mysql.MYSQL_TYPE_VECTOR:
		return "VECTOR"
	}
	return fmt.Sprintf("type %d", t)
}
