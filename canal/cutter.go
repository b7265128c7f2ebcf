package canal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// cutter cuts the stream of raw events into transactions. It looks at headers, GTIDs and the text of statements;
// rows it leaves to the decoders. The reading goroutine alone uses it.
type cutter struct {
	flavor   Flavor
	server   [16]byte  // its UUID
	source   *Identity // who is being read
	captured func(database, table string) bool
	// pieceSize is the number of bytes of raw events above which a transaction travels in pieces.
	pieceSize func() int
	// emit hands a transaction or piece on. It may block.
	emit   func(*Transaction) error
	logger *slog.Logger
	// lookBack gives the XA transaction that was prepared last with an xid before a place where reading had not begun yet; nil where
	// the server does not have it any more. Nil where nobody needs its rows.
	lookBack func(xid string, before place) (*heldXA, error)
	// reach knows what a statement may change that it does not name; nil where nobody needs to know.
	reach *statementReach
	// schemas follows the statements that change tables; nil where nobody needs their schemas.
	schemas *schemaTracker

	place  place
	told   place     // the end of what was handed on last; empty where that was read from another server
	toldAt time.Time // when; zero before
	read   *GTIDSet  // every transaction read whole, held XA PREPAREs included; nil without GTIDs
	xa     *xaHold
	open   *openTransaction
	// started are transactions that were handed on in part, by an earlier connection or run, and how to go on
	// with them.
	started map[string]chan ordinals
	// published: transactions in it were published before; they are read again for an XA PREPARE's sake only.
	published *Position
	fresh     bool // no transaction of this connection was seen yet
}

// openTransaction is the transaction being read.
type openTransaction struct {
	piece *Transaction // what is not handed on yet
	begin begin
	// began: BEGIN or its like was seen, so that a COMMIT must follow.
	began  bool
	xa     bool // it ends with XA PREPARE
	replay bool // published before
	// held are its latest rows, where they wait until it is known whether they count; nil where they need not, or not yet.
	held    *heldRows
	settled bool // it is known that all of its rows count
	// size is that of the rows so far, as heldSize counts it, and pieceStart of those before piece.
	size, pieceStart int
	savepoints       []savepoint
	released         []GTID        // that count as executed with it
	tableMaps        [][]byte      // of the statement being read
	chain            chan ordinals // from the last piece handed on
	pieces           int
	schemas          *schemaSnapshot // that its rows were written with, where that is not the one in force now
}

// resumeInside tells the cutter that the rows up to a place inside a transaction were handed on by an earlier run.
func (c *cutter) resumeInside(p Inside) {
	in := make(chan ordinals, 1)
	in <- ordinals{place: p.Place}
	c.started[identity(p.GTID, p.File, p.Start)] = in
}

// reconnected prepares for a new connection: what was read of the unfinished transaction is dropped, and what was
// handed on of it is remembered, since the server begins it again.
func (c *cutter) reconnected() {
	if o := c.open; o != nil {
		switch id := identity(o.piece.GTID, o.piece.File, o.piece.Start); {
		case o.pieces > 0:
			c.started[id] = o.chain
		case o.piece.in != nil: // as far as the connection before handed it on
			c.started[id] = o.piece.in
		}
		c.place = place{file: o.piece.File, offset: o.piece.Start}
		c.drop()
	}
	if c.schemas != nil {
		c.schemas.discard()
	}
	c.fresh = true
}

// unfinished is the transaction that was handed on in part and has not come again yet; nil without one. Where it stands in it does not
// matter here.
func (c *cutter) unfinished() *Inside {
	for id := range c.started {
		if g, err := ParseGTID(c.flavor, id); err == nil && c.read != nil {
			return &Inside{GTID: g}
		}
	}
	return nil
}

// reads tells the cutter whose binlog comes from now on.
func (c *cutter) reads(server Identity) {
	c.server = [16]byte{}
	if id, err := parseUUID(server.UUID); err == nil {
		c.server = id
	}
	if c.source != nil && *c.source == server {
		return
	}
	if c.source == nil || !sameServer(*c.source, server) && c.read != nil {
		c.place, c.told = place{}, place{} // of the other server's files; the stream begins with its own
	}
	c.source = &server
}

// identity names a transaction across connections.
func identity(g GTID, file string, start uint64) string {
	if g.IsZero() {
		return fmt.Sprintf("%s:%d", file, start)
	}
	return g.String()
}

// event takes the next event of the stream.
func (c *cutter) event(e rawEvent) error {
	kind := e.kind()
	c.place.advance(e)
	switch kind { //nolint:exhaustive // logical takes every other type, and stops at unknown ones
	case replication.FORMAT_DESCRIPTION_EVENT, replication.ROTATE_EVENT, replication.STOP_EVENT:
		return c.fileBoundary(e)
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
		return c.idle()
	}
	return c.logical(e)
}

// idle is told that the server has nothing more at the moment, or in this file. Where the place is a file and an offset, it must not stay
// in a file that may be purged, while files begin and nothing is written.
func (c *cutter) idle() error {
	if c.read != nil || c.open != nil || c.place == c.told {
		return nil
	}
	c.told = c.place
	t := &Transaction{Server: c.server, File: c.place.file, Start: c.place.offset, Idle: true, Last: true, ReadFrom: c.source, EndFile: c.place.file, EndOffset: c.place.offset}
	if c.schemas != nil {
		t.SchemaVersion = c.schemas.version
	}
	c.xa.settle(t)
	return c.emit(t)
}

// logical takes an event that stands in the binlog itself or inside a compressed transaction.
func (c *cutter) logical(e rawEvent) error {
	switch kind := e.kind(); kind {
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
		b, err := parseBegin(e)
		if err != nil {
			return c.broken(err)
		}
		return c.beginTransaction(e, b)
	case replication.TABLE_MAP_EVENT:
		return c.tableMap(e)
	case replication.XID_EVENT:
		return c.commit()
	case replication.XA_PREPARE_LOG_EVENT:
		return c.xaPrepare(e)
	case replication.QUERY_EVENT, eventMariaDBQueryCompressed:
		q, err := parseQuery(e)
		if err != nil {
			return c.broken(err)
		}
		return c.statement(q)
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		q, err := parseExecuteLoad(e)
		if err != nil {
			return c.broken(err)
		}
		return c.statementChange(q)
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return c.compressed(e)
	case replication.INCIDENT_EVENT:
		return &SourceError{
			Err:    fmt.Errorf("the server reports at %s that changes may be missing from its binlog (incident event)", c.place),
			Remedy: "compare the captured tables with their consumers, then start after this place with a new checkpoint (source.start: latest and another checkpoint.path)",
		}
	case replication.PREVIOUS_GTIDS_EVENT, replication.INTVAR_EVENT, replication.RAND_EVENT, replication.USER_VAR_EVENT,
		replication.BEGIN_LOAD_QUERY_EVENT, replication.APPEND_BLOCK_EVENT, replication.DELETE_FILE_EVENT, replication.IGNORABLE_EVENT, replication.ROWS_QUERY_EVENT,
		replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT, replication.MARIADB_ANNOTATE_ROWS_EVENT,
		replication.MARIADB_BINLOG_CHECKPOINT_EVENT, replication.MARIADB_GTID_LIST_EVENT, replication.MARIADB_START_ENCRYPTION_EVENT:
		return nil
	default:
		if isRowsEvent(kind) {
			return c.rows(e)
		}
		if e.flags()&flagIgnorable != 0 {
			return nil
		}
		return &SourceError{
			Err:    fmt.Errorf("the binlog at %s has an event of type %d, which this release does not know", c.place, kind),
			Remedy: "update binlogd; if this is the newest release, report the server's version and this message",
		}
	}
}

// compressed takes the events inside a compressed transaction.
func (c *cutter) compressed(e rawEvent) error {
	var inner error
	if err := eachPayloadEvent(e, func(event rawEvent) error {
		inner = c.logical(event)
		return inner
	}); inner != nil {
		return inner
	} else if err != nil {
		return c.broken(err)
	}
	return nil
}

// broken is an event that does not have the form that its type asks for.
func (c *cutter) broken(err error) error {
	return &SourceError{
		Err:    fmt.Errorf("read the binlog at %s: %w", c.place, err),
		Remedy: "check the file with mysqlbinlog --verify-binlog-checksum; the checkpoint is kept",
	}
}

// fileBoundary takes the events between files. No transaction spans two files: one that is open here was cut off by a
// crash of the server, which rolled it back.
func (c *cutter) fileBoundary(e rawEvent) error {
	made := e.flags()&flagArtificial != 0 || e.logPos() == 0 // for this connection, not in the file
	if !made && c.open != nil {
		if err := c.cutOff(); err != nil {
			return err
		}
	}
	if e.kind() != replication.ROTATE_EVENT {
		return nil
	}
	name, offset, err := parseRotate(e)
	if err != nil {
		return c.broken(err)
	}
	c.place.rotate(name, offset)
	return c.idle()
}

// cutOff drops the open transaction, which the server rolled back when it came up again.
func (c *cutter) cutOff() error {
	o := c.open
	id := identity(o.piece.GTID, o.piece.File, o.piece.Start)
	if o.pieces > 0 {
		return &SourceError{
			Err: fmt.Errorf("transaction %s ends in its middle at %s: the server crashed while writing it and rolled it back, but %d pieces of it were already published",
				id, c.place, o.pieces),
			Remedy: "compare the tables it touched with their consumers, then go on with a new checkpoint (source.start: latest and another checkpoint.path)",
		}
	}
	c.logger.Warn("passing over a transaction that a crash of the server cut off: it was rolled back", "transaction", id, "at", c.place.String())
	c.drop()
	if c.schemas != nil {
		c.schemas.discard()
	}
	return nil
}

// drop forgets the open transaction.
func (c *cutter) drop() {
	if held := c.open.held; held != nil {
		held.close()
	}
	c.open = nil
	c.xa.discard()
}

func (c *cutter) beginTransaction(e rawEvent, b begin) error {
	start := c.place.startOf(e)
	if c.open != nil {
		return c.broken(fmt.Errorf("transaction %s begins inside transaction %s", identity(b.gtid, c.place.file, start),
			identity(c.open.piece.GTID, c.open.piece.File, c.open.piece.Start)))
	}
	o := &openTransaction{begin: b, piece: &Transaction{
		GTID: b.gtid, Server: c.server, File: c.place.file, Start: start, CommittedAt: b.committedAt,
	}}
	// MariaDB's GTID event is the BEGIN, unless one statement is all that follows.
	o.began = c.flavor == MariaDB && !b.standalone
	if b.preparesXA {
		o.xa, o.held = true, c.xa.begin()
	}
	if !b.gtid.IsZero() && c.read != nil {
		o.piece.Number = c.number(b.gtid)
	}
	o.replay = c.wasPublished(o.piece)
	id := identity(b.gtid, c.place.file, start)
	if in, ok := c.started[id]; ok {
		delete(c.started, id)
		o.piece.in, o.piece.afresh = in, true
	} else if c.fresh && len(c.started) > 0 && c.read == nil {
		return &SourceError{
			Err:    fmt.Errorf("the server no longer has the transaction that was being read: at its place begins %s", id),
			Remedy: "it lost its last transactions in a crash, or another server answers: compare the captured tables with their consumers, then go on with a new checkpoint (source.start: latest and another checkpoint.path)",
		}
	}
	c.fresh = false
	c.open = o
	if c.schemas != nil {
		c.schemas.begins(place{c.place.file, start}, c.read)
	}
	return nil
}

// number is the place of a transaction in the order of all: on MySQL the size of the executed set with it.
func (c *cutter) number(g GTID) uint64 {
	if c.flavor == MariaDB {
		return g.Number
	}
	n := c.read.Count() + uint64(c.xa.unread())
	if c.read.Contains(g) || c.xa.isUnread(g) {
		return n
	}
	return n + 1
}

func (c *cutter) wasPublished(t *Transaction) bool {
	switch p := c.published; {
	case p == nil:
		return false
	case !t.GTID.IsZero() && p.GTIDs != nil:
		return p.GTIDs.Contains(t.GTID)
	default:
		return compareFiles(t.File, p.File) < 0 || t.File == p.File && t.Start < p.Offset
	}
}

func (c *cutter) tableMap(e rawEvent) error {
	if c.open == nil {
		return c.broken(errors.New("rows outside a transaction"))
	}
	c.open.tableMaps = append(c.open.tableMaps, e)
	c.open.piece.schemas = c.open.schemas
	if c.schemas != nil && c.open.schemas == nil {
		c.open.piece.schemas = c.schemas.snapshot()
	}
	return c.append(e)
}

func (c *cutter) rows(e rawEvent) error {
	if c.open == nil {
		return c.broken(errors.New("rows outside a transaction"))
	}
	o := c.open
	if err := c.append(e); err != nil {
		return err
	}
	if e.endsStatement() {
		o.tableMaps = nil
	}
	switch {
	case o.piece.Bytes < c.pieceSize() || o.held != nil:
		return nil
	case c.mayRollBack():
		return c.hold()
	}
	return c.handOnPiece()
}

// append adds an event with rows to what is read of the open transaction.
func (c *cutter) append(e rawEvent) error {
	o := c.open
	switch {
	case o.replay && !o.xa: // the rows of an XA transaction may be committed later
		return nil
	case o.held != nil:
		o.size += heldSize(e)
		return o.held.append(e)
	}
	o.size += heldSize(e)
	o.piece.events = append(o.piece.events, e)
	o.piece.Bytes += len(e)
	return nil
}

// handOnPiece hands on what was read so far of a large transaction.
func (c *cutter) handOnPiece() error {
	o := c.open
	piece := o.piece
	piece.out = make(chan ordinals, 1)
	o.chain = piece.out
	o.pieces++
	o.pieceStart = o.size
	o.piece = &Transaction{
		GTID: piece.GTID, Server: piece.Server, File: piece.File, Start: piece.Start, CommittedAt: piece.CommittedAt,
		Number: piece.Number, Piece: piece.Piece + 1, tableMaps: o.tableMaps, in: piece.out, schemas: piece.schemas,
	}
	return c.emit(piece)
}

// commit ends the open transaction: all of it was read.
func (c *cutter) commit() error {
	o := c.open
	if o == nil {
		return c.broken(errors.New("a commit outside a transaction"))
	}
	if o.xa {
		return c.broken(errors.New("an XA transaction ends without XA PREPARE"))
	}
	return c.finish()
}

// finish hands on the last piece of the open transaction and notes it as read.
func (c *cutter) finish() error {
	if err := c.releaseHeld(); err != nil {
		return err
	}
	o := c.open
	t := o.piece
	t.Last, t.ReadFrom = true, c.source
	t.Executed = o.released
	if !t.GTID.IsZero() && c.read != nil {
		c.read.Add(t.GTID)
	}
	t.EndFile, t.EndOffset = c.place.file, c.place.offset
	c.told, c.toldAt = c.place, time.Now()
	if c.schemas != nil {
		if err := c.schemas.commit(identity(t.GTID, t.File, t.Start)); err != nil {
			return err
		}
		t.SchemaVersion = c.schemas.version
	}
	c.xa.settle(t)
	c.open = nil
	return c.emit(t)
}
