package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
)

// preview is what `binlogd mapping preview` is to look at.
type preview struct {
	last         string
	transactions int
	output       outputFormat
}

// target is where the stretch begins.
func (p *preview) target(now time.Time) (travel.Target, error) {
	if p.transactions != 0 {
		if p.transactions < 1 {
			return travel.Target{}, &usageError{fmt.Errorf("--transactions %d: write a number from 1 on", p.transactions)}
		}
		return travel.Target{Kind: travel.ToTransactions, Transactions: p.transactions}, nil
	}
	at, err := travel.ParseTime("-"+strings.TrimPrefix(p.last, "-"), time.UTC, now)
	if err != nil {
		return travel.Target{}, &usageError{fmt.Errorf("--last %w", err)}
	}
	return travel.Target{Kind: travel.ToTime, Time: at}, nil
}

// previewContents reads the stretch. The checkpoint that a rewind would be planned from is the binlog's end, whatever the real one says.
func (a *app) previewContents(ctx context.Context, cfg *config, p *preview) (*travel.Contents, error) {
	target, err := p.target(time.Now())
	if err != nil {
		return nil, err
	}
	end, err := canal.Locate(ctx, cfg.Source.reach(ctx, nil), canal.Start{Kind: canal.StartLatest})
	if err != nil {
		return nil, err
	}
	reader := &endOfBinlog{record: checkpoint.Record{Name: cfg.Name, Position: end.Position, Server: end.Server}}
	setup, done, err := a.travelSetup(ctx, cfg, reader)
	if err != nil {
		return nil, err
	}
	defer done()
	plan, err := (&travel.Planner{Setup: setup, Reader: reader}).Rewind(ctx, target)
	if err != nil {
		return nil, err
	}
	if plan.Problem != nil {
		return nil, plan.Problem
	}
	if plan.Again == nil {
		return &travel.Contents{}, nil
	}
	return plan.Again, nil
}

// endOfBinlog is a checkpoint at the end of the binlog, without a past.
type endOfBinlog struct {
	checkpoint.None
	record checkpoint.Record
}

// Load implements checkpoint.Reader.
func (e *endOfBinlog) Load(context.Context) (*checkpoint.Record, error) {
	record := e.record
	return &record, nil
}

// printPreview shows the counts.
func (a *app) printPreview(c *travel.Contents, p *preview) error {
	if p.output == outputJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(newShownContents(c))
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "events\ttype\ttable\ttopic\n")
	for _, t := range c.Tables {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", t.Events, printable(t.Type), printable(t.Table), printable(t.Topic))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s, of %d that were read, give %s; nothing was published.\n",
		plural(int(c.WithEvents), "transaction"), c.Transactions, plural(int(c.Events), "event"))
	return err
}
