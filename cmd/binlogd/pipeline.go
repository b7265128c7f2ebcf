package main

import (
	"context"
	"sync"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// publish runs the pipeline that cfg describes until ctx ends or it cannot go on.
func (a *app) publish(ctx context.Context, cfg *config, store checkpoint.Store, sink publish.Sink) error {
	mapper, err := mapping.New(cfg.mapping())
	if err != nil {
		return cfg.locateAll(err)
	}
	start, err := canal.ParseStart(cfg.Source.Start)
	if err != nil {
		return cfg.located(err)
	}
	p := pipeline.New(pipeline.Options{
		Name: cfg.Name,
		Source: canal.SourceOptions{
			Connect: cfg.Source.ConnectOptions, ServerID: cfg.Source.ServerID,
			Heartbeat: cfg.Source.Heartbeat, MaxInFlight: int64(cfg.Limits.InFlight),
		},
		Start: start, Mapper: mapper, Sink: publish.WithRetry(sink, publish.RetryOptions{Logger: a.logger}),
		Store: store, SaveInterval: cfg.Checkpoint.Interval, Workers: cfg.Limits.Workers, Logger: a.logger,
	})

	reporting, stopReporting := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	reporter.Go(func() { a.reportProgress(reporting, func() progress { return progressOf(p.Stats()) }) })
	err = p.Run(ctx)
	stopReporting()
	reporter.Wait()
	return err
}

// progressOf is what the status line shows of a pipeline's stats.
func progressOf(s pipeline.Stats) progress {
	p := progress{
		Connected: s.Source.Connected, Events: s.Events, Lag: s.Lag,
		InFlightBytes: s.Source.BytesInFlight, LastError: s.Source.LastError, Position: "the start",
	}
	if s.Source.Connected {
		p.LastError = ""
	}
	if s.Checkpoint != nil {
		p.Transactions = s.Checkpoint.Counters.Transactions
		p.Position = pipeline.Describe(s.Checkpoint.Position)
	}
	return p
}
