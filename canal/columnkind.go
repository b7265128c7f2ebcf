package canal

import "fmt"

// NewColumn describes a column in the words of information_schema: COLUMN_TYPE, as "decimal(10,2)" or "enum('a','b')", and
// CHARACTER_SET_NAME, empty for other types than text.
func NewColumn(name, columnType, charset string) (Column, error) {
	typ, err := parseColumnType(columnType)
	if err != nil {
		return Column{}, fmt.Errorf("describe column %q: %w", name, err)
	}
	wire := typ.wireTypes(charset)
	if len(wire) == 0 {
		return Column{}, fmt.Errorf("describe column %q: type %q is unknown to this version of binlogd", name, columnType)
	}
	c := Column{Type: wire[0].code, Meta: wire[0].meta}
	c.describe(name, &typ, charset)
	return c, nil
}

// ValueKind is the kind of the column's values that are neither absent nor NULL; false where the type is unknown to this version of
// binlogd.
func (c *Column) ValueKind() (Kind, bool) {
	f, err := newField(c)
	if err != nil || f.complete(c) != nil {
		return KindNull, false
	}
	switch f.code {
	case codeInt8, codeInt16, codeInt24, codeInt32, codeInt64:
		return KindInt, true
	case codeUint8, codeUint16, codeUint24, codeUint32, codeUint64, codeBit, codeYear:
		return KindUint, true
	case codeFloat:
		return KindFloat, true
	case codeDouble:
		return KindDouble, true
	case codeDecimal:
		return KindDecimal, true
	case codeDate:
		return KindDate, true
	case codeTime2, codeTimeOld, codeTimeHires:
		return KindTime, true
	case codeDateTime2, codeDateTimeOld, codeDateTimeHires:
		return KindDateTime, true
	case codeTimestamp2, codeTimestampOld, codeTimestampHires:
		return KindInstant, true
	case codeEnum:
		return KindEnum, true
	case codeSet:
		return KindSet, true
	case codeBinary, codeBytes:
		return KindBinary, true
	case codeUTF8, codeText, codeUUID, codeInet4, codeInet6:
		return KindText, true
	case codeCompressed:
		if f.charset.form == formBinary {
			return KindBinary, true
		}
		return KindText, true
	case codeJSON:
		return KindJSON, true
	case codeGeometry:
		return KindGeometry, true
	case codeVector:
		return KindVector, true
	case codeNull:
		return KindNull, true
	}
	return KindNull, false
}
