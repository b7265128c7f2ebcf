package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
)

func (a *app) checkpointUndoCommand() *cobra.Command {
	var flags moveFlags
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Take the last move by hand back",
		Long: `Moves the checkpoint to where it was before the last move by hand (rewind, set, undo,
import, convert), with the same preview. An undo is such a move itself: a second one
brings the first move back.`,
		Example: `  binlogd checkpoint undo
  binlogd checkpoint undo --yes --reason 'wrong server'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.move(cmd.Context(), cfg, &flags, undo, nil)
		},
	}
	a.addMoveFlags(cmd, &flags)
	return cmd
}

// undo plans to go back to before the last move by hand.
func undo(ctx context.Context, p *travel.Planner) (*travel.Plan, error) {
	entries, err := p.Reader.History(ctx)
	for i := range entries {
		e := &entries[i]
		if !e.Manual {
			continue
		}
		if e.Before == nil {
			return nil, &usageError{fmt.Errorf("entry %s of the history, %s, made the first checkpoint: there is no place to go back to", e.ID, e.Action)}
		}
		plan, err := p.Place(ctx, checkpoint.ActionUndo, e.Before)
		if err == nil {
			plan.Notes = append(plan.Notes, fmt.Sprintf("takes back entry %s: %s of %s", e.ID, e.Action, e.At.Format("2006-01-02T15:04:05Z07:00")))
		}
		return plan, err
	}
	if err != nil {
		return nil, err
	}
	return nil, &usageError{errors.New("the history has no move by hand: there is nothing to take back")}
}
