package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
	"github.com/binlogd/binlogd/publish"
)

// replayFlags are those of `replay`.
type replayFlags struct {
	gtids, fromGTID, toGTID, fromTime, toTime, fromPosition, toPosition, zone string
	ids, tables, types, keys                                                  []string
	sink, topic, name, progress                                               string
	rate                                                                      float64
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Publish a stretch of the past to a sink of choice, leaving the checkpoint alone",
		Long: `Reads a stretch of the server's binlogs and publishes its events, with the ids that they
had the first time, to standard output or another sink. The checkpoint is not touched,
and binlogd may run meanwhile.

The stretch goes from the oldest binlog to the checkpoint, unless flags say otherwise; of
it, all events are published that fit every flag. Each is marked: the attribute
` + travel.ReplayAttribute + ` of the event and, in Kafka, the header ce_` + travel.ReplayAttribute + ` hold the replay's name.

With --progress FILE it can be interrupted: the next run goes on where that one was.`,
		Example: `  binlogd replay --from-time -3h --table shop.orders
  binlogd replay --from-time 2026-11-29T10:00:00Z --to-time 2026-11-29T12:00:00Z --type order.paid --sink kafka:127.0.0.1:9092 --topic orders.again --rate 500
  binlogd replay --gtids 3e11fa47-71ca-11e1-9e33-c80aa9429562:23-42 --sink configured --progress again.progress`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.replay(cmd.Context(), cfg, &f)
		},
	}
	a.addConfigFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.gtids, "gtids", "", "exactly the transactions of this set (MySQL)")
	flags.StringVar(&f.fromGTID, "from-gtid", "", "begin with what this set does not hold")
	flags.StringVar(&f.toGTID, "to-gtid", "", "end where this set is published")
	flags.StringVar(&f.fromTime, "from-time", "", "begin with the first transaction committed at or after this time: as for `checkpoint rewind --to-time`")
	flags.StringVar(&f.toTime, "to-time", "", "end before the first transaction committed at or after this time")
	flags.StringVar(&f.fromPosition, "from-position", "", "begin with the transaction at FILE:POS")
	flags.StringVar(&f.toPosition, "to-position", "", "end before the transaction at FILE:POS")
	flags.StringVar(&f.zone, "zone", "", "the time zone of times that state none: UTC, Local or a name such as Europe/Berlin")
	flags.StringSliceVar(&f.ids, "id", nil, "only the events with these ids; without other bounds the stretch is theirs")
	flags.StringSliceVar(&f.tables, "table", nil, "only tables that fit one of these patterns, database.table")
	flags.StringSliceVar(&f.types, "type", nil, "only events of these types")
	flags.StringSliceVar(&f.keys, "key", nil, "only events with these partition keys")
	flags.StringVar(&f.sink, "sink", "stdout", "stdout, file:PATH, kafka:HOST:PORT, redis:HOST:PORT, or configured for the configuration's")
	flags.StringVar(&f.topic, "topic", "", "publish to this topic instead of the events' own")
	flags.StringVar(&f.name, "name", "", "what the events are marked with (default: replay and the time)")
	flags.StringVar(&f.progress, "progress", "", "keep in this file how far it is, and go on from there")
	flags.Float64Var(&f.rate, "rate", 0, "at most so many events a second (default: as fast as it goes)")
	cmd.MarkFlagsMutuallyExclusive("gtids", "from-gtid", "from-time", "from-position")
	cmd.MarkFlagsMutuallyExclusive("gtids", "to-gtid", "to-time", "to-position")
	complete(cmd, "sink", "stdout", "configured")
	return cmd
}

// bounds are the ends of the stretch; nil where none is given.
func (f *replayFlags) bounds(now time.Time) (from, to *travel.Target, err error) {
	bound := func(name, gtid, at, position string) (*travel.Target, error) {
		switch {
		case gtid != "":
			return &travel.Target{Kind: travel.ToGTID, Text: gtid}, nil
		case at != "":
			t, err := parseTimeFlag("--"+name+"-time", at, f.zone, now)
			return &travel.Target{Kind: travel.ToTime, Time: t}, err
		case position != "":
			file, offset, err := travel.ParsePosition(position)
			if err != nil {
				return nil, &usageError{fmt.Errorf("--%s-position %w", name, err)}
			}
			return &travel.Target{Kind: travel.ToPosition, File: file, Offset: offset}, nil
		}
		return nil, nil //nolint:nilnil // no bound is no failure
	}
	if from, err = bound("from", f.fromGTID, f.fromTime, f.fromPosition); err != nil {
		return nil, nil, err
	}
	to, err = bound("to", f.toGTID, f.toTime, f.toPosition)
	return from, to, err
}

func (a *app) replay(ctx context.Context, cfg *config, f *replayFlags) (err error) {
	now := time.Now()
	from, to, err := f.bounds(now)
	if err != nil {
		return err
	}
	if f.rate < 0 {
		return &usageError{fmt.Errorf("--rate %v: write a number of events above 0", f.rate)}
	}
	name := f.name
	if name == "" {
		name = "replay-" + now.UTC().Format("20060102T150405Z")
		if f.progress != "" { // it must be the same when it goes on
			name = "replay-" + legalName(f.progress)
		}
	}
	if !pipelineName.MatchString(name) {
		return &usageError{fmt.Errorf("--name %q: write up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit", name)}
	}
	options := cfg.Publish
	if f.sink != "configured" {
		if options, err = parseSink(f.sink); err != nil {
			return &usageError{fmt.Errorf("--sink %q: %w, or configured", f.sink, err)}
		}
	}
	reader, err := viewStore(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	sink, err := publish.Open(ctx, options, publish.Deps{Stdout: a.status.above(a.stdout), Logger: a.logger})
	if err != nil {
		return fmt.Errorf("open the sink %s: %w", options.Describe(), err)
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	// Who waits at the terminal is told that the sink does not answer, as a first run is; later it is waited for.
	if err := sink.Ping(ctx); err != nil {
		if _, refused := errors.AsType[*publish.PermanentError](err); !refused {
			err = &unavailableError{code: exitSink, err: err}
		}
		return fmt.Errorf("look at the sink %s: %w", options.Describe(), err)
	}
	r := &travel.Replay{
		Name: name, From: from, To: to, GTIDs: f.gtids, IDs: f.ids, Tables: f.tables, Types: f.types, Keys: f.keys, Topic: f.topic, Rate: f.rate,
		Sink: publish.WithRetry(sink, publish.RetryOptions{Logger: a.logger}),
	}
	if f.progress != "" {
		store, openErr := checkpoint.OpenFile(f.progress, name)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		r.Store = store
	}
	setup, end, err := a.travelSetup(ctx, cfg, reader)
	if err != nil {
		return err
	}
	result, err := r.Run(ctx, setup, reader)
	end()
	if result != nil {
		a.logger.Info("replayed", "name", name, "to", options.Describe(), "published", result.Published, "events_read", result.Read,
			"transactions", result.Transactions, "resumed", result.Resumed)
	}
	if ctx.Err() != nil && f.progress != "" {
		return fmt.Errorf("interrupted; the same command with --progress %s goes on: %w", f.progress, ctx.Err())
	}
	return err
}
