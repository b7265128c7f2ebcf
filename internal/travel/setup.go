// Package travel goes through the past of a source: it finds places in it, tells what lies between two of them, moves checkpoints there,
// publishes a stretch again, and takes an event back to its transaction.
//
// A stretch is read by the same pipeline that publishes, bounded at both ends, with a sink that counts, filters or looks; so what a
// preview says is what a run would do.
package travel

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// Setup is what a pipeline's configuration says about reading its past.
type Setup struct {
	Name        string
	Connect     canal.ConnectOptions
	Mapper      *mapping.Mapper
	Schemas     canal.Schemas
	InvalidText canal.InvalidText
	MaxInFlight int64
	Workers     int
	Logger      *slog.Logger
	// Watch, if not nil, is told now and then how far a search or a stretch is. It may be called by another goroutine, one call at a
	// time.
	Watch func(Progress)
}

// Progress is how far something is that takes a while.
type Progress struct {
	What  string // "looking for the place", "reading the stretch"
	Bytes uint64 // done
	Total uint64 // to do, about; 0 where it is not known
	// Events of the stretch so far.
	Events uint64
	Since  time.Time // when it began
}

// Left is how long it may still take; 0 where that cannot be said.
func (p Progress) Left() time.Duration {
	took := time.Since(p.Since)
	if p.Bytes == 0 || p.Total <= p.Bytes || took < time.Second {
		return 0
	}
	return time.Duration(float64(took) * float64(p.Total-p.Bytes) / float64(p.Bytes))
}

// stretch is a part of the binlog, from the place of a record to another.
type stretch struct {
	what  string // for Progress
	from  checkpoint.Record
	until canal.Position
	size  uint64 // in bytes, about
	// history is read and added to while the stretch is read; it is not written back.
	history *scratchHistory
	sink    publish.Sink
	// store keeps how far it is; nil where nobody needs that.
	store checkpoint.Store
}

// read reads, maps and hands to the stretch's sink what lies between its ends. It gives the record behind what the sink confirmed.
func (s *Setup) read(ctx context.Context, r stretch) (*checkpoint.Record, error) {
	if r.store == nil {
		r.store = &scratchStore{record: &r.from}
	}
	p := pipeline.New(pipeline.Options{
		Name: s.Name,
		Source: canal.SourceOptions{
			Connect: s.Connect, MaxInFlight: s.MaxInFlight, Until: &r.until,
			Heartbeat: time.Second, // tells soon that there is nothing more
		},
		Mapper: s.Mapper, Schemas: s.Schemas, InvalidText: s.InvalidText, Sink: r.sink, Store: r.store, History: r.history,
		Workers: s.Workers, Logger: s.quiet(),
	})
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.follow(watching, r, p) })
	err := p.Run(ctx)
	stop()
	watch.Wait()
	if err == nil {
		err = ctx.Err()
	}
	record, loadErr := r.store.Load(context.WithoutCancel(ctx))
	if err == nil {
		err = loadErr
	}
	return record, err
}

const watchInterval = 200 * time.Millisecond

// follow tells how far the reading of a stretch is.
func (s *Setup) follow(ctx context.Context, r stretch, p *pipeline.Pipeline) {
	if s.Watch == nil {
		return
	}
	began := time.Now()
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			stats := p.Stats()
			s.Watch(Progress{What: r.what, Bytes: stats.Source.BytesRead, Total: r.size, Events: stats.Events, Since: began})
		}
	}
}

// quiet is the logger without what is of interest to a daemon only.
func (s *Setup) quiet() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(warnings{s.Logger.Handler()})
}

// warnings passes warnings and errors on.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

// openBinlogs looks at the source's binlogs and tells how its searches go.
func (s *Setup) openBinlogs(ctx context.Context) (*canal.Binlogs, error) {
	if s.Watch == nil {
		return canal.OpenBinlogs(ctx, s.Connect, nil)
	}
	began := time.Now()
	return canal.OpenBinlogs(ctx, s.Connect, func(sofar canal.Searched) {
		s.Watch(Progress{What: "looking for the place", Bytes: sofar.Bytes, Total: sofar.Total, Since: began})
	})
}

// scratchStore keeps a record in memory.
type scratchStore struct {
	checkpoint.None
	mu     sync.Mutex
	record *checkpoint.Record
}

func (s *scratchStore) Load(context.Context) (*checkpoint.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record := *s.record
	return &record, nil
}

func (s *scratchStore) Save(_ context.Context, r *checkpoint.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = r
	return nil
}

// scratchHistory is a schema history that is added to in memory only.
type scratchHistory struct {
	mu      sync.Mutex
	entries []canal.SchemaEntry
	known   int // of the entries, how many were there at first
}

func newScratchHistory(entries []canal.SchemaEntry) *scratchHistory {
	return &scratchHistory{entries: slices.Clone(entries), known: len(entries)}
}

// Load implements canal.SchemaHistory.
func (h *scratchHistory) Load(context.Context, uint64) ([]canal.SchemaEntry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries), nil
}

// Append implements canal.SchemaHistory.
func (h *scratchHistory) Append(_ context.Context, entries []canal.SchemaEntry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, entries...)
	return nil
}

// copy is another one with the same entries.
func (h *scratchHistory) copy() *scratchHistory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return newScratchHistory(h.entries[:h.known])
}

// added are the entries that were not there at first.
func (h *scratchHistory) added() []canal.SchemaEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries[h.known:])
}
