package checkpoint

import (
	"strconv"
	"strings"
	"sync"

	"github.com/binlogd/binlogd/canal"
)

// Work is what one transaction, or one piece of a large one, gives a sink to do.
type Work struct {
	Events int
	Bytes  int64 // of the events' payloads
	// Place is the place (canal.Row.Place) of the last row change of the piece, captured
	// or not. It matters for pieces other than the last.
	Place uint64
}

// Ticket stands for the work of one Begin. The zero Ticket stands for work that is done
// already.
type Ticket uint64

// Tracker knows the place up to which everything is durable, while sinks confirm in
// any order. It moves only over an unbroken run of confirmed transactions from the start.
// Its memory grows with the transactions that wait for a confirmation, not with those
// that pass meanwhile without events. Methods may be called by several goroutines, Begin
// by one at a time and in commit order.
type Tracker struct {
	mu     sync.Mutex
	record Record
	// published is the set of everything published; nil unless it can differ from the
	// record's executed set, as on MariaDB while an XA PREPARE is unresolved.
	published *canal.GTIDSet
	end       place // behind what was published last
	changed   bool
	ring      ring
}

// NewTracker continues from start. Its position, name and server stand in every later
// record; whether its position has GTIDs decides whether GTIDs are tracked. The first
// record counts as changed: the start itself is to be saved, so that a restart before the
// first transaction goes on from the same place.
func NewTracker(start Record) *Tracker {
	t := &Tracker{record: start, changed: true}
	t.record.Position.GTIDs = start.Position.GTIDs.Clone()
	t.record.Published = nil
	if start.Partial != nil {
		p := *start.Partial
		t.record.Partial = &p
	}
	t.end = place{start.Position.File, start.Position.Offset}
	ahead := start.Position.GTIDs
	if start.Published != nil {
		t.end = place{start.Published.File, start.Published.Offset}
		ahead = start.Published.GTIDs
	}
	if ahead != nil && ahead.Flavor() == canal.MariaDB {
		t.published = ahead.Clone()
	}
	return t
}

// Begin takes note of tx, whose work goes to the sink now. Without events it counts as
// done at once. The tracker keeps tx.Executed and tx.Held, which must not change any
// more, and nothing else of tx.
func (t *Tracker) Begin(tx *canal.Transaction, w Work) Ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := newStep(tx, w)
	if w.Events > 0 {
		return t.ring.push(s)
	}
	if t.ring.len() == 0 {
		t.apply(&s)
		return 0
	}
	s.done = true
	if last := t.ring.back(); last.done {
		last.then(&s, t.record.Position.GTIDs, t.published)
	} else {
		t.ring.push(s)
	}
	return 0
}

// Done says that all events of a ticket are durable. A second Done of one ticket, and one
// of the zero Ticket, change nothing.
func (t *Tracker) Done(ticket Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ring.at(ticket)
	if s == nil {
		return
	}
	s.done = true
	for t.ring.len() > 0 && t.ring.front().done {
		t.apply(t.ring.front())
		t.ring.pop()
	}
}

// Record returns the record of the highest place below which everything is durable,
// without WrittenAt and WrittenBy, and whether it differs from what Record returned last.
// It shares nothing that the tracker changes. Only the Saver calls it; Peek is for others.
func (t *Tracker) Record() (r Record, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed, t.changed = t.changed, false
	return t.snapshot(), changed
}

// Peek is Record for onlookers: it does not count as the last look.
func (t *Tracker) Peek() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot()
}

// Ahead returns the record as it will be once everything that was begun is durable. It is
// for sinks that take the record together with the events before it.
func (t *Tracker) Ahead() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := Tracker{record: t.snapshot(), published: t.published.Clone(), end: t.end}
	later.record.Published = nil // snapshot finds out
	for ticket := t.ring.first; ticket < t.ring.next; ticket++ {
		later.apply(t.ring.slot(ticket))
	}
	return later.snapshot()
}

// Waiting is the number of transactions and pieces that wait for a confirmation, of
// themselves or of one before them. Runs of those without events count once.
func (t *Tracker) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring.len()
}

// SetServer changes what later records say of the server: after an upgrade. After a failover
// the transactions that are read from the other one do, since the place is one of the files
// of the server before until then.
func (t *Tracker) SetServer(id canal.Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = t.changed || id != t.record.Server
	t.record.Server = id
}

// SetSchemaVersion says that the place where reading begins needs the schema history up to a version.
func (t *Tracker) SetSchemaVersion(version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = t.changed || version > t.record.SchemaVersion
	t.record.SchemaVersion = max(t.record.SchemaVersion, version)
}

// apply moves the record over s.
func (t *Tracker) apply(s *step) {
	r := &t.record
	t.changed = true
	r.Counters.Transactions += s.counters.Transactions
	r.Counters.Events += s.counters.Events
	r.Counters.Bytes += s.counters.Bytes
	if s.moved {
		s.executed.addTo(r.Position.GTIDs)
		s.published.addTo(t.published)
		r.Position.File, r.Position.Offset = s.resume.file, s.resume.offset
		if !s.end.before(t.end) { // what is read again for a held XA PREPARE's sake was published before
			t.end = s.end
		}
		if s.server != nil {
			r.Server = *s.server
		}
		r.Held = s.held
		r.SchemaVersion = max(r.SchemaVersion, s.schema)
		r.Partial = nil
	}
	if s.inside {
		if r.Partial == nil {
			r.Partial = new(Partial)
		}
		*r.Partial = r.Partial.further(s.partial)
	}
}

func (t *Tracker) snapshot() Record {
	r := t.record
	r.Position.GTIDs = r.Position.GTIDs.Clone()
	if r.Partial != nil {
		p := *r.Partial
		r.Partial = &p
	}
	// On MySQL with GTIDs the server itself sends held ones again, and no others.
	byGTID := r.Position.GTIDs != nil && t.published == nil
	ahead := t.end != place{r.Position.File, r.Position.Offset} || !t.published.Equal(r.Position.GTIDs)
	if !byGTID && ahead {
		r.Published = &canal.Position{GTIDs: t.published.Clone(), File: t.end.file, Offset: t.end.offset}
	}
	return r
}

// further is next, unless p is further inside the same transaction: after a restart the
// server begins it anew.
func (p Partial) further(next Partial) Partial {
	same := p.GTID == next.GTID // equal on every replica
	if p.GTID.IsZero() && next.GTID.IsZero() {
		same = p.File == next.File && p.Start == next.Start
	}
	if same && p.Place > next.Place {
		return p
	}
	return next
}

// place is a place in a server's binlog files.
type place struct {
	file   string
	offset uint64
}

// before reports whether p lies before o in one series of binlog files; of two series,
// which a failover or RESET brings, neither lies before the other.
func (p place) before(o place) bool {
	if p.file == o.file {
		return p.offset < o.offset
	}
	series, number, ok := splitFile(p.file)
	otherSeries, otherNumber, otherOK := splitFile(o.file)
	return ok && otherOK && series == otherSeries && number < otherNumber
}

// splitFile takes "binlog.000042" apart. The numbers grow beyond six digits.
func splitFile(name string) (series string, number uint64, ok bool) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(name[dot+1:], 10, 64)
	return name[:dot], number, err == nil
}
