package canal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/client"
)

// schemaTracker keeps the schemas of the captured tables, and of others in their databases, as of the place that was read:
// statements in the binlog change them. The reading goroutine alone uses it, but for check, which the decoders call.
type schemaTracker struct {
	ctx      context.Context
	connect  ConnectOptions
	captured func(database, table string) bool
	history  SchemaHistory
	logger   *slog.Logger
	parser   ddlParser
	fold     bool     // the server compares names without regard to case
	lower    bool     // and keeps them in lower case
	start    Position // where reading began

	now       *schemaSnapshot
	databases map[string]bool // whose tables are tracked, captured or not
	version   uint64          // of the newest entry of the history
	pool      schemaPool
	// ahead are entries of statements that are still to come, by transaction: it was read before.
	ahead    map[string][]SchemaEntry
	readings []*schemaReading // not passed yet
	staged   *stagedSchemas   // by the transaction being read
	conn     *client.Conn     // nil until needed, and after an error
	end      place            // of the server's binlog, when last looked

	mu     sync.Mutex // guards what follows
	server Identity
	scans  scannedDDL
}

// stagedSchemas are the changes of the transaction being read.
type stagedSchemas struct {
	snapshot *schemaSnapshot
	tables   []*trackedTable
	entries  []SchemaEntry
	readings []*schemaReading
}

// ddlPlace is where a statement stands.
type ddlPlace struct {
	gtid  GTID
	begin place    // of its transaction
	after place    // behind the statement
	read  *GTIDSet // executed before it; nil without GTIDs
}

func (p ddlPlace) String() string { return identity(p.gtid, p.begin.file, p.begin.offset) }

// snapshot is what is in force at the place being read.
func (t *schemaTracker) snapshot() *schemaSnapshot {
	if t.staged != nil {
		return t.staged.snapshot
	}
	return t.now
}

// follows reports whether a table is tracked: also one that was renamed into a database that is not.
func (t *schemaTracker) follows(n tableName) bool {
	return t.databases[t.now.key(n).database] || t.concerns(n)
}

// concerns reports whether a table that a statement names is tracked, and may be there.
func (t *schemaTracker) concerns(n tableName) bool {
	return t.snapshot().find(n) != nil || t.captured(n.database, n.name)
}

// statement takes a logged statement and stages what it does to tables. It gives the captured tables that it truncated.
func (t *schemaTracker) statement(q query, at ddlPlace) (truncated []tableName, err error) {
	head := readDDL(q)
	if head.kind == ddlNone {
		return nil, nil
	}
	q = q.inUTF8()
	if head.kind == ddlTruncate {
		if n := t.now.kept(readDDL(q).target); t.captured(n.database, n.name) {
			truncated = append(truncated, n)
		}
		return truncated, nil
	}
	recorded := t.ahead[at.String()]
	if len(recorded) == 0 && !t.matters(head, q) {
		return nil, nil
	}
	d := t.draft(q)
	statements, err := t.parser.parse(q)
	if err != nil {
		d.misunderstood(head, q, err)
	}
	for _, s := range statements {
		d.apply(s)
	}
	return nil, t.stage(d, q, at, recorded)
}

// matters tells before parsing whether a statement can change what is tracked.
func (t *schemaTracker) matters(head ddlHead, q query) bool {
	if head.kind == ddlDatabase {
		return true
	}
	if n := head.target; n != (tableName{}) && t.follows(n) {
		return true
	}
	return len(namesIn(q, t.concerns)) > 0
}

func (t *schemaTracker) draft(q query) *draft {
	return &draft{
		base: t.snapshot(), flavor: t.parser.flavor, database: t.now.kept(tableName{database: string(q.database)}).database,
		server: charsetOfCollation(uint64(q.server)), concerns: t.follows,
	}
}

// misunderstood puts the tables that a statement may change in doubt.
func (d *draft) misunderstood(head ddlHead, q query, err error) {
	why := "binlogd does not understand the statement: " + abbreviate(err.Error())
	if head.kind == ddlDatabase {
		for name := range d.base.charsets {
			if strings.Contains(d.base.kept(tableName{name: string(q.text)}).name, name) {
				if d.charsets == nil {
					d.charsets = make(map[string]string)
				}
				d.charsets[name] = ""
			}
		}
		return
	}
	if head.makesIndex() {
		for _, n := range namesIn(q, func(n tableName) bool { return d.base.find(n) != nil }) {
			d.alterKeys(n, func(schema *Schema) error {
				schema.forgetUnique()
				return nil
			})
		}
	}
	if head.target != (tableName{}) {
		d.doubt(head.target, "%s", why)
	}
	renames := head.verb != "CREATE" && strings.Contains(strings.ToUpper(string(q.text)), "RENAME")
	if head.verb != "DROP" && !renames {
		return
	}
	for _, n := range namesIn(q, func(n tableName) bool { return d.base.find(n) != nil || renames && d.concerns(n) && n != head.target }) {
		d.doubt(n, "%s", why)
	}
}

// stage readies the changes of a statement; commit puts them in force.
func (t *schemaTracker) stage(d *draft, q query, at ddlPlace, recorded []SchemaEntry) error {
	s := t.staged
	if s == nil {
		s = &stagedSchemas{}
	}
	statement := abbreviateTo(string(q.text), maxStatement)
	settled := make(map[tableName]*SchemaEntry, len(recorded))
	for i := range recorded {
		e := &recorded[i]
		settled[t.now.key(tableName{e.Database, e.Table})] = e
		if e.Table == "" {
			if d.charsets == nil {
				d.charsets = make(map[string]string)
			}
			d.charsets[e.Database] = e.Charset
		} else if _, done := d.changed[t.now.key(tableName{e.Database, e.Table})]; !done {
			d.put(tableName{e.Database, e.Table}, draftTable{doubt: e.Unknown})
		}
	}
	var fresh []*trackedTable // to be looked at
	for _, n := range d.order {
		e := settled[t.now.key(n)]
		c := d.changed[t.now.key(n)]
		if e != nil && (e.settled() || e.Until != nil && c.schema == nil) {
			s.tables = append(s.tables, e.tracked(t.readingOf, t.pool))
			continue
		}
		tracked := &trackedTable{name: n, doubt: c.doubt, since: at.String(), statement: statement}
		if c.schema != nil {
			tracked.schema = t.pool.share(c.schema)
		}
		if old := d.base.find(n); e == nil && old != nil && old.schema != nil && old.reading == nil && old.schema == tracked.schema {
			continue // nothing changed
		}
		s.tables = append(s.tables, tracked)
		if tracked.schema != nil || tracked.doubt != "" {
			fresh = append(fresh, tracked)
		}
		entry := SchemaEntry{
			Database: n.database, Table: n.name, Origin: SchemaFromStatement,
			GTID: at.gtid, File: at.begin.file, Offset: at.begin.offset, Statement: statement,
		}
		if e != nil {
			entry.Replaces = e.Version
		}
		s.entries = append(s.entries, entry)
	}
	for name, charset := range d.charsets {
		if settled[t.now.key(tableName{name, ""})] == nil && (t.databases[t.now.key(tableName{name, ""}).database] || t.capturesIn(name)) {
			s.entries = append(s.entries, SchemaEntry{
				Database: name, Charset: charset, Origin: SchemaFromStatement,
				GTID: at.gtid, File: at.begin.file, Offset: at.begin.offset, Statement: statement,
			})
		}
	}
	if len(s.tables) == 0 && len(d.charsets) == 0 {
		return nil
	}
	if err := t.look(s, fresh, at); err != nil {
		return err
	}
	for i := range s.entries {
		e := &s.entries[i]
		e.Version = t.version + uint64(i) + 1
		for _, tracked := range s.tables {
			if e.Table != "" && tracked.name == (tableName{e.Database, e.Table}) {
				tracked.version = e.Version
				e.Schema, e.Unknown = tracked.schema, tracked.doubt
				if tracked.read {
					e.Origin = SchemaFromServer
				}
				if tracked.reading != nil {
					until := tracked.reading.until
					e.Until = &until
				}
			}
		}
	}
	s.snapshot = d.base.with(s.tables, d.charsets)
	t.staged = s
	return nil
}

// maxStatement bounds the text of a statement that is kept, in bytes.
const maxStatement = 500

func abbreviateTo(statement string, limit int) string {
	statement = strings.Join(strings.Fields(statement), " ")
	if len(statement) > limit {
		statement = strings.ToValidUTF8(statement[:limit], "") + "…"
	}
	return statement
}

// capturesIn reports whether tables of a database are captured, as far as is known.
func (t *schemaTracker) capturesIn(database string) bool {
	found := false
	t.now.each(database, func(table *trackedTable) { found = found || t.captured(table.name.database, table.name.name) })
	return found
}

// look reads the captured ones of tables that a statement has just changed from the server. Where the stream has caught up with
// it, what it shows is how they look now; where not, that is kept for tables in doubt, to be proven when rows need it.
func (t *schemaTracker) look(s *stagedSchemas, changed []*trackedTable, at ddlPlace) error {
	var wanted []*trackedTable
	doubts := false
	for _, table := range changed {
		if t.captured(table.name.database, table.name.name) {
			wanted = append(wanted, table)
			doubts = doubts || table.schema == nil
		}
	}
	order := compareFiles(at.after.file, t.end.file)
	behind := order < 0 || order == 0 && at.after.offset < t.end.offset
	if len(wanted) == 0 || behind && !doubts {
		return nil
	}
	found, end, err := t.readNow(wanted)
	if err != nil {
		return fmt.Errorf("look at the tables that transaction %s changed: %w", at, err)
	}
	t.end = place{end.File, end.Offset}
	caughtUp := t.end == at.after
	var reading *schemaReading
	for i, table := range wanted {
		schema := found[i]
		switch {
		case schema == nil || table.schema != nil && !caughtUp:
			continue
		case table.schema != nil && table.schema.alike(schema):
			table.schema = t.pool.share(schema)
			continue
		case table.schema != nil:
			t.logger.Warn("the server shows a table in another way than the statement was understood: following the server",
				"table", table.name.String(), "statement", table.statement, "transaction", table.since)
		}
		table.schema, table.doubt, table.read = t.pool.share(schema), "", true
		if caughtUp {
			continue
		}
		if reading == nil {
			from := Position{File: at.after.file, Offset: at.after.offset}
			if at.read != nil {
				from.GTIDs = at.read.Clone()
				from.GTIDs.Add(at.gtid)
			}
			reading = &schemaReading{from: from, until: end, server: t.serverNow()}
			s.readings = append(s.readings, reading)
		}
		table.reading = reading
	}
	return nil
}

// empty is a snapshot of nothing with the server's way of comparing names.
func (t *schemaTracker) empty() *schemaSnapshot { return &schemaSnapshot{fold: t.fold, lower: t.lower} }

func (t *schemaTracker) serverNow() Identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server
}

// connected says which server is read from now on, and how to reach it.
func (t *schemaTracker) connected(server Identity, connect ConnectOptions) {
	t.discard()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !sameServer(t.server, server) {
		t.scans = scannedDDL{}
		t.end = place{}
		t.closeConn()
		for _, r := range t.readings {
			r.elsewhere()
		}
	}
	t.server, t.connect = server, connect
}

// discard drops what the transaction being read staged.
func (t *schemaTracker) discard() { t.staged = nil }

// commit puts the changes of the transaction that was read in force. Their entries are durable before it returns.
func (t *schemaTracker) commit(at string) error {
	s := t.staged
	if s == nil {
		return nil
	}
	if len(s.entries) > 0 {
		if err := t.history.Append(t.ctx, s.entries); err != nil {
			return &historyError{fmt.Errorf("keep the schemas of transaction %s: %w", at, err)}
		}
		t.version += uint64(len(s.entries))
	}
	for _, table := range s.tables {
		if old := t.now.find(table.name); old != nil && old.reading != nil && !old.reading.passed.Load() {
			why := fmt.Sprintf("it was read when the server was ahead, and %q in transaction %s changed it before that", table.statement, at)
			old.refuted.Store(&why)
		}
		if t.captured(table.name.database, table.name.name) {
			t.databases[t.now.key(table.name).database] = true
		}
	}
	t.now = s.snapshot
	t.readings = append(t.readings, s.readings...)
	delete(t.ahead, at)
	t.staged = nil
	return nil
}

// begins says that the transaction at a place begins: readings before it are passed.
func (t *schemaTracker) begins(at place, read *GTIDSet) {
	if len(t.readings) == 0 {
		return
	}
	server := t.serverNow()
	left := t.readings[:0]
	for _, r := range t.readings {
		if r.passedAt(at, read, server) {
			r.passed.Store(true)
		} else {
			left = append(left, r)
		}
	}
	clear(t.readings[len(left):])
	t.readings = left
}
