package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/internal/travel"
)

func (a *app) checkpointSetCommand() *cobra.Command {
	var flags moveFlags
	var to targetFlags
	var skip bool
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Move to any place, also forward, which leaves events out",
		Long: `Moves the checkpoint as ` + "`binlogd checkpoint rewind`" + ` does, and forward too. Forward means
that transactions which nobody published are left out: their events are lost, and
consumers must be brought up to date by other means. The preview counts them, and
--skip has to be spelled out.`,
		Example: `  binlogd checkpoint set --to-gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-99
  binlogd checkpoint set --to-position binlog.000042:157 --skip --yes --reason 'bulk load, not of interest'`,
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
				return p.Set(ctx, target)
			}, func(p *travel.Plan) error {
				if p.Skipped != nil && !skip {
					return &usageError{fmt.Errorf("%w: their %d events would be lost; add --skip if that is what you want", travel.ErrSkips, p.Skipped.Events)}
				}
				return nil
			})
		},
	}
	a.addMoveFlags(cmd, &flags)
	to.add(cmd)
	cmd.Flags().BoolVar(&skip, "skip", false, "move forward too: events in between are lost")
	return cmd
}
