package canal

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync/atomic"
)

// tableName names a table. An empty name stands for its database as a whole.
type tableName struct{ database, name string }

func (n tableName) String() string { return n.database + "." + n.name }

// trackedTable is what is known of one table from one statement to the next that alters it. Its
// address stands for its version: as long as it is in force, the table's rows are read in one way.
type trackedTable struct {
	name    tableName
	version uint64  // of the entry of the schema history
	schema  *Schema // nil: not known, and doubt says why
	doubt   string
	// since is the transaction from which on it holds, and statement what it did; empty: from the start.
	since, statement string
	read             bool // schema is what the server shows, not what a statement does
	// reading is when schema was read, if that was ahead of the place from which it is to hold.
	reading *schemaReading
	// refuted: a statement changed the table between that place and the reading.
	refuted atomic.Pointer[string]
	proven  atomic.Bool // no statement did, as a look ahead has shown
}

// schemaReading is one look at information_schema that was ahead of the stream. What it showed holds from a place on only
// if no statement changes the table before the place of the reading.
type schemaReading struct {
	from, until Position
	server      Identity // whose files the positions name
	passed      atomic.Bool
}

// passedAt reports whether a place is behind the reading. read is the executed set there, nil without GTIDs.
func (r *schemaReading) passedAt(at place, read *GTIDSet, server Identity) bool {
	if r.until.GTIDs != nil && (read == nil || !read.ContainsSet(r.until.GTIDs)) {
		return false
	}
	if r.until.GTIDs != nil && !sameServer(r.server, server) {
		return true
	}
	order := compareFiles(at.file, r.until.File)
	return order > 0 || order == 0 && at.offset >= r.until.Offset
}

// elsewhere forgets the places in files: another server is read now, and its GTIDs alone tell. Without GTIDs no other is.
func (r *schemaReading) elsewhere() {
	if r.until.GTIDs == nil || r.from.GTIDs == nil {
		return
	}
	r.server = Identity{}
	r.from.File, r.from.Offset = "", 0
	r.until.File, r.until.Offset = "", 0
}

// sameServer reports whether two identities are of one server, so that file names mean the same.
func sameServer(a, b Identity) bool { return a.UUID == b.UUID && a.ServerID == b.ServerID }

const schemaShards = 256

// schemaSnapshot is the schemas in force between two statements. It never changes, and shares what did not change with the
// snapshots before and after it: each transaction holds the one that its rows were written with.
type schemaSnapshot struct {
	prove  *schemaTracker
	fold   bool // the server compares names without regard to case
	lower  bool // and keeps them in lower case, so that rows name tables in it
	shards [schemaShards]map[tableName]*trackedTable
	// charsets are the default character sets of the databases.
	charsets map[string]string
}

var shardSeed = maphash.MakeSeed()

func (n tableName) shard() int { return int(maphash.Comparable(shardSeed, n) % schemaShards) }

// key is how a table is looked up.
func (s *schemaSnapshot) key(n tableName) tableName {
	if s.fold {
		return tableName{strings.ToLower(n.database), strings.ToLower(n.name)}
	}
	return n
}

// kept is a name that a statement wrote as the server keeps it.
func (s *schemaSnapshot) kept(n tableName) tableName {
	if s.lower {
		return s.key(n)
	}
	return n
}

// find gives what is known of a table, or nil.
func (s *schemaSnapshot) find(n tableName) *trackedTable {
	n = s.key(n)
	return s.shards[n.shard()][n]
}

// each gives all tables of one database, or of all where it is empty, in no order.
func (s *schemaSnapshot) each(database string, f func(*trackedTable)) {
	database = s.key(tableName{database: database}).database
	for _, shard := range s.shards {
		for name, t := range shard {
			if database == "" || name.database == database {
				f(t)
			}
		}
	}
}

// with is the snapshot after some tables changed; one without schema and doubt is gone.
func (s *schemaSnapshot) with(changes []*trackedTable, charsets map[string]string) *schemaSnapshot {
	next := *s
	var own [schemaShards]bool
	for _, t := range changes {
		n := s.key(t.name)
		i := n.shard()
		if !own[i] {
			own[i] = true
			next.shards[i] = maps.Clone(next.shards[i])
			if next.shards[i] == nil {
				next.shards[i] = make(map[tableName]*trackedTable)
			}
		}
		if t.schema == nil && t.doubt == "" {
			delete(next.shards[i], n)
		} else {
			next.shards[i][n] = t
		}
	}
	if len(charsets) > 0 {
		next.charsets = maps.Clone(s.charsets)
		if next.charsets == nil {
			next.charsets = make(map[string]string)
		}
		for name, charset := range charsets {
			if charset == "" {
				delete(next.charsets, name)
			} else {
				next.charsets[name] = charset
			}
		}
	}
	return &next
}
