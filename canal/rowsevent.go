package canal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

var (
	errRowsEventShort = errors.New("the rows event is cut off")
	errRowShort       = errors.New("the row is cut off")
	errRowEmpty       = errors.New("rows of no bytes cannot be counted")
)

// dummyTableID stands in a rows event without rows that only ends a statement.
const dummyTableID = 0xffffff

// image says which columns one of a rows event's row images carries.
type image struct {
	present []byte // a bit per column
	full    bool   // all columns
	nulls   int    // bytes of NULL bits before the values: a bit per column that is present
}

func newImage(present []byte, columns int) image {
	n := 0
	for i := range columns / 8 {
		n += bits.OnesCount8(present[i])
	}
	if rest := columns % 8; rest > 0 {
		n += bits.OnesCount8(present[columns/8] & (1<<rest - 1))
	}
	return image{present: present, full: n == columns, nulls: (n + 7) / 8}
}

// rowsEvent is a rows event with its table map; data holds the rows that are left.
type rowsEvent struct {
	table   *tableMap
	op      Op
	partial bool // PARTIAL_UPDATE_ROWS: After images may hold differences of JSON values
	first   image
	second  image // of an update: the After image
	data    []byte
}

// rowsEventTableID reads the table id that a rows event begins with.
func rowsEventTableID(e rawEvent) (uint64, error) {
	if len(e) < headerSize+rowsPostHeader {
		return 0, errRowsEventShort
	}
	return tableID(e.body()), nil
}

// parseRowsEvent reads a rows event's head: table id 6, flags 2, (version 2: length of the
// extra data with itself 2, extra data), column count, the first image's columns, an
// update's second image's columns. The rows follow, each with its NULL bits first.
// https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html
func (d *Decoder) parseRowsEvent(e rawEvent, table *tableMap) (rowsEvent, error) {
	r := rowsEvent{table: table}
	version2, compressed := false, false
	switch e.kind() {
	case replication.WRITE_ROWS_EVENTv2:
		r.op, version2 = Insert, true
	case replication.UPDATE_ROWS_EVENTv2:
		r.op, version2 = Update, true
	case replication.PARTIAL_UPDATE_ROWS_EVENT:
		r.op, version2, r.partial = Update, true, true
	case replication.DELETE_ROWS_EVENTv2:
		r.op, version2 = Delete, true
	case replication.WRITE_ROWS_EVENTv1:
		r.op = Insert
	case replication.UPDATE_ROWS_EVENTv1:
		r.op = Update
	case replication.DELETE_ROWS_EVENTv1:
		r.op = Delete
	case replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:
		r.op, compressed = Insert, true
	case replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1:
		r.op, compressed = Update, true
	case replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		r.op, compressed = Delete, true
	default:
		return r, fmt.Errorf("event type %d holds no rows", e.kind())
	}
	b := e.body()
	if len(b) < rowsPostHeader {
		return r, errRowsEventShort
	}
	b = b[rowsPostHeader:]
	if version2 {
		if len(b) < 2 {
			return r, errRowsEventShort
		}
		extra := int(binary.LittleEndian.Uint16(b))
		if extra < 2 || extra > len(b) {
			return r, errRowsEventShort
		}
		b = b[extra:]
	}
	count, n := lengthEncoded(b)
	if n == 0 {
		return r, errRowsEventShort
	}
	b = b[n:]
	if count != uint64(len(table.fields)) {
		return r, fmt.Errorf("rows have %d columns, their table map has %d", count, len(table.fields))
	}
	size := (len(table.fields) + 7) / 8
	if len(b) < size {
		return r, errRowsEventShort
	}
	r.first = newImage(b[:size], len(table.fields))
	b = b[size:]
	if r.op == Update {
		if len(b) < size {
			return r, errRowsEventShort
		}
		r.second = newImage(b[:size], len(table.fields))
		b = b[size:]
	}
	if compressed {
		var err error
		if d.inflated, err = d.inflate(d.inflated[:0], b); err != nil {
			return r, fmt.Errorf("decompress rows event: %w", err)
		}
		b = d.inflated
	}
	r.data = b
	return r, nil
}

// count walks over the rows that are left and returns their number.
func (r *rowsEvent) count() (uint64, error) {
	n := uint64(0)
	for len(r.data) > 0 {
		if err := r.skip(); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// skip walks over one row.
func (r *rowsEvent) skip() error {
	left := len(r.data)
	rest, err := skipImage(r.table, &r.first, r.data)
	if err != nil {
		return err
	}
	if r.op == Update {
		if r.partial {
			// Which values are differences does not matter: they have a length of the same form before them.
			if _, rest, err = readPartialBits(r.table, rest); err != nil {
				return err
			}
		}
		if rest, err = skipImage(r.table, &r.second, rest); err != nil {
			return err
		}
	}
	if len(rest) == left {
		return errRowEmpty
	}
	r.data = rest
	return nil
}

// skipImage walks over one row image and returns what follows it.
func skipImage(t *tableMap, im *image, b []byte) ([]byte, error) {
	if len(b) < im.nulls {
		return nil, errRowShort
	}
	nulls := b[:im.nulls]
	b = b[im.nulls:]
	if im.full && allZero(nulls) {
		for _, s := range t.strides {
			if len(b) < s.fixed+s.prefix {
				return nil, errRowShort
			}
			b = b[s.fixed:]
			if s.prefix > 0 {
				n := s.prefix + prefixedLength(b, s.prefix)
				if len(b) < n {
					return nil, errRowShort
				}
				b = b[n:]
			}
		}
		return b, nil
	}
	place := 0
	for i := range t.fields {
		if !bitSet(im.present, i) {
			continue
		}
		null := bitSet(nulls, place)
		place++
		if null {
			continue
		}
		f := &t.fields[i]
		n := f.size
		if f.prefix > 0 {
			if len(b) < int(f.prefix) {
				return nil, errRowShort
			}
			n = int(f.prefix) + prefixedLength(b, int(f.prefix))
		}
		if len(b) < n {
			return nil, errRowShort
		}
		b = b[n:]
	}
	return b, nil
}

// prefixedLength reads a little-endian length of 1 to 4 bytes; b is long enough.
func prefixedLength(b []byte, size int) int {
	switch size {
	case 1:
		return int(b[0])
	case 2:
		return int(binary.LittleEndian.Uint16(b))
	case 3:
		return int(binary.LittleEndian.Uint16(b)) | int(b[2])<<16
	default:
		return int(binary.LittleEndian.Uint32(b))
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// partialBits has a bit per JSON column of the table, present or not: set where the After
// image holds differences to the value before instead of a value. Empty: none does.
type partialBits []byte

// readPartialBits reads what stands before the After image in PARTIAL_UPDATE_ROWS: the
// value options and, if they say so, the partial bits.
func readPartialBits(t *tableMap, b []byte) (partialBits, []byte, error) {
	const partialJSON = 1
	options, n := lengthEncoded(b)
	if n == 0 {
		return nil, nil, errRowShort
	}
	b = b[n:]
	if options&partialJSON == 0 {
		return nil, b, nil
	}
	size := (t.jsonColumns + 7) / 8
	if len(b) < size {
		return nil, nil, errRowShort
	}
	return partialBits(b[:size]), b[size:], nil
}

func isJSON(c *Column) bool { return c.Type == mysql.MYSQL_TYPE_JSON }
