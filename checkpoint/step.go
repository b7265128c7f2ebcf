package checkpoint

import "github.com/binlogd/binlogd/canal"

// step is how far a transaction, a piece of one, or a run of done ones moves the
// record.
type step struct {
	done bool
	// moved: the end of a transaction was passed, and the fields down to schema hold.
	moved     bool
	executed  gtids
	published gtids
	held      []canal.Prepared
	resume    place
	end       place
	schema    uint64
	server    *canal.Identity // whose files resume and end are of; nil where that is not said
	// inside: it ends inside a transaction, at partial.
	inside   bool
	partial  Partial
	counters Counters
}

func newStep(tx *canal.Transaction, w Work) step {
	s := step{counters: Counters{Events: uint64(w.Events), Bytes: uint64(w.Bytes)}}
	if !tx.Last {
		s.inside = true
		s.partial = Partial{GTID: tx.GTID, File: tx.File, Start: tx.Start, Place: w.Place}
		return s
	}
	s.moved = true
	s.published.one = tx.GTID
	if len(tx.Executed) == 1 {
		s.executed.one = tx.Executed[0]
	} else {
		s.executed.some = tx.Executed
	}
	s.held = tx.Held
	s.resume = place{tx.ResumeFile, tx.ResumeOffset}
	s.end = place{tx.EndFile, tx.EndOffset}
	s.schema, s.server = tx.SchemaVersion, tx.ReadFrom
	if !tx.Idle {
		s.counters.Transactions = 1
	}
	return s
}

// then makes one step of s and next. executed and published are the tracker's sets, which
// tell whether GTIDs are needed at all.
func (s *step) then(next *step, executed, published *canal.GTIDSet) {
	s.counters.Transactions += next.counters.Transactions
	s.counters.Events += next.counters.Events
	s.counters.Bytes += next.counters.Bytes
	if next.moved {
		s.executed.merge(&next.executed, executed)
		s.published.merge(&next.published, published)
		s.held, s.resume, s.end, s.schema, s.server = next.held, next.resume, next.end, next.schema, next.server
		s.moved, s.inside = true, false
	}
	if next.inside {
		if s.inside {
			s.partial = s.partial.further(next.partial)
		} else {
			s.inside, s.partial = true, next.partial
		}
	}
}

// gtids are the GTIDs of a step: one nearly always, without an allocation.
type gtids struct {
	one  canal.GTID
	some []canal.GTID
	many *canal.GTIDSet // of a run of transactions
}

// addTo adds them to a set; a nil set stays nil, because GTIDs are not tracked.
func (g *gtids) addTo(set *canal.GTIDSet) {
	if set == nil {
		return
	}
	set.Add(g.one)
	for _, id := range g.some {
		set.Add(id)
	}
	set.AddSet(g.many)
}

// merge adds the GTIDs of o. set is where they will go: nil when GTIDs are not tracked.
func (g *gtids) merge(o *gtids, set *canal.GTIDSet) {
	if set == nil {
		return
	}
	if g.many == nil {
		g.many = canal.NewGTIDSet(set.Flavor())
	}
	o.addTo(g.many)
}
