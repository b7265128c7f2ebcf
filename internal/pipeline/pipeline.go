// Package pipeline wires the parts together, and tells the whole story of one transaction:
//
//	source ──segments──▶ workers (decode, map) ──in commit order──▶ sink ──ack──▶ tracker ──▶ checkpoint store
//
// canal.Source reads and cuts the binlog into transactions. Workers take them several at a time, decode the rows and map
// them to events. The publisher takes the results in commit order, hands them to the sink in batches, and once the sink says
// that a batch is durable, tells the tracker. The saver writes the tracker's place down, twice a second.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// Defaults of Options.
const (
	DefaultDrainTimeout = 15 * time.Second
	lagInterval         = 2 * time.Second
)

// Options are the parts of a pipeline and how they are to work together.
type Options struct {
	Name string
	// Source says where and how to read; From, Captured and Logger are filled in here.
	Source canal.SourceOptions
	// Start is where to begin where Store has no checkpoint.
	Start  canal.Start
	Mapper *mapping.Mapper
	// Schemas completes table maps without full metadata.
	Schemas canal.Schemas
	// InvalidText is what becomes of bytes that are no text in their column's character set.
	InvalidText canal.InvalidText
	// Sink retries by itself: an error of it ends the run.
	Sink  publish.Sink
	Store checkpoint.Store
	// Together, where it is set, takes the place of Sink: events and the checkpoint behind them go to the sink in one step.
	Together *Together
	// History keeps the schemas of the time beside the checkpoint; nil keeps them while the pipeline runs.
	History canal.SchemaHistory
	// SaveInterval is the shortest time between two saves of the checkpoint.
	SaveInterval time.Duration
	// QuietInterval is the same while only transactions without events pass.
	QuietInterval time.Duration
	// SavePatience is how long a save that fails is tried again, at least; see checkpoint.Saver.
	SavePatience time.Duration
	// Workers decode and map; 0 means one for each processor.
	Workers int
	// DrainTimeout bounds what Run does after its context has ended: publish what was read, save the place.
	DrainTimeout time.Duration
	Logger       *slog.Logger
}

// Pipeline is one source, one mapping and one sink.
type Pipeline struct {
	opts     Options
	counters *counters
	slices   eventSlices
	started  time.Time
	mapper   atomic.Pointer[mapping.Mapper]

	// Set by Run before anything else can ask.
	running atomic.Pointer[running]
}

// running are the parts that exist while Run runs.
type running struct {
	source  *canal.Source
	decoder *canal.Decoder // whose clones the workers have
	tracker *checkpoint.Tracker
	saver   *checkpoint.Saver
	lag     *lag
}

// New returns a pipeline that Run runs.
func New(o Options) *Pipeline {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = DefaultDrainTimeout
	}
	if o.Source.Servers == nil {
		o.Source.Servers = canal.NewServers(o.Source.Connect)
	}
	p := &Pipeline{opts: o, counters: newCounters(), started: time.Now()}
	p.mapper.Store(o.Mapper)
	return p
}

// Mapper is the one in use.
func (p *Pipeline) Mapper() *mapping.Mapper { return p.mapper.Load() }

// SetMapper has m map what is read from the next whole transaction on. While Run runs, m must capture the same tables as the
// mapper before.
func (p *Pipeline) SetMapper(m *mapping.Mapper) { p.mapper.Store(m) }

// Run reads, maps and publishes until ctx ends or Source.Until is reached, which is no error, or something cannot go on. Whatever the reason, what was
// durable by then is in the checkpoint when it returns, unless the checkpoint itself is what failed.
func (p *Pipeline) Run(ctx context.Context) error {
	record, err := p.load(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	tracker := checkpoint.NewTracker(*record)
	saver := &checkpoint.Saver{Store: p.opts.Store, Tracker: tracker, Interval: p.opts.SaveInterval, QuietInterval: p.opts.QuietInterval, Patience: p.opts.SavePatience, Logger: p.opts.Logger}
	// The place is saved before anything is read, so that a restart before the first event resumes there, however long
	// that takes.
	if err := saver.Flush(ctx); err != nil {
		return ended(ctx, err)
	}
	source, err := p.open(ctx, record)
	if err != nil {
		return ended(ctx, err)
	}
	defer func() { _ = source.Close() }()
	if server := source.Server(); server.UUID == record.Server.UUID && server.ServerID == record.Server.ServerID {
		tracker.SetServer(server) // it may have been upgraded
	}
	tracker.SetSchemaVersion(source.SchemaVersion())
	decoder := canal.NewDecoder(canal.DecoderOptions{Captured: p.mapper.Load().Captured, Schemas: p.opts.Schemas, InvalidText: p.opts.InvalidText, Again: p.mapper.Load().Gathers()})
	r := &running{source: source, decoder: decoder, tracker: tracker, saver: saver, lag: newLag(p.opts.Source.Servers, tracker, p.opts.Logger)}
	p.running.Store(r)
	return p.run(ctx, r)
}

// run drives the stages until one ends. Reading stops when ctx ends; the stages behind it have DrainTimeout to finish what was
// read.
func (p *Pipeline) run(ctx context.Context, r *running) error {
	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(p.opts.DrainTimeout, cancel)
	})
	defer stop()

	saving, stopSaving := context.WithCancel(drain)
	stages, stage := errgroup.WithContext(drain)
	work := make(chan *job)
	order := make(chan *job, p.opts.Workers+queueLength)
	stages.Go(func() error { return p.dispatch(ctx, stage, r.source, work, order) })
	for range p.opts.Workers {
		stages.Go(func() error { return p.work(stage, r.decoder.Clone(), work) })
	}
	stages.Go(func() error {
		defer stopSaving()
		if p.opts.Together != nil {
			return p.publishTogether(stage, r, order)
		}
		return p.publish(stage, r.tracker, order)
	})
	if p.opts.Together == nil {
		stages.Go(func() error { return r.saver.Run(saving) })
	}
	stages.Go(func() error {
		r.lag.watch(saving)
		return nil
	})
	err := stages.Wait()
	if p.opts.Together != nil { // what was published is saved
		return ended(ctx, err)
	}

	final, done := context.WithTimeout(context.WithoutCancel(ctx), p.opts.DrainTimeout)
	defer done()
	if flushErr := r.saver.Flush(final); flushErr != nil && !checkpoint.Unusable(err) {
		err = errors.Join(flushErr, ended(ctx, err))
	}
	return ended(ctx, err)
}

// ended is err, unless it only says that the run was told to end.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// load reads the checkpoint, or makes the first one where none exists.
func (p *Pipeline) load(ctx context.Context) (*checkpoint.Record, error) {
	record, err := p.opts.Store.Load(ctx)
	if err == nil {
		return record, nil
	}
	if !errors.Is(err, checkpoint.ErrNotFound) {
		return nil, err
	}
	if _, err := p.opts.Source.Servers.Choose(ctx, canal.Resume{}); err != nil {
		return nil, fmt.Errorf("find the place to start from: %w", err)
	}
	from, err := canal.Locate(ctx, p.opts.Source.Servers.Present(), p.opts.Start)
	if err != nil {
		return nil, fmt.Errorf("find the place to start from: %w", err)
	}
	record = &checkpoint.Record{Name: p.opts.Name, Position: from.Position, Server: from.Server}
	p.opts.Logger.Info("starting without a checkpoint", "at", Describe(from.Position))
	return record, nil
}

// open opens the source at the place of the record.
func (p *Pipeline) open(ctx context.Context, record *checkpoint.Record) (*canal.Source, error) {
	o := p.opts.Source
	o.Captured = p.mapper.Load().Captured
	o.Logger = p.opts.Logger
	o.History = p.opts.History
	o.From = record.Resume()
	return canal.OpenSource(ctx, o)
}

// dispatch hands what is read to the workers, and in the same order to the publisher. It ends when ctx, which is for reading alone, or
// stage ends, or the source cannot go on: then the publisher still gets all that was read before.
func (p *Pipeline) dispatch(ctx, stage context.Context, source *canal.Source, work, order chan<- *job) error {
	defer close(work)
	defer close(order)
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stage, cancel)()
	var mapper *mapping.Mapper
	var pieces chain
	for {
		segment, err := source.Next(reading)
		if err != nil {
			if reading.Err() != nil || errors.Is(err, canal.ErrReached) {
				return nil
			}
			send(stage, order, &job{err: err, done: closed})
			return nil
		}
		if mapper == nil || segment.Transactions[0].Piece == 0 { // all pieces of a transaction are mapped alike
			mapper = p.mapper.Load()
		}
		j := &job{segment: segment, mapper: mapper, done: make(chan struct{})}
		if mapper.Gathers() {
			pieces.add(j)
		}
		if !send(stage, order, j) || !send(stage, work, j) {
			return nil
		}
	}
}

// send reports whether v was taken before ctx ended.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
