package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/publish"
)

func (a *app) checkCommand() *cobra.Command {
	var output outputFormat
	var against string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "See whether run would work, and what to mend",
		Long: `Looks at the server, the tables, the checkpoint and the sink, and prints one line
per check with the remedy below it. It changes nothing and can be run beside a
running binlogd.

The exit code is 0 only if run would work; otherwise it is the one that run would
end with: 2 configuration or account, 3 source, 4 sink, 5 checkpoint.

With --against it looks instead whether a switch to another server would be safe,
such as to a replica before the primary is taken down: which GTIDs of the
checkpoint are missing or purged there, which transactions it made itself, and
which settings differ. The exit code is 0 only if reading could go on there.`,
		Example: `  binlogd check -c binlogd.yaml
  binlogd check --source shop:secret@127.0.0.1:3306/shop
  binlogd check -c binlogd.yaml -o json
  binlogd check -c binlogd.yaml --against replica.example.com:3306`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			if against != "" {
				return a.checkAgainst(cmd.Context(), cfg, against, output)
			}
			return a.check(cmd.Context(), cfg, output)
		},
	}
	a.addConfigFlag(cmd)
	a.addQuickFlags(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().StringVar(&against, "against", "", "host:port of a server: would a switch to it be safe?")
	return cmd
}

// checkReport is the result of `check -o json`.
type checkReport struct {
	OK       bool          `json:"ok"`
	ExitCode int           `json:"exit_code"`
	Checks   []canal.Check `json:"checks"`

	good, bad string // in words, what the checks say
}

func newCheckReport(checks []canal.Check, good, bad string) checkReport {
	failed := failures(checks)
	return checkReport{OK: failed == nil, ExitCode: exitCode(failed), Checks: checks, good: good, bad: bad}
}

func (a *app) check(ctx context.Context, cfg *config, output outputFormat) error {
	record, checks := checkCheckpoint(ctx, cfg)
	checks = append(checks, preflight(ctx, cfg, record, func(ctx context.Context) ([]publish.Warning, error) { return a.lookAtSink(ctx, cfg) })...)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check was interrupted: %w", err)
	}
	return a.report(newCheckReport(checks, "run would work", "run would not work"), output)
}

// report prints the report, and ends the program with its exit code.
func (a *app) report(report checkReport, output outputFormat) error {
	var err error
	if output == outputJSON {
		err = writeJSON(a.stdout, report)
	} else {
		err = report.writeText(a.stdout)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if !report.OK {
		return &reportedError{report.ExitCode}
	}
	return nil
}

func (r checkReport) writeText(w io.Writer) error {
	width := 0
	counts := map[canal.CheckStatus]int{}
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
		counts[c.Status]++
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, c.Name, c.Detail)
		if c.Remedy != "" {
			fmt.Fprintf(&b, "      -> %s\n", c.Remedy)
		}
	}
	switch {
	case !r.OK:
		fmt.Fprintf(&b, "\n%s: %s, exit code %d\n", r.bad, plural(counts[canal.CheckFail], "failure"), r.ExitCode)
	case counts[canal.CheckWarn] > 0:
		fmt.Fprintf(&b, "\n%s, with %s\n", r.good, plural(counts[canal.CheckWarn], "warning"))
	default:
		fmt.Fprintf(&b, "\n%s\n", r.good)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
