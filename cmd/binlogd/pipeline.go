package main

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/admin"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// publish runs the pipeline that cfg describes until ctx ends or it cannot go on, and tells
// people and machines how it does meanwhile. record is the checkpoint, nil where none exists.
func (a *app) publish(ctx context.Context, cfg *config, record *checkpoint.Record, store checkpoint.Store, sink publish.Sink, together *pipeline.Together) error {
	pipeline.TuneMemory()
	mapper, err := mapping.New(cfg.mapping())
	if err != nil {
		return cfg.locateAll(err)
	}
	start, err := canal.ParseStart(cfg.Source.Start)
	if err != nil {
		return cfg.located(err)
	}
	servers := canal.NewServers(cfg.Source.ConnectOptions)
	catalog := canal.NewCatalog(servers.Connect)
	defer func() { _ = catalog.Close() }() // it only reads
	watch := &sinkWatch{}
	retry := publish.RetryOptions{Logger: a.logger, OnRetry: watch.failed, OnRecovered: watch.recovered}
	if together != nil {
		together.Retry = retry
	}
	p := pipeline.New(pipeline.Options{
		Name: cfg.Name,
		Source: canal.SourceOptions{
			Connect: cfg.Source.ConnectOptions, Servers: servers, ServerID: cfg.Source.ServerID,
			Heartbeat: cfg.Source.Heartbeat, MaxInFlight: int64(cfg.Limits.InFlight),
		},
		Start: start, Mapper: mapper, Schemas: catalog, InvalidText: cfg.Source.invalidText(),
		Sink: publish.WithRetry(sink, retry), Together: together,
		Store: store, History: store.Schemas(), SaveInterval: cfg.Checkpoint.Interval, QuietInterval: cfg.Checkpoint.quietInterval(), SavePatience: cfg.Checkpoint.patience(), Workers: cfg.Limits.Workers, Logger: a.logger,
	})
	report := newReporter(cfg, p, watch, record)
	steering := newSteering()
	reload := &reloader{app: a, cfg: cfg, pipeline: p, servers: servers, steering: steering}
	server, err := admin.Listen(ctx, admin.Options{
		Listen: cfg.Admin.Listen, Snapshot: report.snapshot, DeadAfter: canal.SilenceLimit(cfg.Source.Heartbeat), Token: cfg.Admin.Token,
		Move: func(asking context.Context, request admin.MoveRequest) (string, error) {
			return steering.turn(asking, func(ctx context.Context) (string, error) {
				entry, err := moveCheckpoint(ctx, store, request)
				if err != nil { // whoever asked is told why
					a.logger.Warn("the checkpoint was not moved", "action", request.Action, "by", request.By.User, "reason", request.Reason, "error", err)
					return entry, err
				}
				a.logger.Info("moved the checkpoint", "action", request.Action, "by", request.By.User, "reason", request.Reason, "entry", entry)
				return entry, nil
			})
		},
		Reload: reload.reload,
		Logger: a.logger,
	})
	if err != nil {
		return err
	}

	if address := server.Address(); address != "" {
		a.logger.Info("admin server", "address", address)
	}
	// They report until the pipeline has drained, not only until it is told to stop.
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	var reporters sync.WaitGroup
	reporters.Go(func() { a.reportProgress(reporting, report.progress) })
	reporters.Go(func() {
		// Publishing goes on without it.
		if err := server.Serve(reporting); err != nil {
			a.logger.Error("the admin server ended", "error", err)
		}
	})
	reporters.Go(func() { reload.onSignal(reporting) })
	err = steering.run(ctx, p.Run)
	stopReporting()
	reporters.Wait()
	if err != nil {
		return err
	}
	s := report.snapshot()
	a.logger.Info("stopped", "events", s.Events, "transactions", s.Transactions, "position", s.Position)
	return nil
}

// sinkWatch remembers how publishing goes, as the retry decorator tells.
type sinkWatch struct {
	mu        sync.Mutex
	retries   uint64
	away      bool
	lastError string
}

func (w *sinkWatch) failed(err error, _ int, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retries++
	w.away, w.lastError = true, err.Error()
}

func (w *sinkWatch) recovered(time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = false
}

func (w *sinkWatch) state(kind string) admin.Sink {
	w.mu.Lock()
	defer w.mu.Unlock()
	return admin.Sink{Kind: kind, Connected: !w.away, LastError: w.lastError, Retries: w.retries}
}

// reporter turns a pipeline's stats into what the admin server and the status line show.
type reporter struct {
	cfg       *config
	pipeline  *pipeline.Pipeline
	watch     *sinkWatch
	build     buildInfo
	kind      string   // of the sink
	before    uint64   // transactions of earlier runs
	addresses []string // of the source
}

func newReporter(cfg *config, p *pipeline.Pipeline, watch *sinkWatch, record *checkpoint.Record) *reporter {
	kind, _, _ := strings.Cut(cfg.Publish.Describe(), " ")
	r := &reporter{cfg: cfg, pipeline: p, watch: watch, build: readBuildInfo(), kind: kind, addresses: canal.NewServers(cfg.Source.ConnectOptions).Addresses()}
	if record != nil {
		r.before = record.Counters.Transactions
	}
	return r
}

func (r *reporter) snapshot() admin.Snapshot {
	s := r.pipeline.Stats()
	sink := r.watch.state(r.kind)
	snapshot := admin.Snapshot{
		Name: r.cfg.Name, Version: r.build.Version, GoMySQL: r.build.GoMySQL, StartedAt: s.Started,
		Source: admin.Source{
			Address: cmp.Or(s.Source.Address, r.cfg.Source.Address), Addresses: r.addresses, Failovers: s.Source.Failovers, Connected: s.Source.Connected, LastHeardAt: s.Source.LastEventAt,
			LastError: s.Source.LastError, Reconnects: s.Source.Reconnects, Flavor: s.Source.Server.Flavor.String(),
			Version: s.Source.Server.Version, UUID: s.Source.Server.UUID, ServerID: s.Source.Server.ServerID,
		},
		Sink: sink, Position: "the start",
		LagSeconds: s.Lag.Seconds(), LagTransactions: s.LagTransactions, InFlightBytes: s.Source.BytesInFlight,
		CheckpointAt: s.SavedAt, Events: s.Events, Bytes: s.Bytes, ReplacedText: s.ReplacedText, Skipped: s.Skipped, LastError: sink.LastError,
	}
	if snapshot.LastError == "" {
		snapshot.LastError = s.Source.LastError
	}
	if s.Checkpoint != nil {
		snapshot.Position = pipeline.Describe(s.Checkpoint.Position)
		snapshot.Transactions = s.Checkpoint.Counters.Transactions - r.before
	}
	snapshot.Tables = make([]admin.Table, len(s.Tables))
	for i, t := range s.Tables {
		snapshot.Tables[i] = admin.Table(t)
	}
	return snapshot
}

// progress is the same for the status line.
func (r *reporter) progress() progress {
	s := r.snapshot()
	p := progress{
		Connected: s.Source.Connected, Events: s.Events, Transactions: s.Transactions,
		Lag:      time.Duration(max(s.LagSeconds, 0) * float64(time.Second)),
		Position: s.Position, InFlightBytes: s.InFlightBytes,
	}
	switch {
	case !s.Source.Connected:
		p.LastError = s.Source.LastError
	case !s.Sink.Connected:
		p.LastError = s.Sink.LastError
	}
	return p
}
