package canal

import "time"

// Position is a place between two transactions from which reading can resume.
type Position struct {
	// GTIDs is the executed set: every transaction in it is behind this place.
	// Nil where the server numbers none (MySQL with gtid_mode=OFF): then File and
	// Offset alone count, and only on the server that wrote them.
	GTIDs *GTIDSet
	// File and Offset are the binlog file and the byte offset of the next event.
	// With GTIDs they are informative.
	File   string
	Offset uint64
}

// Precedes reports whether p lies before o in the files of one server. GTIDs do not count.
func (p Position) Precedes(o Position) bool {
	return place{p.File, p.Offset}.before(place{o.File, o.Offset})
}

// Identity is what is remembered of a server, so that another one behind the same
// address is noticed.
type Identity struct {
	Flavor   Flavor
	UUID     string // @@server_uuid; empty on MariaDB
	ServerID uint32 // @@server_id
	Version  string // @@version
}

// Status is what a Source can say of itself at any moment.
type Status struct {
	Connected     bool
	Server        Identity
	Address       string    // in use
	Failovers     uint64    // how often reading went on with another server than before
	Read          Position  // up to where whole transactions were read; file and offset only
	LastEventAt   time.Time // when the last event or heartbeat arrived
	LastError     string    // of the last lost connection; empty when none
	Reconnects    uint64
	BytesRead     uint64
	BytesInFlight int64
	CaughtUp      bool // nothing more was waiting on the server when last heard from
}
