package canal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

// Sizes in bytes of MariaDB's own types as stored.
const (
	uuidSize  = 16
	inet4Size = 4
	inet6Size = 16
)

var errInflate = errors.New("compressed bytes are damaged")

// inflater decompresses, with its memory kept between calls.
type inflater struct {
	in   bytes.Reader
	zlib io.ReadCloser
	raw  io.ReadCloser
}

// inflate decompresses zlib (wrapped) or deflate data of the given size to the end of
// dst. The size is what the data itself says of it: memory grows only with what comes out.
func (f *inflater) inflate(dst, b []byte, size int, wrapped bool) ([]byte, error) {
	f.in.Reset(b)
	var r io.Reader
	var err error
	switch {
	case wrapped && f.zlib == nil:
		f.zlib, err = zlib.NewReader(&f.in)
		r = f.zlib
	case wrapped:
		err = f.zlib.(zlib.Resetter).Reset(&f.in, nil)
		r = f.zlib
	case f.raw == nil:
		f.raw = flate.NewReader(&f.in)
		r = f.raw
	default:
		err = f.raw.(flate.Resetter).Reset(&f.in, nil)
		r = f.raw
	}
	if err != nil {
		f.zlib = nil
		return dst, fmt.Errorf("%w: %w", errInflate, err)
	}
	if size > maxInnerEvent {
		return dst, fmt.Errorf("%w: they claim to be %d bytes", errInflate, size)
	}
	const growth = 64 << 10
	start := len(dst)
	for len(dst)-start < size {
		if len(dst) == cap(dst) {
			dst = append(dst, make([]byte, min(size-(len(dst)-start), max(growth, len(dst)-start)))...)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), start+size)])
		dst = dst[:len(dst)+n]
		if err != nil && len(dst)-start < size {
			return dst, fmt.Errorf("%w: %w", errInflate, err)
		}
	}
	return dst, nil
}

// inflate decompresses MariaDB's compressed events, binlog_compressed.cc: a byte with the algorithm
// in bits 4 to 6 (0: zlib) and in bits 0 to 2 the size of the length that follows it,
// big-endian, then the data.
func (d *Decoder) inflate(dst, b []byte) ([]byte, error) {
	if len(b) < 1 {
		return dst, errInflate
	}
	lengthSize := int(b[0] & 0x07)
	if algorithm := b[0] >> 4 & 0x07; algorithm != 0 {
		return dst, fmt.Errorf("compression algorithm %d is unknown", algorithm)
	}
	if lengthSize < 1 || lengthSize > 4 || len(b) < 1+lengthSize {
		return dst, errInflate
	}
	size := bigEndian(b[1 : 1+lengthSize])
	return d.inflater.inflate(dst, b[1+lengthSize:], int(size), true)
}

// readCompressed reads a value of a COMPRESSED column: a byte that is 0 before a value as
// it is, and otherwise holds in bits 4 to 7 the algorithm (8: zlib), in bit 3 that the data
// has no zlib header and checksum, and in bits 0 to 2 the size of the big-endian length before it.
// https://mariadb.com/kb/en/storage-engine-independent-column-compression/ (sql/field_comp.cc)
func (d *Decoder) readCompressed(v *Value, cs *charset, b []byte) error {
	const algorithmZlib, bareDeflate = 8, 0x08
	if len(b) == 0 {
		return d.readText(v, cs, b)
	}
	head := b[0]
	if head == 0 {
		return d.readText(v, cs, b[1:])
	}
	lengthSize := int(head & 0x07)
	if head>>4 != algorithmZlib {
		return fmt.Errorf("compression algorithm %d is unknown", head>>4)
	}
	if lengthSize < 1 || lengthSize > 4 || len(b) < 1+lengthSize {
		return errInflate
	}
	length := int(bigEndian(b[1 : 1+lengthSize]))
	start := len(d.text)
	var err error
	d.text, err = d.inflater.inflate(d.text, b[1+lengthSize:], length, head&bareDeflate == 0)
	if err != nil {
		return err
	}
	return d.readText(v, cs, d.text[start:len(d.text):len(d.text)])
}

// appendMariaDBUUID renders a UUID from MariaDB's storage format, in which the parts of those of
// version 1 to 5 stand in reverse order, so that they sort by time and node.
// (plugin/type_uuid/sql_type_uuid.h)
func appendMariaDBUUID(dst, b []byte) []byte {
	var stored, u [uuidSize]byte
	copy(stored[:], b)
	// In the reversed form the variant's bit pattern stands in byte 6, and the version in
	// byte 8.
	u = stored
	if isReversedUUID(&stored) {
		copy(u[0:4], stored[12:16])
		copy(u[4:6], stored[10:12])
		copy(u[6:8], stored[8:10])
		copy(u[8:10], stored[6:8])
		copy(u[10:16], stored[0:6])
	}
	return appendUUID(dst, u)
}

func isReversedUUID(stored *[uuidSize]byte) bool {
	variant, version := stored[6], stored[8]>>4
	return variant&0x80 != 0 && version > 0 && version < 6
}

func appendInet4(dst, b []byte) []byte {
	var a [inet4Size]byte
	copy(a[:], b)
	return netip.AddrFrom4(a).AppendTo(dst)
}

// appendInet6 renders an INET6 as MariaDB does: the longest run of zero groups, even of one, as
// "::", and an IPv4 address inside by its dots. (sql_type_inet.cc)
func appendInet6(dst, b []byte) []byte {
	const groups = inet6Size / 2
	var a [inet6Size]byte
	copy(a[:], b)
	group := func(i int) uint16 { return uint16(a[2*i])<<8 | uint16(a[2*i+1]) }
	gap, gapLength := -1, 0
	for i := 0; i < groups; i++ {
		n := 0
		for i+n < groups && group(i+n) == 0 {
			n++
		}
		if n > gapLength {
			gap, gapLength = i, n
		}
		i += n
	}
	for i := 0; i < groups; i++ {
		switch {
		case i == gap:
			if i == 0 {
				dst = append(dst, ':')
			}
			dst = append(dst, ':')
			i += gapLength - 1
		case i == 6 && gap == 0 && (gapLength == 6 || gapLength == 5 && group(5) == 0xffff):
			return appendInet4(dst, a[12:])
		default:
			dst = strconv.AppendUint(dst, uint64(group(i)), 16)
			if i != groups-1 {
				dst = append(dst, ':')
			}
		}
	}
	return dst
}
