package travel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/publish"
)

// point is a target, found.
type point struct {
	// record has the place: Position, Held, Published, Partial.
	record checkpoint.Record
	spot   *canal.Spot
	// passed are the transactions that count as published there; nil without GTIDs.
	passed *canal.GTIDSet
	notes  []string
	// schemaVersion is that of the record which the point was taken from; 0 for others.
	schemaVersion uint64
}

// finder finds targets for a checkpoint.
type finder struct {
	setup   *Setup
	binlogs *canal.Binlogs
	before  *checkpoint.Record
	reader  checkpoint.Reader
	schemas *scratchHistory
}

func (f *finder) find(ctx context.Context, target Target) (*point, error) {
	switch target.Kind {
	case ToGTID:
		return f.toSet(ctx, target.Text)
	case ToTime:
		spot, err := f.binlogs.Since(ctx, target.Time)
		if err == nil && spot.Next == nil {
			err = &canal.ConfigError{
				Err:    fmt.Errorf("the server has no transaction that was committed at or after %s", target.Time.Format(time.RFC3339Nano)),
				Remedy: "name an earlier time",
			}
		}
		return f.at(spot, err)
	case ToPosition:
		return f.at(f.binlogs.At(ctx, target.File, target.Offset))
	case ToEvent:
		return f.at(f.ofEvent(ctx, target.Text))
	case ToTransactions:
		return f.back(ctx, target.Transactions)
	case ToEntry:
		return f.toEntry(ctx, target.Text)
	}
	return nil, fmt.Errorf("target of kind %d", target.Kind)
}

// at is the point of a spot.
func (f *finder) at(spot *canal.Spot, err error) (*point, error) {
	if err != nil {
		return nil, err
	}
	r := spot.Resume
	p := &point{spot: spot, passed: spot.Read, record: checkpoint.Record{Position: r.Position, Held: r.Held, Published: r.Published}}
	if f.before.Position.GTIDs == nil { // GTIDs are not what this checkpoint counts by
		p.passed, p.record.Position.GTIDs = nil, nil
		if p.record.Published != nil {
			p.record.Published = &canal.Position{File: p.record.Published.File, Offset: p.record.Published.Offset}
		}
		return p, nil
	}
	if r.Position.GTIDs == nil {
		return nil, &canal.SourceError{Err: errors.New("the checkpoint is a GTID set, and the server numbers no transactions"), Remedy: "set gtid_mode=ON again, or begin anew with another checkpoint.path"}
	}
	return p, nil
}

// toSet is where exactly the GTIDs of a set count as published.
func (f *finder) toSet(ctx context.Context, text string) (*point, error) {
	if f.before.Position.GTIDs == nil {
		return nil, &canal.ConfigError{Err: errors.New("the checkpoint is a file and an offset: the server numbers no transactions"), Remedy: "name the place with --to-position, --to-time or --to-event"}
	}
	set, err := canal.ParseGTIDSet(f.binlogs.Server().Flavor, text)
	if err != nil {
		return nil, &canal.ConfigError{Err: fmt.Errorf("--to-gtid: %w", err), Remedy: "write a GTID set as the server does"}
	}
	end, err := f.binlogs.End(ctx)
	if err != nil {
		return nil, err
	}
	if unknown := set.Subtract(end.GTIDs); end.GTIDs != nil && !unknown.IsEmpty() { // no run could begin there, and reading up to it would not end
		return nil, &canal.ConfigError{
			Err:    fmt.Errorf("the server never executed %s, which the GTID set holds", brief(unknown)),
			Remedy: fmt.Sprintf("leave it out of the set, or check that source.address is the right server: it has executed %s", brief(end.GTIDs)),
		}
	}
	p, err := f.at(f.binlogs.After(ctx, set))
	if err != nil {
		return nil, err
	}
	if r := &p.record; f.binlogs.Server().Flavor == canal.MariaDB {
		if r.Published != nil {
			r.Published.GTIDs = set
		} else {
			r.Position.GTIDs = set
		}
	} else {
		r.Position.GTIDs = set.Clone()
		for _, held := range r.Held {
			r.Position.GTIDs = r.Position.GTIDs.Subtract(single(held.GTID))
		}
		if ahead := set.Subtract(p.spot.Read); !ahead.IsEmpty() {
			p.notes = append(p.notes, fmt.Sprintf("%s are in the set, but stand in the binlog behind transactions that are not: the set is no place of this server, and the sequence of what is published again differs from the first time", brief(ahead)))
		}
	}
	p.passed = set
	return p, nil
}

// single is the set of one GTID.
func single(g canal.GTID) *canal.GTIDSet {
	set := canal.NewGTIDSet(g.Flavor)
	set.Add(g)
	return set
}

// brief keeps a set short enough for a message.
func brief(set *canal.GTIDSet) string {
	const limit = 200
	text := set.String()
	if len(text) > limit {
		return text[:strings.LastIndexAny(text[:limit], ",:")] + fmt.Sprintf("… (%d transactions)", set.Count())
	}
	return text
}

// toEntry is the place of an entry of the checkpoint's history.
func (f *finder) toEntry(ctx context.Context, id string) (*point, error) {
	entries, err := f.reader.History(ctx)
	for i := range entries {
		if entries[i].ID == id {
			return f.ofRecord(ctx, &entries[i].Record)
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, &canal.ConfigError{Err: fmt.Errorf("the checkpoint's history has no entry %q", id), Remedy: "`binlogd checkpoint history` lists those that it has"}
}

// ofRecord is the place that a checkpoint had once, if the server still has what comes after it.
func (f *finder) ofRecord(ctx context.Context, r *checkpoint.Record) (*point, error) {
	var spot *canal.Spot
	var err error
	if r.Position.GTIDs != nil {
		spot, err = f.binlogs.After(ctx, r.Position.GTIDs)
	} else {
		if r.Server.UUID != f.binlogs.Server().UUID {
			return nil, &canal.SourceError{
				Err:    fmt.Errorf("the place %s:%d is one of the server %s, and %s answers", r.Position.File, r.Position.Offset, r.Server.UUID, f.binlogs.Server().UUID),
				Remedy: "a file and an offset are valid on the server only that wrote them",
			}
		}
		spot, err = f.binlogs.At(ctx, r.Position.File, r.Position.Offset)
	}
	if err != nil {
		return nil, err
	}
	p := &point{spot: spot, record: checkpoint.Record{Position: r.Position, Held: r.Held, Published: r.Published, Partial: r.Partial}}
	p.passed, _ = published(r)
	return p, nil
}

// ofEvent is before the transaction of an event.
func (f *finder) ofEvent(ctx context.Context, id string) (*canal.Spot, error) {
	spot, _, err := f.setup.locateEvent(ctx, f.binlogs, f.schemas, f.before, id)
	return spot, err
}

// published is everything that a record says is published: the set of its transactions, nil without GTIDs, and the place in the files.
func published(r *checkpoint.Record) (*canal.GTIDSet, canal.Position) {
	place := r.Position
	if r.Published != nil {
		place = *r.Published
	}
	set := place.GTIDs.Clone()
	if set != nil && set.Flavor() == canal.MySQL {
		for _, held := range r.Held {
			set.Add(held.GTID)
		}
	}
	place.GTIDs = set
	return set, place
}

// back goes back over the last n transactions that had events of this configuration and are published. It reads the binlog files from
// the last one backwards until it has found so many.
func (f *finder) back(ctx context.Context, n int) (*point, error) {
	if n < 1 {
		return nil, &canal.ConfigError{Err: fmt.Errorf("--transactions %d", n), Remedy: "write a number from 1 on"}
	}
	files, err := f.binlogs.Files(ctx)
	if err != nil {
		return nil, err
	}
	passed, until := published(f.before)
	last := len(files) - 1
	if passed == nil {
		for last > 0 && files[last].Name != until.File { // later files hold nothing that is published
			last--
		}
	}
	found := 0
	for i := last; i >= 0; i-- {
		start, err := f.at(f.binlogs.StartOf(ctx, files, i))
		if err != nil {
			return nil, err
		}
		if before(until, start.spot) {
			continue
		}
		from := start.record
		from.Server, from.SchemaVersion = f.binlogs.Server(), f.before.SchemaVersion
		trail := &trail{passed: passed, keep: n - found}
		if _, err := f.setup.read(ctx, stretch{
			what: "reading " + files[i].Name + " backwards", from: from, until: until, size: files[i].Size, history: f.schemas.copy(), sink: trail,
		}); err != nil {
			return nil, fmt.Errorf("read %s: %w", files[i].Name, err)
		}
		if found += len(trail.ids); found >= n {
			return f.at(f.ofEvent(ctx, trail.ids[0]))
		}
		_, until = start.ends()
	}
	remedy := fmt.Sprintf("--transactions %d is as far back as they go", found)
	if found == 0 {
		remedy = "there is nothing to go back over before the checkpoint; `binlogd checkpoint show` tells where it is"
	}
	return nil, &canal.SourceError{
		Err:    fmt.Errorf("the server's binlogs hold only %d published transactions with events of this configuration", found),
		Remedy: remedy,
	}
}

// ends is the point as the end of a stretch.
func (p *point) ends() (*canal.GTIDSet, canal.Position) {
	return p.passed, canal.Position{GTIDs: p.passed, File: p.spot.File, Offset: p.spot.Offset}
}

// before reports whether a place lies at or before a spot.
func before(p canal.Position, s *canal.Spot) bool {
	if p.GTIDs != nil && s.Read != nil {
		return s.Read.ContainsSet(p.GTIDs)
	}
	return p.File == s.File && p.Offset <= s.Offset
}

// trail is a sink that keeps the first events of the last few transactions.
type trail struct {
	counter
	passed *canal.GTIDSet // what counts; nil for all
	keep   int
	ids    []string // the last ones, oldest first
}

// Publish implements publish.Sink.
func (t *trail) Publish(_ context.Context, b *publish.Batch) error {
	for i := range b.Events {
		e := &b.Events[i]
		b.Confirm(i)
		name := e.GTID + transactionOf(e.Sequence)
		if name == t.last {
			continue
		}
		t.last = name
		if t.passed != nil {
			var g canal.GTID
			if err := g.UnmarshalText([]byte(e.GTID)); err != nil {
				return &publish.PermanentError{Event: e, Err: err}
			}
			if !t.passed.Contains(g) {
				continue
			}
		}
		t.ids = append(t.ids, strings.Clone(e.ID))
	}
	if n := len(t.ids); n > t.keep {
		t.ids = slices.Delete(t.ids, 0, n-t.keep)
	}
	return nil
}
