package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-mysql-org/go-mysql/replication"
)

// scannedDDL is what was found looking ahead into the binlog: each statement that changes a tracked table, from a place to another.
type scannedDDL struct {
	from, to place
	start    *GTIDSet // at from; nil without GTIDs
	executed *GTIDSet // at to; nil without GTIDs
	found    []foundDDL
}

type foundDDL struct {
	at     place // behind the statement
	tables []tableName
	keyed  []tableName // whose keys alone it changes: rows of tables with a primary key are read as before
	all    string      // a database that was dropped
	what   string      // for messages
}

// check makes sure that a schema which was read ahead of the stream holds where it is in force: no statement between the two
// places changes the table. It looks ahead into the binlog where the stream has not been there yet. Decoders call it.
func (t *schemaTracker) check(ctx context.Context, table *trackedTable) error {
	r := table.reading
	if r == nil || r.passed.Load() {
		return nil
	}
	refuted := func() error {
		if r.passed.Load() {
			return nil
		}
		if why := table.refuted.Load(); why != nil {
			return table.unknownError(*why)
		}
		return errNotRefuted
	}
	if err := refuted(); !errors.Is(err, errNotRefuted) {
		return err
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := t.prove(ctx, table, refuted)
		if err != nil && (endsTheRun(err) || isSchemaError(err)) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(catalogPatience))
	if err != nil && !isSchemaError(err) {
		err = fmt.Errorf("look for statements that change table %s: %w", table.name, err)
	}
	return err
}

// prove looks ahead once. Between two attempts the source may go on with another server, where the next one looks.
func (t *schemaTracker) prove(ctx context.Context, table *trackedTable, refuted func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if table.proven.Load() {
		return nil
	}
	if err := refuted(); !errors.Is(err, errNotRefuted) {
		return err
	}
	if err := t.scan(ctx, table.reading); err != nil {
		return err
	}
	if why := t.scans.changes(table, t.empty().key); why != "" {
		table.refuted.CompareAndSwap(nil, &why)
		return table.unknownError(why)
	}
	table.proven.Store(true)
	return nil
}

func isSchemaError(err error) bool {
	var schema *SchemaError
	return errors.As(err, &schema)
}

var errNotRefuted = errors.New("not refuted")

// changes says which statement between the places of a reading changes a table, or nothing.
func (s *scannedDDL) changes(table *trackedTable, key func(tableName) tableName) string {
	name, r := table.name, table.reading
	from := place{r.from.File, r.from.Offset}
	for _, f := range s.found {
		if !from.before(f.at) {
			continue
		}
		same := func(n tableName) bool { return key(n) == key(name) }
		if slices.ContainsFunc(f.tables, same) || len(table.schema.PrimaryKey) == 0 && slices.ContainsFunc(f.keyed, same) || f.all != "" && key(tableName{f.all, ""}).database == key(name).database {
			return "the schema history does not reach back there, and " + f.what + " changed it before binlogd could look"
		}
	}
	return ""
}

// before reports whether p lies before o in the files of one server.
func (p place) before(o place) bool {
	order := compareFiles(p.file, o.file)
	return order < 0 || order == 0 && p.offset < o.offset
}

// scan looks for statements from the place of a reading to the reading itself. What was looked at before is not looked at again.
func (t *schemaTracker) scan(ctx context.Context, r *schemaReading) error {
	from, until := place{r.from.File, r.from.Offset}, place{r.until.File, r.until.Offset}
	s := &t.scans
	start := r.from
	known := s.to.file != "" && !from.before(s.from)
	if r.from.GTIDs != nil && r.until.GTIDs != nil { // the files may be those of another server
		known = known && s.start != nil && r.from.GTIDs.ContainsSet(s.start)
	}
	switch {
	case known && !s.to.before(until) && (s.executed == nil || s.executed.ContainsSet(r.until.GTIDs)):
		return nil
	case known && !s.to.before(from):
		start = Position{GTIDs: s.executed.Clone(), File: s.to.file, Offset: s.to.offset}
	default:
		*s = scannedDDL{from: from, start: r.from.GTIDs}
	}
	t.logger.Info("looking ahead for statements that change tables", "from", from.String(), "until", until.String())
	end, err := t.endToScan(ctx)
	if err != nil {
		return err
	}
	scanner := &ddlScanner{tracker: t, reading: r, at: place{start.File, start.Offset}}
	if start.GTIDs != nil {
		scanner.executed = start.GTIDs.Clone()
	}
	if r.until.GTIDs == nil || end.GTIDs != nil && end.GTIDs.ContainsSet(r.until.GTIDs) {
		scanner.end = place{end.File, end.Offset}
	}
	if err := scanner.run(ctx, start); err != nil {
		return err
	}
	s.to, s.executed = scanner.at, scanner.executed
	if s.to.before(until) {
		s.to = until // an idle server has nothing more
	}
	s.found = append(s.found, scanner.found...)
	return nil
}

// endToScan asks the server that is read now where its binlog ends. A reading lies before that, unless the server is a replica that
// has not come so far yet.
func (t *schemaTracker) endToScan(ctx context.Context) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*t.connect.timeout())
	defer cancel()
	b, err := OpenBinlogs(ctx, t.connect, nil) // the tracker's own connection is the reading goroutine's
	if err != nil {
		return Position{}, err
	}
	defer func() { _ = b.Close() }() // it only reads
	return b.End(ctx)
}

// ddlScanner reads statements, and nothing else, of a stretch of the binlog.
type ddlScanner struct {
	tracker *schemaTracker
	reading *schemaReading
	// end is where the server's binlog ended when the look ahead began; empty where the reading may lie behind it. Without it an idle
	// server would tell with its next heartbeat only that it has nothing more.
	end      place
	at       place
	executed *GTIDSet
	gtid     GTID
	begin    place
	found    []foundDDL
}

func (s *ddlScanner) run(ctx context.Context, from Position) error {
	serverID, err := chooseServerID(ctx, s.tracker.connect)
	if err != nil {
		return err
	}
	const heartbeat = time.Second // says soon where the server passed over the last transactions
	var read atomic.Uint64
	var heard atomic.Int64
	stream, err := openStream(ctx, streamOptions{
		connect: s.tracker.connect, flavor: s.tracker.parser.flavor, serverID: serverID, heartbeat: heartbeat,
		handle: s.event, read: &read, heard: &heard,
	}, from)
	if err != nil {
		return explainStream(err)
	}
	defer stream.close()
	stop := context.AfterFunc(ctx, stream.cut)
	defer stop()
	if err := stream.wait(ctx); !errors.Is(err, errScanned) {
		return explainStream(err)
	}
	return nil
}

func (s *ddlScanner) done(at place) bool {
	return s.reading.passedAt(at, s.executed, s.tracker.server)
}

func (s *ddlScanner) event(e rawEvent) error {
	s.at.advance(e)
	if err := s.look(e); err != nil {
		return err
	}
	if s.end.file != "" && !s.at.before(s.end) {
		return errScanned
	}
	return nil
}

// look takes one event.
func (s *ddlScanner) look(e rawEvent) error {
	switch e.kind() { //nolint:exhaustive // the others do not matter here
	case replication.ROTATE_EVENT:
		file, offset, err := parseRotate(e)
		if err != nil {
			return err
		}
		s.at.rotate(file, offset)
		return nil
	case replication.HEARTBEAT_EVENT:
		s.at.jump(e.logPos()) // over transactions that the connection did not ask for
		if s.done(s.at) {
			return errScanned
		}
		return nil
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
		b, err := parseBegin(e)
		if err != nil {
			return err
		}
		s.begin = place{s.at.file, s.at.startOf(e)}
		if s.done(s.begin) {
			return errScanned
		}
		s.gtid = b.gtid
		if s.executed != nil && !b.gtid.IsZero() {
			s.executed.Add(b.gtid)
		}
		return nil
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return s.payload(e)
	}
	return s.query(e)
}

// payload looks at the statements with which a compressed transaction begins: only CREATE TABLE … SELECT has one.
func (s *ddlScanner) payload(e rawEvent) error {
	errRows := errors.New("rows follow")
	err := eachPayloadEvent(e, func(inner rawEvent) error {
		if inner.kind() == replication.TABLE_MAP_EVENT {
			return errRows
		}
		return s.query(inner)
	})
	if errors.Is(err, errRows) {
		return nil
	}
	return err
}

// query notes a statement that changes tables.
func (s *ddlScanner) query(e rawEvent) error {
	if kind := e.kind(); kind != replication.QUERY_EVENT && kind != eventMariaDBQueryCompressed {
		return nil
	}
	q, err := parseQuery(e)
	if err != nil {
		return err
	}
	head := readDDL(q)
	if head.kind != ddlTables && head.kind != ddlDatabase {
		return nil
	}
	q = q.inUTF8()
	d := &draft{
		base: s.tracker.empty(), flavor: s.tracker.parser.flavor, database: string(q.database),
		concerns: func(tableName) bool { return true },
	}
	f := foundDDL{at: s.at, what: fmt.Sprintf("%q in transaction %s at %s", abbreviate(string(q.text)), identity(s.gtid, s.begin.file, s.begin.offset), s.begin)}
	statements, err := s.tracker.parser.parse(q)
	if err != nil {
		named := namesIn(q, func(tableName) bool { return true })
		if head.makesIndex() {
			f.keyed = named
		} else {
			f.tables = named
		}
	}
	for _, statement := range statements {
		if name := droppedDatabase(statement); name != "" {
			f.all = name
			continue
		}
		if !createsIfMissing(statement) { // a table that is read ahead is there, unless another statement drops it
			d.apply(statement)
		}
	}
	f.tables = append(f.tables, d.order...)
	f.keyed = append(f.keyed, d.keyed...)
	if len(f.tables) > 0 || len(f.keyed) > 0 || f.all != "" {
		s.found = append(s.found, f)
	}
	return nil
}
