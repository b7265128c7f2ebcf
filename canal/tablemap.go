package canal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Types that go-mysql does not name.
const (
	typeMariaDBBlobCompressed    = 140
	typeMariaDBVarcharCompressed = 141
)

// Sizes in bytes of the fixed parts of a TABLE_MAP event's body.
const (
	tableIDSize        = 6
	tableMapPostHeader = tableIDSize + 2 // and flags
)

var errTableMapShort = errors.New("table map is cut off")

// tableMap is one TABLE_MAP event: which table a table id stands for, and how its rows
// are laid out. It is read once per distinct event and never changed afterwards.
type tableMap struct {
	id       uint64
	database string
	name     string
	key      string // "database.table": numbers the table's rows
	captured bool

	fields      []field
	strides     []stride // of a full row image without NULLs
	rowEnd      int      // of a system-versioned table: the column, from 1, with the end of a row's time; 0: none
	jsonColumns int      // bits in the partial bits of PARTIAL_UPDATE_ROWS

	// unreadable says why rows cannot be walked over, if they cannot. It matters only
	// where they stand in one transaction with rows of captured tables.
	unreadable error
	// tracked is the schema that completed it; nil where the event itself, or today's schema, was enough.
	tracked *trackedTable
	// table is what rows of a captured table are given with; nil for others.
	table *Table
}

// tableMapNames reads database and table of a TABLE_MAP event's body and returns what
// follows them.
//
//	table id 6, flags 2, length 1, database, 0, length 1, table, 0, …
//
// https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
func tableMapNames(body []byte) (id uint64, database, name, rest []byte, err error) {
	if len(body) < tableMapPostHeader {
		return 0, nil, nil, nil, errTableMapShort
	}
	id = tableID(body)
	rest = body[tableMapPostHeader:]
	for _, part := range []*[]byte{&database, &name} {
		if len(rest) < 1 || len(rest) < int(rest[0])+2 {
			return 0, nil, nil, nil, errTableMapShort
		}
		n := int(rest[0])
		*part = rest[1 : 1+n]
		rest = rest[n+2:]
	}
	return id, database, name, rest, nil
}

func tableID(body []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(body)) | uint64(binary.LittleEndian.Uint16(body[4:]))<<32
}

// tableMapColumns reads the columns of a TABLE_MAP event from what follows the names, and
// returns the optional metadata, which the server may or may not have sent.
//
//	column count, a type byte each, length of the metadata, metadata, NULL bits, optional metadata
func tableMapColumns(b []byte) (columns []Column, optional []byte, err error) {
	count, n := lengthEncoded(b)
	if n == 0 || count > uint64(len(b)-n) {
		return nil, nil, errTableMapShort
	}
	types := b[n : n+int(count)]
	b = b[n+int(count):]
	size, n := lengthEncoded(b)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, nil, errTableMapShort
	}
	meta := b[n : n+int(size)]
	b = b[n+int(size):]
	nulls := (len(types) + 7) / 8
	if len(b) < nulls {
		return nil, nil, errTableMapShort
	}

	columns = make([]Column, len(types))
	for i, t := range types {
		columns[i].Nullable = bitSet(b, i)
		if meta, err = columns[i].readMeta(t, meta); err != nil {
			return nil, nil, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return columns, b[nulls:], nil
}

// readMeta sets the column's type and metadata from the start of meta and returns what
// follows. A fixed-length string's metadata hides the real type (ENUM, SET or STRING)
// and up to ten bits of length.
func (c *Column) readMeta(t byte, meta []byte) ([]byte, error) {
	c.Type = t
	need := 0
	switch t {
	case mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE,
		mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB,
		mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_VECTOR,
		mysql.MYSQL_TYPE_TIME2, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIMESTAMP2,
		typeMariaDBBlobCompressed:
		need = 1
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET, mysql.MYSQL_TYPE_NEWDECIMAL,
		mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_BIT,
		typeMariaDBVarcharCompressed:
		need = 2
	}
	if len(meta) < need {
		return nil, errors.New("its metadata is cut off")
	}
	switch t {
	case mysql.MYSQL_TYPE_STRING:
		first, second := meta[0], meta[1]
		switch {
		case first == 0:
			c.Meta = uint16(second)
		case first&0x30 != 0x30:
			c.Type = first | 0x30
			c.Meta = uint16(second) | uint16(first&0x30^0x30)<<4
		default:
			c.Type = first
			c.Meta = uint16(second)
		}
	case mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET:
		c.Meta = uint16(meta[0])<<8 | uint16(meta[1])
	default:
		switch need {
		case 1:
			c.Meta = uint16(meta[0])
		case 2:
			c.Meta = binary.LittleEndian.Uint16(meta)
		}
	}
	return meta[need:], nil
}

// bitSet reports whether bit i of a little-endian bitmap is set.
func bitSet(bitmap []byte, i int) bool { return bitmap[i>>3]&(1<<(i&7)) != 0 }
