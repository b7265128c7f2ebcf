package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/publish"
)

func (a *app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Read the binlog and publish events until stopped",
		Long: `Reads the binlog from the checkpoint on, maps the row changes of the configured
tables into events and publishes them, until SIGINT or SIGTERM asks for an orderly
end. A second signal ends it at once.

Before it begins it makes the checks of ` + "`binlogd check`" + ` and refuses to start where
one fails. A restart (there is a checkpoint) waits for a source or sink that does
not answer, instead.

Without a configuration file, --source captures every table of one database and
writes events to standard output; no checkpoint is kept, so that nothing is left
behind, unless --checkpoint names a file.`,
		Example: `  binlogd run -c binlogd.yaml
  binlogd run --source shop:secret@127.0.0.1:3306/shop
  binlogd run --source shop@127.0.0.1:3306/shop --start earliest --sink file:events.jsonl --checkpoint shop.checkpoint`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.runUntilStopped(cmd.Context(), cfg)
		},
	}
	a.addConfigFlag(cmd)
	a.addQuickFlags(cmd)
	return cmd
}

// runUntilStopped takes the checkpoint's lock, opens the sink, makes sure that both ends
// answer, and publishes. What it opens it closes in reverse.
func (a *app) runUntilStopped(ctx context.Context, cfg *config) (err error) {
	a.logger.Info("starting", "version", readBuildInfo().Version, "configuration", cfg)
	if cfg.Publish.ExactlyOnce() {
		return a.runTogether(ctx, cfg)
	}
	store, err := a.openStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	record, err := store.Load(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	a.warnOfStore(ctx, store)
	sink, err := publish.Open(ctx, cfg.Publish, publish.Deps{Stdout: a.status.above(a.stdout), Logger: a.logger})
	if err != nil {
		return fmt.Errorf("open the sink %s: %w", cfg.Publish.Describe(), err)
	}
	defer func() { err = errors.Join(err, sink.Close()) }()

	if err := a.awaitReady(ctx, cfg, record, sink); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it waited
		}
		return err
	}
	return a.publish(ctx, cfg, record, store, sink, nil)
}

// warnOfStore logs what the store's server may cost.
func (a *app) warnOfStore(ctx context.Context, store checkpoint.Store) {
	survey, err := store.Survey(ctx)
	if err != nil {
		a.logger.Warn("the checkpoint's store cannot be looked at", "error", err) // saving tells whether it matters
	}
	for _, w := range survey.Warnings {
		a.logger.Warn(w.Detail, "check", "checkpoint settings", "remedy", w.Remedy)
	}
}

// Pauses between attempts to start again.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// awaitReady makes the preflight checks. A first start fails where one does: somebody is
// there to mend it. A restart, which has worked before, waits for a source or sink that is
// merely away, as the run itself would.
func (a *app) awaitReady(ctx context.Context, cfg *config, record *checkpoint.Record, sink publish.Sink) error {
	look := func(ctx context.Context) ([]publish.Warning, error) { return publish.Inspect(ctx, sink) }
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		checks := preflight(ctx, cfg, record, look)
		failed := failures(checks)
		if failed == nil {
			for _, c := range checks {
				if c.Status == canal.CheckWarn {
					a.logger.Warn(c.Detail, "check", c.Name, "remedy", c.Remedy)
				}
			}
			return nil
		}
		var passing interface{ passing() bool }
		if record == nil || !errors.As(failed, &passing) || !passing.passing() {
			return failed
		}
		a.logger.Warn("cannot start again yet", "error", failed, "next_attempt_in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
