package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/internal/travel"
	"github.com/binlogd/binlogd/publish"
)

func (a *app) traceCommand() *cobra.Command {
	var output outputFormat
	var noSink bool
	cmd := &cobra.Command{
		Use:   "trace ID",
		Short: "From an event's id to its transaction, the row before and after, and where it was published",
		Long: `Finds the transaction that an event came from in the server's binlogs, reads it, and
shows GTID, file and position, commit time, the row before and after, the entry of the
configuration that made the event, and the event. Then it looks for it in the sink: in
Kafka the topic, partition and offset, in Redis the stream and entry, in a file the line.

It changes nothing and can be run beside a running binlogd.`,
		Example: `  binlogd trace 3e11fa4771ca11e19e33c80aa9429562-000000000000n-5f0p2kq8c1v7t3m9a
  binlogd trace 3e11fa4771ca11e19e33c80aa9429562-000000000000n-5f0p2kq8c1v7t3m9a --no-sink -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.trace(cmd.Context(), cfg, args[0], !noSink, output)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().BoolVar(&noSink, "no-sink", false, "do not look for the event in the sink")
	return cmd
}

// traceReport is the result of `trace`.
type traceReport struct {
	ID          string             `json:"id"`
	GTID        string             `json:"gtid,omitempty"`
	File        string             `json:"file"`
	Offset      uint64             `json:"offset"`
	CommittedAt time.Time          `json:"committed_at"`
	Published   bool               `json:"published"` // the checkpoint is behind its transaction
	Table       string             `json:"table,omitempty"`
	Operation   string             `json:"operation,omitempty"`
	Place       uint64             `json:"place,omitempty"` // of the change in its transaction
	Before      json.RawMessage    `json:"before,omitempty"`
	After       json.RawMessage    `json:"after,omitempty"`
	Rule        string             `json:"rule,omitempty"`
	Type        string             `json:"type,omitempty"`
	Topic       string             `json:"topic,omitempty"`
	Key         string             `json:"key,omitempty"`
	Event       json.RawMessage    `json:"event,omitempty"` // as published
	Found       []publish.Location `json:"found"`
	Sink        string             `json:"sink,omitempty"` // why it was not looked through
	Note        string             `json:"note,omitempty"`
}

func (a *app) trace(ctx context.Context, cfg *config, id string, look bool, output outputFormat) (err error) {
	reader, err := viewStore(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	setup, end, err := a.travelSetup(ctx, cfg, reader)
	if err != nil {
		return err
	}
	t, err := setup.Trace(ctx, reader, id)
	end()
	if err != nil {
		return err
	}
	r := newTraceReport(cfg, id, t)
	if look && t.Event != nil {
		found, err := publish.Find(ctx, cfg.Publish, t.Event)
		if err != nil {
			r.Sink = err.Error()
		}
		r.Found = append(r.Found, found...)
	}
	if output == outputJSON {
		return writeJSON(a.stdout, r)
	}
	return r.writeText(a.stdout)
}

func newTraceReport(cfg *config, id string, t *travel.Trace) *traceReport {
	r := &traceReport{
		ID: id, GTID: gtidText(t.Transaction.GTID), File: t.Transaction.File, Offset: t.Transaction.Offset, CommittedAt: t.Transaction.CommittedAt,
		Published: t.Published, Found: []publish.Location{},
	}
	if t.Event == nil {
		r.Note = "this configuration makes no event with this id of the transaction: another one made it, or its rules were others"
		return r
	}
	r.Table, r.Operation, r.Place, r.Before, r.After = t.Table, t.Op, t.Place, t.Before, t.After
	if t.Entry >= 0 && t.Entry < len(cfg.Events) {
		r.Rule = fmt.Sprintf("events[%d] (table %s)", t.Entry, cfg.Events[t.Entry].Table)
	}
	r.Type, r.Topic, r.Key = t.Event.Type, t.Event.Topic, string(t.Event.Key)
	if json.Valid(t.Event.Payload) {
		r.Event = t.Event.Payload
	}
	return r
}

func (r *traceReport) writeText(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(&b, "%-12s  %s\n", name, text)
		}
	}
	row("event", "%s", r.ID)
	row("transaction", "%s", r.GTID)
	row("place", "%s:%d", r.File, r.Offset)
	row("committed", "%s", r.CommittedAt.UTC().Format(time.RFC3339Nano))
	if r.Note != "" {
		row("note", "%s", r.Note)
	} else {
		row("change", "%s of %s, change %d of the transaction", r.Operation, r.Table, r.Place)
		row("before", "%s", r.Before)
		row("after", "%s", r.After)
		row("rule", "%s", r.Rule)
		row("published as", "%s to topic %s, key %s", r.Type, r.Topic, r.Key)
		row("", "%s", r.Event)
	}
	switch {
	case !r.Published:
		row("published", "not yet: the checkpoint is before this transaction, or there is none")
	case r.Sink != "":
		row("found", "not looked for: %s", r.Sink)
	case len(r.Found) == 0 && r.Note == "":
		row("found", "not in the sink, or no longer")
	}
	for _, l := range r.Found {
		row("found", "%s", l)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
