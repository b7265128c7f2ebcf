package canal

import "time"

// Transaction is one committed transaction, or one piece of a large one, with its
// rows still as the server sent them. A Decoder reads them.
type Transaction struct {
	GTID GTID
	// Server is the UUID of the server that numbered File and Start; identity
	// where GTID is zero.
	Server [16]byte
	// File and Start are where the transaction begins in the binlog that was read.
	File  string
	Start uint64
	// ReadFrom is whose binlog it was read from: File, Start and the places below are
	// of its files. Set on the last piece.
	ReadFrom *Identity
	// CommittedAt has microseconds on MySQL, seconds on MariaDB. It is the same on
	// every replica.
	CommittedAt time.Time
	// Number grows with commit order: the size of the executed set up to and
	// including this transaction; on MariaDB the domain's sequence number. Zero
	// without GTIDs: then File and Start stand in.
	Number uint64
	// Piece counts from 0; Last is set on the only or last piece.
	Piece int
	Last  bool
	// Idle: it is no transaction, but the place where the server had nothing more.
	Idle bool
	// Executed are the GTIDs that count as done once this transaction is durable:
	// none for an XA PREPARE, both for its XA COMMIT. Set on the last piece.
	Executed []GTID
	// Held are the unresolved XA PREPAREs after this transaction, oldest first.
	Held []Prepared
	// ResumeFile and ResumeOffset are where reading could go on once it is durable:
	// its end, or the start of the oldest unresolved XA PREPARE.
	ResumeFile   string
	ResumeOffset uint64
	// EndFile and EndOffset are its end.
	EndFile   string
	EndOffset uint64
	// Bytes is the size of its raw events.
	Bytes int
	// SchemaVersion is the newest entry of the schema history that what follows needs. Set on the last piece.
	SchemaVersion uint64

	// events are the table maps and rows events in order, header included, checksum
	// cut off.
	events [][]byte
	// tableMaps are those still in force from earlier pieces.
	tableMaps [][]byte
	// schemas are those that its rows were written with.
	schemas *schemaSnapshot
	// truncated are the captured tables that it empties by TRUNCATE.
	truncated []tableName
	// in and out hand the numbering from piece to piece; in is nil on the first
	// piece, out on the last. Both have room for the one value.
	in, out chan ordinals
	// afresh: the transaction is read again from its beginning. What comes through in is how far it was handed on
	// before: numbering begins anew, and rows up to that place are not given again.
	afresh bool
}

// Inside is a place inside a transaction that was handed on in part.
type Inside struct {
	GTID  GTID   // zero without GTIDs
	File  string // where the transaction begins
	Start uint64
	Place uint64 // row changes up to and including this one were handed on
}

// Prepared is an XA transaction between PREPARE and COMMIT or ROLLBACK.
type Prepared struct {
	XID    string // as XA RECOVER's data in the statement form: X'..',X'..',1
	GTID   GTID
	File   string
	Offset uint64 // where the transaction that prepares it begins
}

// ordinals number the rows of a transaction that travels in pieces.
type ordinals struct {
	place  uint64            // changes so far, of all tables
	tables map[string]uint64 // changes so far by "database.table"
	// skip: rows up to and including this place were handed on before, by an
	// earlier connection or an earlier run, and are not to be given again.
	skip uint64
}

// Segment is what one worker takes at a time: whole small transactions, or one
// piece of a large one, in commit order.
type Segment struct {
	Transactions []*Transaction
	Bytes        int // of raw events

	budget   *budget
	reserved int64
}

// Resize tells how many bytes the segment holds now, that its rows have become events.
func (s *Segment) Resize(bytes int64) {
	s.budget.learn(s.Bytes, bytes)
	s.budget.adjust(bytes - s.reserved)
	s.reserved = bytes
}

// Release gives the segment's bytes back: nothing of it is held any more.
func (s *Segment) Release() { s.Resize(0) }
