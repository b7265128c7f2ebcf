package travel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// Plan is a move of a checkpoint that was thought through and not made: what it would do.
type Plan struct {
	Action        checkpoint.Action
	Before, After checkpoint.Record
	// Next is the first transaction in the binlog after the new place; nil at its end.
	Next *canal.Begins
	// Again is what will be published once more, Skipped what never will be.
	Again, Skipped *Contents
	// Statements change tables between the two places.
	Statements []Statement
	// Schemas are to be added to the schema history before a move forward: the statements that it passes over made them.
	Schemas []canal.SchemaEntry
	// Oldest is the oldest place that the server's binlogs reach back to.
	Oldest *canal.Spot
	// Problem is why a run could not go on from the new place; such a plan must not be carried out.
	Problem error
	Notes   []string
	Search  canal.Searched
}

// Statement is a logged statement that changes tables.
type Statement struct {
	At     string // GTID, or file and offset, of its transaction
	Text   string // abbreviated
	Tables []string
	// Unknown says why it is not known how a table looks behind it; empty where the schema history covers it.
	Unknown string
}

// Moves reports whether the plan changes anything.
func (p *Plan) Moves() bool { return p.Again != nil || p.Skipped != nil }

// ErrSkips says that a move would leave transactions out that nobody published.
var ErrSkips = errors.New("the place lies behind transactions that were not published yet")

// Carry moves the checkpoint as planned.
func (p *Plan) Carry(ctx context.Context, store checkpoint.Store, m checkpoint.Move) (checkpoint.Entry, error) {
	if len(p.Schemas) > 0 {
		if err := store.Schemas().Append(ctx, p.Schemas); err != nil {
			return checkpoint.Entry{}, err
		}
	}
	return store.Move(ctx, &p.After, m)
}

// Planner thinks moves of one checkpoint through.
type Planner struct {
	Setup  *Setup
	Reader checkpoint.Reader
}

// Rewind plans to move back to a target. The error wraps ErrSkips where the target lies ahead.
func (p *Planner) Rewind(ctx context.Context, target Target) (*Plan, error) {
	return p.plan(ctx, checkpoint.ActionRewind, func(ctx context.Context, f *finder) (*point, error) { return f.find(ctx, target) })
}

// Set plans to move to a target, wherever it lies.
func (p *Planner) Set(ctx context.Context, target Target) (*Plan, error) {
	return p.plan(ctx, checkpoint.ActionSet, func(ctx context.Context, f *finder) (*point, error) { return f.find(ctx, target) })
}

// Place plans to move to the place of a given record, for undo and convert.
func (p *Planner) Place(ctx context.Context, action checkpoint.Action, r *checkpoint.Record) (*Plan, error) {
	return p.plan(ctx, action, func(ctx context.Context, f *finder) (*point, error) {
		point, err := f.ofRecord(ctx, r)
		if err == nil {
			point.schemaVersion = r.SchemaVersion
		}
		return point, err
	})
}

func (p *Planner) plan(ctx context.Context, action checkpoint.Action, find func(context.Context, *finder) (*point, error)) (*Plan, error) {
	record, err := p.Reader.Load(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := p.Reader.SchemaEntries(ctx)
	if err != nil {
		return nil, err
	}
	binlogs, err := p.Setup.openBinlogs(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = binlogs.Close() }() // it only reads
	f := &finder{setup: p.Setup, binlogs: binlogs, before: record, reader: p.Reader, schemas: newScratchHistory(entries)}
	found, err := find(ctx, f)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Action: action, Before: *record, Next: found.spot.Next, Notes: found.notes, Search: binlogs.Searched()}
	if plan.Oldest, err = binlogs.Oldest(ctx); err != nil {
		return nil, err
	}
	return plan, p.weigh(ctx, plan, f, found)
}

// weigh fills in what a move to a point would do.
func (p *Planner) weigh(ctx context.Context, plan *Plan, f *finder, to *point) error {
	passed, here := published(f.before)
	again, skips := to.differs(passed, here)
	if plan.Action == checkpoint.ActionRewind && skips {
		return fmt.Errorf("%w: rewind goes back only; `binlogd checkpoint set --skip` leaves transactions out", ErrSkips)
	}
	plan.After = *f.before
	plan.After.Position, plan.After.Held, plan.After.Published, plan.After.Partial = to.record.Position, to.record.Held, to.record.Published, to.record.Partial
	plan.After.Server = f.binlogs.Server()
	if !skips && passed != nil {
		plan.withoutGaps(passed, to)
	}
	if in := f.before.Partial; in != nil && again {
		plan.Notes = append(plan.Notes, fmt.Sprintf("transaction %s was being published: its %d row changes so far come again too", partialName(in), in.Place))
	}
	files, err := f.binlogs.Files(ctx)
	if err != nil {
		return err
	}
	if again {
		plan.After.SchemaVersion = f.before.SchemaVersion
		history := f.schemas.copy()
		plan.Again, _, plan.Problem = p.count(ctx, "counting what will be published again", plan.After, here, files, history)
		plan.Statements = history.between(plan.After.Position, here)
	}
	if skips {
		_, end := to.ends()
		history := f.schemas.copy()
		contents, behind, err := p.count(ctx, "counting what will be left out", *f.before, end, files, history)
		plan.Skipped = contents
		plan.Statements = append(plan.Statements, history.between(f.before.Position, end)...)
		if err == nil {
			plan.After.SchemaVersion, plan.Schemas = behind.SchemaVersion, history.added()
		} else {
			plan.Notes = append(plan.Notes, "what is left out cannot all be counted: "+err.Error())
			plan.After.SchemaVersion = f.versionAhead(to.schemaVersion)
		}
	}
	return ctx.Err()
}

// differs tells what of the published transactions a point gives again, and whether it passes over others.
func (p *point) differs(passed *canal.GTIDSet, here canal.Position) (again, skips bool) {
	if passed != nil {
		return !passed.Subtract(p.passed).IsEmpty(), !p.passed.Subtract(passed).IsEmpty()
	}
	there := canal.Position{File: p.spot.File, Offset: p.spot.Offset}
	if place := p.record.Published; place != nil {
		there = *place
	}
	return there.Precedes(here), here.Precedes(there)
}

// withoutGaps leaves out of the new place what was never published: after a move back it must still come.
func (p *Plan) withoutGaps(passed *canal.GTIDSet, to *point) {
	if passed.Flavor() != canal.MySQL {
		return
	}
	missing := to.passed.Subtract(passed)
	if to.spot.Read != nil {
		missing = to.spot.Read.Subtract(passed).Subtract(heldSet(p.Before.Held))
	}
	if missing.IsEmpty() {
		return
	}
	p.After.Position.GTIDs = p.After.Position.GTIDs.Intersect(passed)
	p.Notes = append(p.Notes, fmt.Sprintf("%s stand before the place and were not published yet: they come too", brief(missing)))
}

func heldSet(held []canal.Prepared) *canal.GTIDSet {
	set := canal.NewGTIDSet(canal.MySQL)
	for _, h := range held {
		set.Add(h.GTID)
	}
	return set
}

func partialName(p *checkpoint.Partial) string {
	if !p.GTID.IsZero() {
		return p.GTID.String()
	}
	return fmt.Sprintf("%s:%d", p.File, p.Start)
}

// count reads a stretch and counts what it gives, and gives the record behind it. With an error both are those up to it.
func (p *Planner) count(ctx context.Context, what string, from checkpoint.Record, until canal.Position, files []canal.BinlogFile, history *scratchHistory) (*Contents, *checkpoint.Record, error) {
	counter := newCounter()
	from.Counters, from.Partial = checkpoint.Counters{}, nil
	record, err := p.Setup.read(ctx, stretch{what: what, from: from, until: until, size: distance(files, from.Position, until), history: history, sink: counter})
	contents := counter.total(0)
	if record != nil {
		contents.Transactions = record.Counters.Transactions
	}
	return &contents, record, err
}

// distance is how many bytes of binlog lie between two places, as far as the files are this server's.
func distance(files []canal.BinlogFile, from, until canal.Position) uint64 {
	total := uint64(0)
	for _, f := range files {
		begins, ends := canal.Position{File: f.Name}, canal.Position{File: f.Name, Offset: f.Size}
		if begins.Precedes(from) {
			begins = from
		}
		if until.Precedes(ends) {
			ends = until
		}
		if begins.File == f.Name && ends.File == f.Name && begins.Offset < ends.Offset {
			total += ends.Offset - begins.Offset
		}
	}
	return total
}

// versionAhead is the schema version for a place ahead of what can be read. Where the statements in between were read once, as before
// a rewind that is undone, the history has them, and goes on; otherwise it begins anew.
func (f *finder) versionAhead(version uint64) uint64 {
	f.schemas.mu.Lock()
	defer f.schemas.mu.Unlock()
	if n := f.schemas.known; version > 0 && n > 0 && f.schemas.entries[n-1].Version >= version {
		return version
	}
	return 0
}

// between gives the statements that change tables between two places.
func (h *scratchHistory) between(from, until canal.Position) []Statement {
	h.mu.Lock()
	defer h.mu.Unlock()
	var statements []Statement
	for _, e := range canal.Settle(h.entries) {
		if e.Statement == "" || e.Start != nil || e.Within(from) || !e.Within(until) {
			continue
		}
		at := fmt.Sprintf("%s:%d", e.File, e.Offset)
		if !e.GTID.IsZero() {
			at = e.GTID.String()
		}
		i := slices.IndexFunc(statements, func(s Statement) bool { return s.At == at && s.Text == e.Statement })
		if i < 0 {
			i = len(statements)
			statements = append(statements, Statement{At: at, Text: e.Statement})
		}
		s := &statements[i]
		name := e.Database
		if e.Table != "" {
			name += "." + e.Table
		}
		if !slices.Contains(s.Tables, name) {
			s.Tables = append(s.Tables, name)
		}
		if e.Unknown != "" && s.Unknown == "" {
			s.Unknown = e.Unknown
		}
	}
	return statements
}
