package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/checkpoint"
)

// defaultShown is how many entries are shown to people.
const defaultShown = 50

func (a *app) checkpointHistoryCommand() *cobra.Command {
	var output outputFormat
	var limit int
	var manual bool
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show where the checkpoint was before, who moved it and why",
		Long: `Prints the history of the checkpoint, newest first, without locking it. Each save has
an entry; automatic ones are thinned out with age: all of the last hour, one a
minute for a day, one an hour before that. Moves by hand are kept for good. The
number of an entry stays the same; "binlogd checkpoint rewind --to-entry" takes it.`,
		Example: `  binlogd checkpoint history -c binlogd.yaml
  binlogd checkpoint history --manual
  binlogd checkpoint history --limit 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			if limit < 0 {
				return &usageError{errors.New("--limit: write a number of entries, or 0 for all")}
			}
			if !cmd.Flags().Changed("limit") && output == outputJSON {
				limit = 0
			}
			return a.showHistory(cmd.Context(), cfg, limit, manual, output)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().IntVarP(&limit, "limit", "n", defaultShown, "how many entries, newest first; 0 for all (the default with -o json)")
	cmd.Flags().BoolVar(&manual, "manual", false, "moves by hand only")
	return cmd
}

// shownEntry is an entry of the result of `checkpoint history`.
type shownEntry struct {
	ID       string         `json:"id"`
	At       time.Time      `json:"at"`
	Action   string         `json:"action"`
	Manual   bool           `json:"manual"`
	By       shownHolder    `json:"by"`
	Reason   string         `json:"reason,omitempty"`
	From     *shownPosition `json:"from,omitempty"` // of moves by hand
	Position shownPosition  `json:"position"`
	Counters shownCounters  `json:"counters"`
}

type shownHolder struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
	User string `json:"user,omitempty"`
}

func (a *app) showHistory(ctx context.Context, cfg *config, limit int, manual bool, output outputFormat) (err error) {
	reader, err := viewStore(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	history, damage := reader.History(ctx)
	var told *checkpoint.HistoryError
	if damage != nil && !errors.As(damage, &told) {
		return damage
	}
	if told != nil {
		a.logger.Warn("a part of the history cannot be read", "error", told)
	}
	shown := make([]shownEntry, 0, len(history))
	for i := range history {
		if !manual || history[i].Manual {
			shown = append(shown, newShownEntry(&history[i]))
		}
	}
	older := 0
	if limit > 0 && len(shown) > limit {
		older = len(shown) - limit
		shown = shown[:limit]
	}
	if output == outputJSON {
		return writeJSON(a.stdout, shown)
	}
	return writeHistory(a.stdout, shown, older)
}

func newShownEntry(e *checkpoint.Entry) shownEntry {
	s := shownEntry{
		ID: e.ID, At: e.At, Action: string(e.Action), Manual: e.Manual, By: shownHolder{e.By.PID, e.By.Host, e.By.User}, Reason: e.Reason,
		Position: newShownPosition(e.Record.Position), Counters: shownCounters(e.Record.Counters),
	}
	if e.From != nil {
		from := newShownPosition(*e.From)
		s.From = &from
	}
	return s
}

func writeHistory(w io.Writer, shown []shownEntry, older int) error {
	var b strings.Builder
	if len(shown) == 0 {
		b.WriteString("the history is empty: `binlogd run` begins it\n")
	}
	for _, e := range shown {
		who := fmt.Sprintf("process %d on %s", e.By.PID, e.By.Host)
		if e.By.User != "" {
			who = e.By.User + ", " + who
		}
		fmt.Fprintf(&b, "%8s  %s  %-8s  %s  (%s)\n", e.ID, e.At.UTC().Format(time.RFC3339), e.Action, e.Position.line(), who)
		if e.From != nil {
			fmt.Fprintf(&b, "%8s  from %s\n", "", e.From.line())
		}
		if e.Reason != "" {
			fmt.Fprintf(&b, "%8s  because: %s\n", "", oneLine(e.Reason))
		}
	}
	if older > 0 {
		fmt.Fprintf(&b, "%8s  and %d older: --limit 0 shows all\n", "", older)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line is a position on one line.
func (p shownPosition) line() string {
	file := fmt.Sprintf("%s:%d", p.File, p.Offset)
	switch {
	case p.GTIDs == "":
		return file
	case p.File == "":
		return p.GTIDs
	}
	return p.GTIDs + " " + file
}
