// Package checkpoint keeps the place up to which everything is durable.
package checkpoint

import (
	"time"

	"github.com/binlogd/binlogd/canal"
)

// Record is one checkpoint: everything before Position is published and durable.
type Record struct {
	Name     string         // of the pipeline
	Position canal.Position // where reading resumes
	// Held are XA transactions that were prepared before, and not committed by,
	// Position or Published. On MySQL with GTIDs their PREPAREs are missing from the
	// executed set, so that the server sends them again.
	Held []canal.Prepared
	// Published is the place up to which events were published where that is beyond
	// Position, because reading must resume before an unresolved XA PREPARE (by file
	// and offset, and on MariaDB). Nil otherwise.
	Published *canal.Position
	// Partial is the place inside the unfinished transaction after Position.
	Partial *Partial
	Server  canal.Identity
	// SchemaVersion names the newest entry of the schema history that rows up to
	// Position need; 0 without a history.
	SchemaVersion uint64
	Counters      Counters
	WrittenAt     time.Time
	WrittenBy     string // host and process id
}

// Partial is a place inside a transaction that is published in part.
type Partial struct {
	GTID  canal.GTID // zero without GTIDs
	File  string
	Start uint64 // where the transaction begins
	Place uint64 // row changes up to and including this one are durable
}

// Counters count since the first start.
type Counters struct {
	Transactions uint64 // with and without events
	Events       uint64
	Bytes        uint64 // of published payloads
}

// Resume is where reading goes on from the record.
func (r *Record) Resume() canal.Resume {
	from := canal.Resume{
		Position: r.Position, Held: r.Held, Published: r.Published, Server: r.Server, SchemaVersion: r.SchemaVersion, ReadAt: r.WrittenAt,
	}
	if in := r.Partial; in != nil {
		from.Inside = &canal.Inside{GTID: in.GTID, File: in.File, Start: in.Start, Place: in.Place}
	}
	return from
}

// SamePlace reports whether two records stand for the same events: everything before them
// is published by both, and nothing behind.
func (r *Record) SamePlace(o *Record) bool {
	same := func(a, b *canal.Position) bool {
		if a == nil || b == nil {
			return a == b
		}
		return a.File == b.File && a.Offset == b.Offset && a.GTIDs.Equal(b.GTIDs)
	}
	partial := r.Partial == nil && o.Partial == nil || r.Partial != nil && o.Partial != nil && *r.Partial == *o.Partial
	return partial && same(&r.Position, &o.Position) && same(r.Published, o.Published) && r.Counters == o.Counters
}
