package travel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// ReplayAttribute is the attribute of a replayed event, and with ce_ before it the header, that holds the replay's name. CloudEvents
// allows lower-case letters and digits only.
const ReplayAttribute = "binlogdreplay"

// Replay is a stretch of the past to be published again, beside the run that goes on.
type Replay struct {
	// Name is what its events are marked with.
	Name string
	// From and To bound the stretch, by any target that names a place but ToEntry and ToTransactions; of ToGTID, From gives what the set
	// does not hold and To what it holds. Nil is the oldest transaction that the server has, and the newest that is published.
	From, To *Target
	// What to publish of the stretch; what is empty does not matter.
	GTIDs  string // exactly the transactions of this set (MySQL)
	IDs    []string
	Tables []string // patterns, as in the configuration
	Types  []string
	Keys   []string
	// Topic to publish to instead of the events' own; empty for those.
	Topic string
	// Rate is at most how many events go to the sink in a second; 0 for no limit.
	Rate float64
	Sink publish.Sink
	// Store keeps how far the replay is, so that it can be gone on with; nil keeps nothing.
	Store checkpoint.Store
}

// Replayed is what became of a replay.
type Replayed struct {
	Transactions uint64 // read
	Read         uint64 // events of the stretch
	Published    uint64 // of these, those that were asked for
	Resumed      bool   // an earlier run had begun it
}

// Run publishes the stretch. history is the pipeline's checkpoint, which is looked at only; it may hold none.
func (r *Replay) Run(ctx context.Context, s *Setup, history checkpoint.Reader) (*Replayed, error) {
	main, entries, binlogs, err := s.openPast(ctx, history)
	if err != nil {
		return nil, err
	}
	defer func() { _ = binlogs.Close() }() // it only reads
	schemas := newScratchHistory(entries)
	part, err := r.stretch(ctx, s, binlogs, schemas, main)
	if err != nil {
		return nil, err
	}
	sink, err := r.sink()
	if err != nil {
		return nil, err
	}
	part.sink, part.store = sink, r.Store
	result := &Replayed{}
	if part.store == nil {
		part.store = &scratchStore{record: &part.from}
	} else if err := r.begin(ctx, part, result); err != nil {
		return nil, err
	}
	record, err := s.read(ctx, *part)
	result.Read, result.Published = sink.read, sink.published
	if record != nil {
		result.Transactions = record.Counters.Transactions
	}
	return result, err
}

// begin writes the beginning of a replay down, or finds how far an earlier run of it came.
func (r *Replay) begin(ctx context.Context, part *stretch, result *Replayed) error {
	_, err := r.Store.Load(ctx)
	switch {
	case err == nil:
		result.Resumed = true
		return nil
	case errors.Is(err, checkpoint.ErrNotFound):
		return r.Store.Save(ctx, &part.from)
	}
	return err
}

// stretch finds the ends.
func (r *Replay) stretch(ctx context.Context, s *Setup, b *canal.Binlogs, schemas *scratchHistory, main *checkpoint.Record) (*stretch, error) {
	if main.Position.GTIDs == nil && b.Numbered() { // there is no checkpoint that says how places are counted
		main = &checkpoint.Record{Position: canal.Position{GTIDs: canal.NewGTIDSet(b.Server().Flavor)}}
	} else if !b.Numbered() && main.Name == "" {
		main = &checkpoint.Record{Server: b.Server()}
	}
	f := &finder{setup: s, binlogs: b, before: main, schemas: schemas}
	var from *point
	var until canal.Position
	var err error
	switch {
	case r.GTIDs != "":
		from, until, err = f.set(ctx, r.GTIDs)
	case len(r.IDs) > 0 && r.From == nil && r.To == nil:
		from, until, err = f.events(ctx, r.IDs)
	default:
		if r.From == nil {
			from, err = f.at(b.Oldest(ctx))
		} else {
			from, err = f.find(ctx, *r.From)
		}
		if err == nil {
			until, err = f.end(ctx, r.To)
		}
	}
	if err != nil {
		return nil, err
	}
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	record := from.record
	record.Name, record.Server, record.SchemaVersion = r.Name, b.Server(), main.SchemaVersion
	return &stretch{what: "replaying", from: record, until: until, size: distance(files, record.Position, until), history: schemas}, nil
}

// end is where a stretch ends: at a target, or where the checkpoint is, or where the server is if there is none.
func (f *finder) end(ctx context.Context, to *Target) (canal.Position, error) {
	switch {
	case to == nil && f.before.Name != "":
		_, until := published(f.before)
		return until, nil
	case to == nil:
		return f.binlogs.End(ctx)
	case to.Kind == ToTime: // that nothing is later is no mistake here
		spot, err := f.binlogs.Since(ctx, to.Time)
		point, err := f.at(spot, err)
		if err != nil {
			return canal.Position{}, err
		}
		_, until := point.ends()
		return until, nil
	}
	point, err := f.find(ctx, *to)
	if err != nil {
		return canal.Position{}, err
	}
	_, until := point.ends()
	return until, nil
}

// set is the stretch that holds all transactions of a set.
func (f *finder) set(ctx context.Context, text string) (*point, canal.Position, error) {
	if f.binlogs.Server().Flavor != canal.MySQL || !f.binlogs.Numbered() {
		return nil, canal.Position{}, &canal.ConfigError{Err: errors.New("--gtids names single transactions, which only sets of MySQL can"), Remedy: "name the ends of the stretch with --from-gtid and --to-gtid, or with --from-time and --to-time"}
	}
	set, err := canal.ParseGTIDSet(canal.MySQL, text)
	if err != nil {
		return nil, canal.Position{}, &canal.ConfigError{Err: fmt.Errorf("--gtids: %w", err), Remedy: "write a GTID set as the server does"}
	}
	end, err := f.binlogs.End(ctx)
	if err != nil {
		return nil, canal.Position{}, err
	}
	if unknown := set.Subtract(end.GTIDs); set.IsEmpty() || !unknown.IsEmpty() {
		return nil, canal.Position{}, &canal.ConfigError{Err: fmt.Errorf("--gtids: the server never executed %s", brief(unknown)), Remedy: "check source.address"}
	}
	from, err := f.at(f.binlogs.After(ctx, end.GTIDs.Subtract(set)))
	if err != nil {
		return nil, canal.Position{}, err
	}
	return from, canal.Position{GTIDs: from.passed.Union(set), File: end.File, Offset: end.Offset}, nil
}

// events is the stretch that holds the transactions of all events.
func (f *finder) events(ctx context.Context, ids []string) (from *point, until canal.Position, err error) {
	for _, id := range ids {
		spot, err := f.ofEvent(ctx, id)
		if err != nil {
			return nil, until, err
		}
		end := canal.Position{File: spot.File, Offset: spot.Offset + 1}
		if spot.Read != nil {
			end.GTIDs = spot.Read.Union(single(spot.Next.GTID))
		}
		if until.File == "" || until.Precedes(end) {
			until = end
		}
		if from == nil || end.Precedes(canal.Position{File: from.spot.File, Offset: from.spot.Offset + 1}) {
			if from, err = f.at(spot, nil); err != nil {
				return nil, until, err
			}
		}
	}
	return from, until, nil
}

// replaySink passes on what was asked for, marked as a replay, and no faster than allowed.
type replaySink struct {
	publish.Sink
	mark   string // the member of the event's JSON, with a comma behind it
	name   []byte
	topic  string
	ids    map[string]bool
	gtids  *canal.GTIDSet
	tables *mapping.Mapper
	types  []string
	keys   []string
	rate   float64
	next   time.Time // when the next event may go

	read, published uint64
}

func (r *Replay) sink() (*replaySink, error) {
	s := &replaySink{
		Sink: r.Sink, topic: r.Topic, types: r.Types, keys: r.Keys, rate: r.Rate, name: []byte(r.Name),
		mark: `"` + ReplayAttribute + `":` + strconv.Quote(r.Name) + `,`,
	}
	if len(r.IDs) > 0 {
		s.ids = make(map[string]bool, len(r.IDs))
		for _, id := range r.IDs {
			s.ids[id] = true
		}
	}
	var err error
	if r.GTIDs != "" {
		if s.gtids, err = canal.ParseGTIDSet(canal.MySQL, r.GTIDs); err != nil {
			return nil, err
		}
	}
	if len(r.Tables) > 0 {
		rules := make([]mapping.TableRule, len(r.Tables))
		for i, t := range r.Tables {
			rules[i].Table = t
		}
		if s.tables, err = mapping.New(mapping.Options{Name: "replay", Tables: rules}); err != nil {
			return nil, &canal.ConfigError{Err: fmt.Errorf("--table: %w", err), Remedy: "write database.table; * stands for any characters"}
		}
	}
	return s, nil
}

// Publish implements publish.Sink. Confirmed are all events of b, or none.
func (s *replaySink) Publish(ctx context.Context, b *publish.Batch) error {
	var chosen []mapping.Event
	for i := range b.Events {
		wanted, err := s.wants(&b.Events[i])
		if err != nil {
			return err
		}
		if wanted {
			chosen = append(chosen, s.marked(&b.Events[i]))
		}
	}
	for rest := chosen; len(rest) > 0; {
		n, err := s.pace(ctx, len(rest))
		if err != nil {
			return err
		}
		if err := s.Sink.Publish(ctx, publish.NewBatch(rest[:n])); err != nil {
			return err
		}
		s.published += uint64(n)
		rest = rest[n:]
	}
	s.read += uint64(len(b.Events))
	for i := range b.Events {
		b.Confirm(i)
	}
	return nil
}

func (s *replaySink) wants(e *mapping.Event) (bool, error) {
	if s.ids != nil && !s.ids[e.ID] || len(s.types) > 0 && !slices.Contains(s.types, e.Type) || len(s.keys) > 0 && !slices.Contains(s.keys, string(e.Key)) {
		return false, nil
	}
	if s.gtids != nil {
		var g canal.GTID
		if err := g.UnmarshalText([]byte(e.GTID)); err != nil {
			return false, &publish.PermanentError{Event: e, Err: err}
		}
		if !s.gtids.Contains(g) {
			return false, nil
		}
	}
	if s.tables != nil {
		database, table, _ := bytes.Cut([]byte(e.Table), []byte("."))
		return s.tables.Captured(string(database), string(table)), nil
	}
	return true, nil
}

// marked is e as an event of the replay: with its id, and what says that it is one.
func (s *replaySink) marked(e *mapping.Event) mapping.Event {
	m := *e
	if s.topic != "" {
		m.Topic = s.topic
	}
	m.Headers = append(slices.Clone(e.Headers), mapping.Header{Key: "ce_" + ReplayAttribute, Value: s.name})
	if rest, isObject := bytes.CutPrefix(e.Payload, []byte("{")); isObject && len(rest) > 1 && e.ContentType == "" { // in other forms, the headers say so
		m.Payload = slices.Concat([]byte("{"), []byte(s.mark), rest)
	}
	return m
}

// pace waits until an event may go, and says how many of n may.
func (s *replaySink) pace(ctx context.Context, n int) (int, error) {
	if s.rate <= 0 {
		return n, nil
	}
	now := time.Now()
	if s.next.Before(now) {
		s.next = now
	}
	timer := time.NewTimer(s.next.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	n = min(n, max(1, int(s.rate/10)))
	s.next = s.next.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
	return n, nil
}
