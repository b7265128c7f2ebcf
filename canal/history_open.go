package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// schemaOptions configure a schemaTracker.
type schemaOptions struct {
	connect  ConnectOptions
	captured func(database, table string) bool
	history  SchemaHistory
	from     Resume
	server   Identity
	logger   *slog.Logger
}

// openSchemas finds the schemas that are in force where reading begins: from the history, and for tables that it does not have,
// from the server. run bounds what the tracker does later.
func openSchemas(ctx, run context.Context, o schemaOptions) (*schemaTracker, error) {
	t := &schemaTracker{
		ctx: run, connect: o.connect, captured: o.captured, history: o.history, logger: o.logger,
		parser: ddlParser{flavor: o.server.Flavor}, server: o.server,
		version:   o.from.SchemaVersion, // also where the history was moved away: versions never come twice
		databases: make(map[string]bool), pool: schemaPool{}, ahead: make(map[string][]SchemaEntry),
	}
	if t.captured == nil {
		t.captured = func(string, string) bool { return false }
	}
	captured := t.captured
	if t.history == nil {
		t.history = forgetful{}
	}
	t.start = o.from.Position
	t.start.GTIDs = t.start.GTIDs.Clone()
	if t.start.GTIDs != nil && o.from.Server.Version != "" && !sameServer(o.from.Server, o.server) {
		t.start.File, t.start.Offset = "", 0 // of another server's files
	}
	entries, err := t.history.Load(ctx, o.from.SchemaVersion)
	if err != nil {
		return nil, &historyError{fmt.Errorf("read the schema history: %w", err)}
	}
	conn, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	r, err := ask(ctx, conn, "SELECT @@GLOBAL.lower_case_table_names")
	if err != nil {
		t.closeConn()
		return nil, err
	}
	t.fold, t.lower = r.rows[0][0] != "0", r.rows[0][0] == "1"
	if t.lower { // statements write names as they like
		t.captured = func(database, name string) bool { return captured(strings.ToLower(database), strings.ToLower(name)) }
	}
	t.now = &schemaSnapshot{prove: t, fold: t.fold, lower: t.lower}
	t.restore(entries)
	if err := t.readMissing(ctx, conn); err != nil {
		t.closeConn()
		return nil, err
	}
	return t, nil
}

// restore puts the entries of the history in force whose place is before the one where reading begins, and keeps the others
// for when their statements come.
func (t *schemaTracker) restore(entries []SchemaEntry) {
	var tables []*trackedTable
	charsets := make(map[string]string)
	last := make(map[tableName]*trackedTable)
	for i := range entries {
		t.version = max(t.version, entries[i].Version)
	}
	for _, e := range Settle(entries) {
		name := tableName{e.Database, e.Table}
		switch {
		case !e.Within(t.start):
			if place := e.place(); place != "" {
				t.ahead[place] = append(t.ahead[place], e)
			}
		case e.Table == "":
			charsets[e.Database] = e.Charset
		default:
			tracked := e.tracked(t.readingOf, t.pool)
			last[t.now.key(name)] = tracked
		}
	}
	for _, tracked := range last {
		tables = append(tables, tracked)
		if tracked.schema != nil || tracked.doubt != "" {
			t.databases[t.now.key(tracked.name).database] = true
		}
	}
	t.now = t.now.with(tables, charsets)
}

// readingOf gives the reading that an entry of the history depends on; nil where it is passed.
func (t *schemaTracker) readingOf(e *SchemaEntry) *schemaReading {
	r := &schemaReading{from: t.start, until: *e.Until, server: t.server}
	if e.Until.GTIDs != nil && t.start.GTIDs != nil {
		r.server = Identity{} // the files may be those of another server
	}
	if r.passedAt(place{t.start.File, t.start.Offset}, t.start.GTIDs, t.server) {
		return nil
	}
	for _, known := range t.readings {
		if known.from.File == r.from.File && known.until.File == r.until.File && known.until.Offset == r.until.Offset {
			return known
		}
	}
	t.readings = append(t.readings, r)
	return r
}

// readMissing reads the captured tables that the history has nothing of, and the others in their databases: they may be renamed into
// captured ones. What the server shows is how they look where it stands now; from where reading begins until there, that is to be
// proven when rows need it.
func (t *schemaTracker) readMissing(ctx context.Context, conn *client.Conn) error {
	known := make(map[tableName]bool)
	for _, entries := range t.ahead {
		for i := range entries {
			known[t.now.key(tableName{entries[i].Database, entries[i].Table})] = true
		}
	}
	names, err := listTables(ctx, conn)
	if err != nil {
		return err
	}
	var databases []string
	wanted := make(map[string]bool)
	for _, n := range names {
		if wanted[n.database] || !t.captured(n.database, n.name) {
			continue
		}
		t.databases[t.now.key(n).database] = true
		if t.now.find(n) == nil && !known[t.now.key(n)] {
			wanted[n.database] = true
			databases = append(databases, n.database)
		}
	}
	charsets, err := readDatabases(ctx, conn)
	if err != nil {
		return err
	}
	schemas, err := readSchemas(ctx, conn, databases, t.pool)
	if err != nil {
		return err
	}
	end, err := t.serverEnd(ctx, conn)
	if err != nil {
		return err
	}
	start := t.start
	var reading *schemaReading
	if here := (&schemaReading{until: end, server: t.server}); !here.passedAt(place{start.File, start.Offset}, start.GTIDs, t.server) {
		reading = &schemaReading{from: start, until: end, server: t.server}
	}
	return t.adopt(schemas, charsets, known, reading)
}

// adopt takes what was read at the start.
func (t *schemaTracker) adopt(schemas map[tableName]*Schema, charsets map[string]string, known map[tableName]bool, reading *schemaReading) error {
	var tables []*trackedTable
	var entries []SchemaEntry
	entry := func(e SchemaEntry) uint64 {
		e.Version = t.version + uint64(len(entries)) + 1
		e.Origin, e.Start = SchemaFromStart, &t.start
		if reading != nil {
			e.Until = &reading.until
		}
		entries = append(entries, e)
		return e.Version
	}
	for database, charset := range charsets {
		if _, have := t.now.charsets[database]; have {
			delete(charsets, database)
		} else if t.databases[t.now.key(tableName{database, ""}).database] {
			entry(SchemaEntry{Database: database, Charset: charset})
		}
	}
	for name, schema := range schemas {
		if t.now.find(name) != nil || known[t.now.key(name)] {
			continue
		}
		version := entry(SchemaEntry{Database: name.database, Table: name.name, Schema: schema})
		tables = append(tables, &trackedTable{name: name, schema: schema, version: version, reading: reading, read: true})
	}
	if len(entries) > 0 {
		if err := t.history.Append(t.ctx, entries); err != nil {
			return &historyError{fmt.Errorf("keep the schemas of the tables: %w", err)}
		}
		t.version += uint64(len(entries))
	}
	if reading != nil && len(tables) > 0 {
		t.readings = append(t.readings, reading)
	}
	t.now = t.now.with(tables, charsets)
	return nil
}

// connection gives the connection on which the server is asked, and makes it where there is none.
func (t *schemaTracker) connection(ctx context.Context) (*client.Conn, error) {
	if t.conn != nil {
		return t.conn, nil
	}
	conn, err := t.connect.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := prepareCatalog(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	// So that a table that somebody holds locked does not stop the stream for good.
	if _, err := ask(ctx, conn, "SET SESSION lock_wait_timeout = 10"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	t.conn = conn
	return conn, nil
}

func (t *schemaTracker) closeConn() {
	if t.conn != nil {
		_ = t.conn.Close() // it only reads
		t.conn = nil
	}
}

// serverEnd is where the server's binlog ends now.
func (t *schemaTracker) serverEnd(ctx context.Context, conn *client.Conn) (Position, error) {
	b := &Binlogs{connect: t.connect, conn: conn}
	if err := b.identify(ctx); err != nil {
		return Position{}, err
	}
	return b.End(ctx)
}

// readNow reads how tables look now, nil where the server shows none, and then where its binlog ends: what is read includes every
// statement before the place that was read, and none behind the end.
func (t *schemaTracker) readNow(tables []*trackedTable) (found []*Schema, end Position, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, 6*t.connect.timeout())
	defer cancel()
	conn, err := t.connection(ctx)
	if err != nil {
		return nil, end, err
	}
	defer func() {
		if err != nil {
			t.closeConn() // it may be of no further use
		}
	}()
	for _, table := range tables {
		// A statement is in the binlog a moment before its effect can be seen. It holds a lock until then, for which this
		// waits; what it answers does not matter, nor whether it may.
		if _, err := ask(ctx, conn, "SHOW CREATE TABLE "+quoteName(table.name.database)+"."+quoteName(table.name.name)); err != nil && !refusedFor(err) {
			return nil, end, err
		}
		schema, err := readSchema(ctx, conn, table.name.database, table.name.name)
		if err != nil {
			return nil, end, err
		}
		found = append(found, schema)
	}
	end, err = t.serverEnd(ctx, conn)
	return found, end, err
}

// refusedFor reports whether err is a refusal of the server that leaves the connection in use: no such table, no privilege.
func refusedFor(err error) bool {
	const errLockWaitTimeout = 1205
	var refusal *mysql.MyError
	return errors.As(err, &refusal) && refusal.Code != errLockWaitTimeout
}
