package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// errScanned ends a dump whose reader has what it wanted.
var errScanned = errors.New("scanned")

// binlogWalk reads binlog files from the beginning of one on. Like a run it cuts what it reads into transactions, so that it knows at
// each place what a checkpoint there would hold; rows it passes over.
type binlogWalk struct {
	stop   func(at place, begins begin) bool
	cutter *cutter
	keepXA bool       // the rows of prepared XA transactions are kept
	last   BinlogFile // no further than to its end
	purged *GTIDSet

	executed *GTIDSet // what may count as done; nil without GTIDs
	held     []Prepared
	resume   place // where reading could go on: before the oldest held PREPARE, where GTIDs cannot tell
	previous *Begins
	spot     *Spot
}

// walk reads from the beginning of files[i] to the first transaction at which stop says so, or to the end of the last file.
func (b *Binlogs) walk(ctx context.Context, files []BinlogFile, i int, stop func(at place, begins begin) bool) (*Spot, error) {
	w := b.newWalk(files, i, stop)
	defer w.cutter.xa.close()
	return b.run(ctx, w, files[i:])
}

func (b *Binlogs) newWalk(files []BinlogFile, i int, stop func(at place, begins begin) bool) *binlogWalk {
	w := &binlogWalk{stop: stop, last: files[len(files)-1], purged: b.purged}
	start := place{file: files[i].Name, offset: 4}
	w.resume = start
	holes := b.server.Flavor == MySQL && b.numbered
	w.cutter = &cutter{
		flavor: b.server.Flavor, captured: func(string, string) bool { return false },
		pieceSize: func() int { return DefaultMaxInFlight }, emit: w.emit, logger: slog.New(slog.DiscardHandler),
		place: start, told: start, xa: &xaHold{holes: holes, limit: heldInMemory},
	}
	return w
}

// run does a walk from the beginning of the first of files on.
func (b *Binlogs) run(ctx context.Context, w *binlogWalk, files []BinlogFile) (*Spot, error) {
	start := w.resume
	if b.server.Flavor == MariaDB {
		set, err := b.domainsAt(ctx, start.file, start.offset)
		if err != nil {
			return nil, err
		}
		w.begin(set)
	} else if b.numbered {
		w.begin(NewGTIDSet(MySQL))
	}
	b.searched.Files++
	b.searched.Total = 0
	for _, f := range files {
		b.searched.Total += f.Size
	}
	if err := b.dump(ctx, start.file, w.event); err != nil {
		return nil, err
	}
	w.spot.Resume.Server = b.server
	return w.spot, nil
}

// begin says what is executed where the walk begins.
func (w *binlogWalk) begin(set *GTIDSet) { w.cutter.read, w.executed = set, set.Clone() }

func (w *binlogWalk) event(e rawEvent) error {
	c := w.cutter
	switch kind := e.kind(); kind {
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
		return w.end()
	case replication.ROTATE_EVENT:
		if e.flags()&flagArtificial == 0 && e.logPos() != 0 && c.place.file == w.last.Name {
			c.place.advance(e)
			return w.end()
		}
	case replication.PREVIOUS_GTIDS_EVENT:
		if w.executed != nil && w.previous == nil {
			set, err := parsePreviousGTIDs(e)
			if err != nil {
				return err
			}
			w.begin(set.Union(w.purged))
		}
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
		b, err := parseBegin(e)
		if err != nil {
			return c.broken(err)
		}
		at := c.place
		at.advance(e)
		at.offset = at.startOf(e)
		next := &Begins{GTID: b.gtid, File: at.file, Offset: at.offset, CommittedAt: b.committedAt}
		if w.stop(at, b) {
			w.found(at, next)
			return errScanned
		}
		w.previous = next
	case replication.TRANSACTION_PAYLOAD_EVENT:
		c.place.advance(e)
		var inner error
		err := eachPayloadEvent(e, func(event rawEvent) error {
			if w.passesOver(event.kind()) {
				return nil
			}
			inner = c.logical(event)
			return inner
		})
		if inner == nil && err != nil {
			inner = c.broken(err)
		}
		return w.unlessAtEnd(inner)
	default:
		if w.passesOver(kind) {
			c.place.advance(e)
			return nil
		}
	}
	return w.unlessAtEnd(c.event(e))
}

func (w *binlogWalk) passesOver(kind replication.EventType) bool {
	o := w.cutter.open
	return carriesRows(kind) && (!w.keepXA || o == nil || !o.xa)
}

func carriesRows(kind replication.EventType) bool {
	return kind == replication.TABLE_MAP_EVENT || isRowsEvent(kind)
}

// emit takes what the cutter cut off.
func (w *binlogWalk) emit(t *Transaction) error {
	if !t.Last {
		return nil
	}
	for _, g := range t.Executed {
		if w.executed != nil {
			w.executed.Add(g)
		}
	}
	w.held, w.resume = t.Held, place{t.ResumeFile, t.ResumeOffset}
	if w.previous != nil && !t.Idle {
		w.previous.End = t.EndOffset
	}
	return nil
}

// unlessAtEnd ends the walk where the last file did.
func (w *binlogWalk) unlessAtEnd(err error) error {
	if at := w.cutter.place; err == nil && w.cutter.open == nil && at.file == w.last.Name && at.offset >= w.last.Size {
		return w.end()
	}
	return err
}

func (w *binlogWalk) end() error {
	w.found(w.cutter.place, nil)
	return errScanned
}

// found makes the spot of a place.
func (w *binlogWalk) found(at place, next *Begins) {
	spot := &Spot{File: at.file, Offset: at.offset, Next: next, Previous: w.previous}
	if spot.Previous != nil && spot.Previous.File != at.file {
		spot.Previous = nil
	}
	if w.cutter.read != nil {
		spot.Read = w.cutter.read.Clone()
	}
	spot.Resume = Resume{Position: Position{GTIDs: w.executed, File: at.file, Offset: at.offset}, Held: w.held}
	if len(w.held) > 0 && !w.cutter.xa.holes {
		spot.Resume.Position.File, spot.Resume.Position.Offset = w.resume.file, w.resume.offset
		spot.Resume.Published = &Position{GTIDs: spot.Read.Clone(), File: at.file, Offset: at.offset}
	}
	w.spot = spot
}

func parsePreviousGTIDs(e rawEvent) (*GTIDSet, error) {
	var p replication.PreviousGTIDsEvent
	if err := p.Decode(e.body()); err != nil {
		return nil, fmt.Errorf("decode the GTIDs before a binlog file: %w", err)
	}
	return ParseGTIDSet(MySQL, p.GTIDSets)
}

// firstLogged is when the server logged the first transaction at or after the beginning of files[i]; the zero time where there is none.
func (b *Binlogs) firstLogged(ctx context.Context, files []BinlogFile, i int) (logged time.Time, err error) {
	last := files[len(files)-1]
	at := place{file: files[i].Name, offset: 4}
	err = b.look(ctx, at.file, func(e rawEvent) error {
		at.advance(e)
		switch e.kind() { //nolint:exhaustive // the others do not matter here
		case replication.ROTATE_EVENT:
			name, offset, err := parseRotate(e)
			if err != nil {
				return err
			}
			at.rotate(name, offset)
			return nil
		case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
			return errScanned
		case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
			b, err := parseBegin(e)
			logged = b.loggedAt
			if err != nil {
				return err
			}
			return errScanned
		}
		if at.file == last.Name && at.offset >= last.Size {
			return errScanned
		}
		return nil
	})
	return logged, err
}

// begun is when files[i] was begun, in seconds.
func (b *Binlogs) begun(ctx context.Context, files []BinlogFile, i int) (begun time.Time, err error) {
	err = b.look(ctx, files[i].Name, func(e rawEvent) error {
		if e.kind() != replication.FORMAT_DESCRIPTION_EVENT {
			return nil
		}
		begun = time.Unix(int64(e.timestamp()), 0).UTC()
		return errScanned
	})
	return begun, err
}

// setBefore is the set of all transactions before files[i].
func (b *Binlogs) setBefore(ctx context.Context, files []BinlogFile, i int) (set *GTIDSet, err error) {
	if b.server.Flavor == MariaDB {
		b.searched.Looks++
		return b.domainsAt(ctx, files[i].Name, 4)
	}
	set = NewGTIDSet(MySQL)
	err = b.look(ctx, files[i].Name, func(e rawEvent) error {
		if e.kind() != replication.PREVIOUS_GTIDS_EVENT {
			return nil
		}
		before, err := parsePreviousGTIDs(e)
		if err != nil {
			return err
		}
		set = before
		return errScanned
	})
	return set, err
}

// look reads the beginning of a file.
func (b *Binlogs) look(ctx context.Context, file string, handle func(rawEvent) error) error {
	b.searched.Looks++
	return b.dump(ctx, file, handle)
}

// dump reads from the beginning of a file on until handle gives errScanned.
func (b *Binlogs) dump(ctx context.Context, file string, handle func(rawEvent) error) error {
	return b.dumpFrom(ctx, Position{File: file, Offset: 4}, handle)
}

// dumpFrom reads from a place on until handle gives errScanned.
func (b *Binlogs) dumpFrom(ctx context.Context, from Position, handle func(rawEvent) error) (err error) {
	if b.serverID == 0 {
		if b.serverID, err = chooseServerID(ctx, b.connect); err != nil {
			return err
		}
	}
	began := time.Now()
	defer func() {
		b.searched.Took += time.Since(began)
		b.tell()
	}()
	var heard atomic.Int64
	told := b.read.Load()
	s, err := openStream(ctx, streamOptions{
		connect: b.connect, flavor: b.server.Flavor, serverID: b.serverID, heartbeat: time.Second, read: &b.read, heard: &heard,
		handle: func(e rawEvent) error {
			if read := b.read.Load(); read-told > 1<<20 {
				told = read
				b.tell()
			}
			return handle(e)
		},
	}, from)
	if err != nil {
		return explainStream(err)
	}
	defer s.close()
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	if err := s.wait(ctx); !errors.Is(err, errScanned) {
		return explainStream(err)
	}
	return nil
}

func (b *Binlogs) tell() {
	if b.watch != nil {
		b.watch(b.Searched())
	}
}
