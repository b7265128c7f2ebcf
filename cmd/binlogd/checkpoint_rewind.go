package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/internal/travel"
)

func (a *app) checkpointRewindCommand() *cobra.Command {
	var flags moveFlags
	var to targetFlags
	cmd := &cobra.Command{
		Use:   "rewind",
		Short: "Go back, so that what came after a place is published again",
		Long: `Moves the checkpoint back. It finds the place in the server's binlogs, reads from there
to the checkpoint, and shows what that would publish again: the place before and
after, transactions, events by table and type, the statements in between that change
tables, and whether the schema history covers them. The events have the ids that they
had the first time.

On a terminal it asks then; --yes does without; otherwise it changes nothing. It is
refused while binlogd runs (exit code 6), unless --live has that process do it between
two transactions. ` + "`binlogd checkpoint undo`" + ` takes the move back.

What the ways to name the place mean:
  --to-gtid SET          the set counts as published, and nothing else
  --to-time T            the first transaction committed at or after T is the next
  --to-event ID          the transaction of that event is the next
  --transactions N       back over the last N transactions that had events of this
                         configuration
  --to-entry ID          the place of an entry of ` + "`binlogd checkpoint history`" + `
  --to-position F:POS    the transaction that begins there is the next`,
		Example: `  binlogd checkpoint rewind --to-time -3h
  binlogd checkpoint rewind --to-time '2026-11-29 10:00' --zone Europe/Berlin --yes --reason 'consumer lost its table'
  binlogd checkpoint rewind --transactions 100 --live
  binlogd checkpoint rewind --to-gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := to.target(cmd, time.Now())
			if err != nil {
				return err
			}
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.move(cmd.Context(), cfg, &flags, func(ctx context.Context, p *travel.Planner) (*travel.Plan, error) {
				return p.Rewind(ctx, target)
			}, nil)
		},
	}
	a.addMoveFlags(cmd, &flags)
	to.add(cmd)
	return cmd
}
