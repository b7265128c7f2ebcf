package canal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxInnerEvent bounds one event inside a compressed transaction: the servers' own limit for an event.
const maxInnerEvent = 1 << 30

// eachPayloadEvent calls f for every event inside a TRANSACTION_PAYLOAD_EVENT, one at a time: a payload
// of any size needs the memory of its largest event and of the zstd window.
// The body is a list of fields (type, length, value, each as a length-encoded integer), an end mark (0) and
// the compressed events, which carry no checksums.
// https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Transaction__payload__event.html
func eachPayloadEvent(e rawEvent, f func(rawEvent) error) error {
	const (
		fieldEnd         = 0
		fieldCompression = 2
		compressionZSTD  = 0
		compressionNone  = 255
	)
	b := e.body()
	compression := uint64(compressionNone)
	for {
		kind, n := lengthEncoded(b)
		if n == 0 {
			return errors.New("compressed transaction: the header is cut off")
		}
		b = b[n:]
		if kind == fieldEnd {
			break
		}
		size, n := lengthEncoded(b)
		if n == 0 || size > uint64(len(b)-n) {
			return errors.New("compressed transaction: a header field is cut off")
		}
		b = b[n:]
		if kind == fieldCompression {
			value, n := lengthEncoded(b[:size])
			if n == 0 {
				return errors.New("compressed transaction: the compression type is cut off")
			}
			compression = value
		}
		b = b[size:]
	}
	var r io.Reader = bytes.NewReader(b)
	switch compression {
	case compressionNone:
	case compressionZSTD:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return fmt.Errorf("open compressed transaction: %w", err)
		}
		defer z.Close()
		r = z
	default:
		return fmt.Errorf("compressed transaction: compression type %d is unknown", compression)
	}
	for {
		var header [headerSize]byte
		if _, err := io.ReadFull(r, header[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decompress transaction: %w", err)
		}
		size := rawEvent(header[:]).size()
		if size < headerSize || size > maxInnerEvent {
			return fmt.Errorf("compressed transaction: event of %d bytes", size)
		}
		inner, err := readEvent(r, header, int(size))
		if err != nil {
			return err
		}
		if err := f(inner); err != nil {
			return err
		}
	}
}

// readEvent reads the rest of an event. It allocates at once only what is common, so that a false size costs
// no more than the bytes that really follow.
func readEvent(r io.Reader, header [headerSize]byte, size int) (rawEvent, error) {
	const atOnce = 1 << 20
	if size <= atOnce {
		event := make(rawEvent, size)
		copy(event, header[:])
		if _, err := io.ReadFull(r, event[headerSize:]); err != nil {
			return nil, fmt.Errorf("decompress transaction: %w", err)
		}
		return event, nil
	}
	buf := bytes.NewBuffer(make([]byte, 0, atOnce))
	buf.Write(header[:])
	if n, err := io.CopyN(buf, r, int64(size-headerSize)); err != nil {
		return nil, fmt.Errorf("decompress transaction after %d of %d bytes: %w", n, size, err)
	}
	return buf.Bytes(), nil
}

// lengthEncoded reads a length-encoded integer and gives the bytes it took, 0 where b is too short.
func lengthEncoded(b []byte) (value uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch first := b[0]; {
	case first < 251:
		return uint64(first), 1
	case first == 252 && len(b) >= 3:
		return uint64(binary.LittleEndian.Uint16(b[1:])), 3
	case first == 253 && len(b) >= 4:
		return uint64(binary.LittleEndian.Uint16(b[1:])) | uint64(b[3])<<16, 4
	case first == 254 && len(b) >= 9:
		return binary.LittleEndian.Uint64(b[1:]), 9
	}
	return 0, 0
}
