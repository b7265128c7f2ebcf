package canal

import (
	"encoding/binary"
	"errors"
)

// errFieldCode is a mistake of newField's, never of the server's.
var errFieldCode = errors.New("a value's size does not go with how it is read")

// readValue reads the value at the start of b into v and returns the number of bytes that
// it takes, its length before it included. v's bytes are b's own where they need no
// change, otherwise they are in d.text.
func (d *Decoder) readValue(v *Value, f *field, b []byte) (int, error) {
	if f.prefix != 0 {
		size := int(f.prefix)
		if len(b) < size {
			return 0, errRowShort
		}
		n := prefixedLength(b, size)
		if len(b)-size < n {
			return 0, errRowShort
		}
		return size + n, d.readBytes(v, f, b[size:size+n:size+n])
	}
	if len(b) < f.size {
		return 0, errRowShort
	}
	start := len(d.text)
	kind := KindNull
	switch f.code {
	case codeInt8:
		*v = NewInt(int64(int8(b[0])))
		return 1, nil
	case codeUint8:
		*v = NewUint(uint64(b[0]))
		return 1, nil
	case codeInt16:
		*v = NewInt(int64(int16(binary.LittleEndian.Uint16(b))))
		return 2, nil
	case codeUint16:
		*v = NewUint(uint64(binary.LittleEndian.Uint16(b)))
		return 2, nil
	case codeInt24:
		*v = NewInt(int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8))
		return 3, nil
	case codeUint24:
		*v = NewUint(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16)
		return 3, nil
	case codeInt32:
		*v = NewInt(int64(int32(binary.LittleEndian.Uint32(b))))
		return 4, nil
	case codeUint32:
		*v = NewUint(uint64(binary.LittleEndian.Uint32(b)))
		return 4, nil
	case codeInt64:
		*v = NewInt(int64(binary.LittleEndian.Uint64(b)))
		return 8, nil
	case codeUint64:
		*v = NewUint(binary.LittleEndian.Uint64(b))
		return 8, nil
	case codeFloat:
		*v = Value{Kind: KindFloat, num: uint64(binary.LittleEndian.Uint32(b))}
		return 4, nil
	case codeDouble:
		*v = Value{Kind: KindDouble, num: binary.LittleEndian.Uint64(b)}
		return 8, nil
	case codeBit:
		*v = NewUint(bigEndian(b[:f.size]))
		return f.size, nil
	case codeYear:
		year := uint64(b[0])
		if year != 0 {
			year += 1900
		}
		*v = NewUint(year)
		return 1, nil
	case codeNull:
		*v = Value{Kind: KindNull}
		return 0, nil
	case codeEnum:
		return f.size, d.readEnum(v, f, b[:f.size])
	case codeSet:
		return f.size, d.readSet(v, f, b[:f.size])
	case codeDecimal:
		var err error
		if d.text, err = appendDecimal(d.text, b[:f.size], int(f.precision), int(f.digits)); err != nil {
			return 0, err
		}
		kind = KindDecimal
	case codeDate:
		d.text, kind = appendDate(d.text, b), KindDate
	case codeTime2:
		d.text, kind = appendTime2(d.text, b[:f.size], int(f.digits)), KindTime
	case codeDateTime2:
		d.text, kind = appendDateTime2(d.text, b[:f.size], int(f.digits)), KindDateTime
	case codeTimestamp2:
		d.text, kind = appendTimestamp2(d.text, b[:f.size], int(f.digits)), KindInstant
	case codeTimeOld:
		d.text, kind = appendTimeOld(d.text, b), KindTime
	case codeDateTimeOld:
		var err error
		if d.text, err = appendDateTimeOld(d.text, b); err != nil {
			return 0, err
		}
		kind = KindDateTime
	case codeTimestampOld:
		d.text, kind = appendTimestampOld(d.text, b), KindInstant
	case codeTimeHires:
		d.text, kind = appendTimeHires(d.text, b[:f.size], int(f.digits)), KindTime
	case codeDateTimeHires:
		d.text, kind = appendDateTimeHires(d.text, b[:f.size], int(f.digits)), KindDateTime
	case codeTimestampHires:
		d.text, kind = appendTimestampHires(d.text, b[:f.size], int(f.digits)), KindInstant
	default:
		return 0, errFieldCode
	}
	*v = Value{Kind: kind, Bytes: d.text[start:len(d.text):len(d.text)]}
	return f.size, nil
}

// readBytes reads a value that has its length before it; b is the value.
func (d *Decoder) readBytes(v *Value, f *field, b []byte) error {
	start := len(d.text)
	kind := KindNull
	var err error
	switch f.code {
	case codeUTF8:
		return d.readUTF8(v, b)
	case codeText:
		return d.readText(v, f.charset, b)
	case codeBytes:
		*v = Value{Kind: KindBinary, Bytes: b}
		return nil
	case codeBinary:
		*v = Value{Kind: KindBinary, Bytes: d.padded(b, f.size)}
		return nil
	case codeCompressed:
		return d.readCompressed(v, f.charset, b)
	case codeUUID:
		d.text, kind = appendMariaDBUUID(d.text, b), KindText
	case codeInet4:
		d.text, kind = appendInet4(d.text, b), KindText
	case codeInet6:
		d.text, kind = appendInet6(d.text, b), KindText
	case codeJSON:
		d.text, err = appendJSON(d.text, b)
		kind = KindJSON
	case codeGeometry:
		d.text, err = appendGeoJSON(d.text, b)
		kind = KindGeometry
	case codeVector:
		d.text, err = appendVector(d.text, b)
		kind = KindVector
	default:
		return errFieldCode
	}
	if err != nil {
		return err
	}
	*v = Value{Kind: kind, Bytes: d.text[start:len(d.text):len(d.text)]}
	return nil
}
