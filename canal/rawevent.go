package canal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Sizes in bytes of the fixed parts of binlog events.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
const (
	headerSize         = 19
	checksumSize       = 4
	queryPostHeader    = 13
	rowsPostHeader     = 8 // table id and flags; version 2 adds the length of extra data
	executeLoadHeader  = 13
	xaPrepareMinLength = 13
)

// Event types that go-mysql does not name.
const (
	eventMariaDBQueryCompressed = replication.MARIADB_QUERY_COMPRESSED_EVENT
	eventMariaDBPartialRows     = replication.EventType(172) // fragments, 12.3 and later
)

const (
	flagArtificial = uint16(0x20)
	flagIgnorable  = uint16(0x80)

	rowsFlagStatementEnd = uint16(1)

	mariaFlagStandalone = 1
	mariaFlagPreparedXA = 64
)

// rawEvent is one event as the server sent it, checksum cut off.
type rawEvent []byte

func (e rawEvent) timestamp() uint32           { return binary.LittleEndian.Uint32(e) }
func (e rawEvent) kind() replication.EventType { return replication.EventType(e[4]) }
func (e rawEvent) serverID() uint32            { return binary.LittleEndian.Uint32(e[5:]) }
func (e rawEvent) size() uint32                { return binary.LittleEndian.Uint32(e[9:]) }
func (e rawEvent) logPos() uint32              { return binary.LittleEndian.Uint32(e[13:]) }
func (e rawEvent) flags() uint16               { return binary.LittleEndian.Uint16(e[17:]) }
func (e rawEvent) body() []byte                { return e[headerSize:] }

// inFile reports whether an event without a position stands in the binlog file, unlike those that the server makes up for a
// connection. MariaDB 11.4 and later write events without a position.
func (e rawEvent) inFile() bool {
	switch e.kind() { //nolint:exhaustive // all others are in the file
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2, replication.FORMAT_DESCRIPTION_EVENT, replication.ROTATE_EVENT:
		return false
	}
	return true
}

// endsStatement reports whether a rows event is the last of its statement: its table
// maps are then no longer in force.
func (e rawEvent) endsStatement() bool {
	b := e.body()
	return len(b) >= rowsPostHeader && binary.LittleEndian.Uint16(b[6:])&rowsFlagStatementEnd != 0
}

func (e rawEvent) isHeartbeat() bool {
	return e.kind() == replication.HEARTBEAT_EVENT || e.kind() == replication.HEARTBEAT_LOG_EVENT_V2
}

func isRowsEvent(t replication.EventType) bool {
	switch t { //nolint:exhaustive // the others are not rows events
	case replication.WRITE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv1,
		replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2,
		replication.PARTIAL_UPDATE_ROWS_EVENT,
		replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return true
	}
	return false
}

// query is the part of a QUERY_EVENT that the reader looks at.
type query struct {
	database []byte
	text     []byte
	// ansiQuotes: the statement ran with sql_mode=ANSI_QUOTES, so that "x" is a name.
	ansiQuotes bool
	session
}

// parseQuery reads a QUERY_EVENT: thread id 4, execution time 4, length of the database's name 1,
// error code 2, length of the status variables 2, status variables, name, zero byte, text.
func parseQuery(e rawEvent) (query, error) {
	b := e.body()
	if len(b) < queryPostHeader {
		return query{}, fmt.Errorf("query event of %d bytes is too short", len(e))
	}
	database := int(b[8])
	status := int(binary.LittleEndian.Uint16(b[11:]))
	rest := b[queryPostHeader:]
	if len(rest) < status+database+1 {
		return query{}, fmt.Errorf("query event of %d bytes is shorter than its parts", len(e))
	}
	q := query{
		database: rest[status : status+database],
		text:     rest[status+database+1:],
		session:  readSession(rest[:status]),
	}
	q.ansiQuotes = q.sqlMode&modeANSIQuotes != 0
	if e.kind() == eventMariaDBQueryCompressed {
		if len(q.text) < 1 || len(q.text) < 1+int(q.text[0]&7) {
			return query{}, errors.New("compressed query event is cut off")
		}
		text, err := mysql.DecompressMariadbData(q.text)
		if err != nil {
			return query{}, fmt.Errorf("decompress query event: %w", err)
		}
		q.text = text
	}
	return q, nil
}

// session is what a query event says of the session that ran it.
type session struct {
	sqlMode uint64
	// client and server are collation ids: of the statement's text, and of databases that are created without a
	// character set. Zero where the event does not say it.
	client, server uint16
	// updates are the databases in which the statement changes tables, its triggers and functions included; nil where the server does
	// not say it: MariaDB, and MySQL where there are more than sixteen.
	updates []string
}

const modeANSIQuotes = 1 << 2

// inUTF8 is the query with its text in UTF-8, from the character set of the client that sent it.
func (q query) inUTF8() query {
	cs := charsetByName(charsetOfCollation(uint64(q.client)))
	if cs == nil || cs.form == formUTF8 || cs.form == formBinary || isASCII(q.text) {
		return q
	}
	q.text, _ = cs.appendUTF8(nil, q.text)
	return q
}

// readSession reads a query event's status variables as far as they matter. They have no lengths of their own: reading ends at
// the first that is not known. https://dev.mysql.com/doc/dev/mysql-server/latest/classbinary__log_1_1Query__event.html
func readSession(status []byte) (s session) {
	const (
		flags2 = iota
		sqlMode
		catalog
		autoIncrement
		charset
		timeZone
		catalogNZ
		timeNames
		databaseCharset
		tableMapForUpdate
		sourceDataWritten
		invoker
		updatedDatabases
	)
	for len(status) > 0 {
		size := 0
		switch rest := status[1:]; status[0] {
		case flags2, autoIncrement, sourceDataWritten:
			size = 4
		case sqlMode, tableMapForUpdate:
			size = 8
		case charset:
			size = 6
		case timeNames, databaseCharset:
			size = 2
		case catalogNZ, timeZone:
			size = shortText(rest)
		case invoker:
			size = shortText(rest)
			if size <= len(rest) {
				size += shortText(rest[size:])
			}
		case updatedDatabases:
			s.updates = zeroEnded(rest)
			return s
		default:
			return s
		}
		if len(status) < 1+size {
			return s
		}
		switch value := status[1 : 1+size]; status[0] {
		case sqlMode:
			s.sqlMode = binary.LittleEndian.Uint64(value)
		case charset:
			s.client, s.server = binary.LittleEndian.Uint16(value), binary.LittleEndian.Uint16(value[4:])
		}
		status = status[1+size:]
	}
	return s
}

// shortText is the size of a text with its length in a byte before it.
func shortText(b []byte) int {
	if len(b) == 0 {
		return 1 // more than there is
	}
	return 1 + int(b[0])
}

// zeroEnded reads a count in a byte and as many texts that end with a zero byte; nil where there are too many to be listed.
func zeroEnded(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	const tooMany = 254
	count := int(b[0])
	if count == tooMany {
		return nil
	}
	texts := make([]string, 0, count)
	b = b[1:]
	for range count {
		text, rest, ended := bytes.Cut(b, []byte{0})
		if !ended {
			return nil
		}
		texts = append(texts, string(text))
		b = rest
	}
	return texts
}

// parseExecuteLoad reads the query of an EXECUTE_LOAD_QUERY_EVENT: a query event with 13 more bytes of
// post header.
func parseExecuteLoad(e rawEvent) (query, error) {
	b := e.body()
	if len(b) < queryPostHeader+executeLoadHeader {
		return query{}, fmt.Errorf("load query event of %d bytes is too short", len(e))
	}
	plain := make(rawEvent, 0, len(e)-executeLoadHeader)
	plain = append(plain, e[:headerSize+queryPostHeader]...)
	plain = append(plain, b[queryPostHeader+executeLoadHeader:]...)
	return parseQuery(plain)
}

// xaPrepare is an XA_PREPARE_LOG_EVENT.
type xaPrepare struct {
	onePhase bool // XA COMMIT … ONE PHASE: it commits
	xid      string
}

// parseXAPrepare reads an XA_PREPARE_LOG_EVENT: one phase 1, format id 4, length of gtrid 4, of bqual 4, both.
func parseXAPrepare(e rawEvent) (xaPrepare, error) {
	b := e.body()
	if len(b) < xaPrepareMinLength {
		return xaPrepare{}, fmt.Errorf("XA prepare event of %d bytes is too short", len(e))
	}
	format := int32(binary.LittleEndian.Uint32(b[1:]))
	gtrid := int64(binary.LittleEndian.Uint32(b[5:]))
	bqual := int64(binary.LittleEndian.Uint32(b[9:]))
	data := b[xaPrepareMinLength:]
	if int64(len(data)) < gtrid+bqual {
		return xaPrepare{}, fmt.Errorf("XA prepare event of %d bytes is shorter than its xid", len(e))
	}
	return xaPrepare{
		onePhase: b[0] != 0,
		xid:      fmt.Sprintf("X'%x',X'%x',%d", data[:gtrid], data[gtrid:gtrid+bqual], format),
	}, nil
}

// xidOf gives the xid of an XA statement as the server logs it (XA COMMIT X'6131',X”,1), in the form
// of Prepared.XID.
func xidOf(statement string) string {
	fields := strings.Fields(statement)
	if len(fields) < 3 {
		return ""
	}
	xid := strings.ToLower(fields[2])
	return strings.ReplaceAll(xid, "x'", "X'")
}

// parseRotate reads a ROTATE event: the offset in the next file, 8, and its name.
func parseRotate(e rawEvent) (file string, offset uint64, err error) {
	if len(e.body()) < 8 {
		return "", 0, fmt.Errorf("rotate event of %d bytes is too short", len(e))
	}
	return string(e.body()[8:]), binary.LittleEndian.Uint64(e.body()), nil
}
