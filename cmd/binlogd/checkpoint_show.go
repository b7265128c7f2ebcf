package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

func (a *app) checkpointShowCommand() *cobra.Command {
	var output outputFormat
	var path string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the checkpoint, and how far behind the source it is",
		Long: `Prints the checkpoint without locking it, so that it can be run beside a running
binlogd. How far behind it is shows only where the source answers.`,
		Example: `  binlogd checkpoint show -c binlogd.yaml
  binlogd checkpoint show --file shop.checkpoint -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path != "" {
				if a.configPath != "" {
					return &usageError{errors.New("--file and --config exclude each other: leave one out")}
				}
				return a.showCheckpoint(cmd.Context(), checkpoint.ViewFile(path, ""), nil, output)
			}
			cfg, err := a.config()
			if err != nil {
				return err
			}
			reader, err := viewStore(cfg)
			if err != nil {
				return err
			}
			return a.showCheckpoint(cmd.Context(), reader, cfg, output)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().StringVar(&path, "file", "", "a checkpoint file, instead of the configuration's")
	return cmd
}

// shownCheckpoint is the result of `checkpoint show`.
type shownCheckpoint struct {
	Path      string          `json:"path"`
	Name      string          `json:"name"`
	Position  shownPosition   `json:"position"`
	Published *shownPosition  `json:"published,omitempty"` // where it is beyond position
	Partial   *shownPartial   `json:"partial,omitempty"`
	Held      []shownPrepared `json:"held,omitempty"`
	Server    shownServer     `json:"server"`
	Counters  shownCounters   `json:"counters"`
	WrittenAt time.Time       `json:"written_at"`
	WrittenBy string          `json:"written_by"`
	Source    *shownSource    `json:"source,omitempty"`
}

type shownPosition struct {
	GTIDs  string `json:"gtids,omitempty"`
	File   string `json:"file,omitempty"`
	Offset uint64 `json:"offset,omitempty"`
}

type shownPartial struct {
	GTID  string `json:"gtid,omitempty"`
	File  string `json:"file"`
	Start uint64 `json:"start"`
	Place uint64 `json:"place"` // row changes that are durable
}

type shownPrepared struct {
	XID    string `json:"xid"`
	GTID   string `json:"gtid,omitempty"`
	File   string `json:"file"`
	Offset uint64 `json:"offset"`
}

type shownServer struct {
	Flavor   string `json:"flavor"`
	UUID     string `json:"uuid,omitempty"`
	ServerID uint32 `json:"server_id"`
	Version  string `json:"version"`
}

type shownCounters struct {
	Transactions uint64 `json:"transactions"`
	Events       uint64 `json:"events"`
	Bytes        uint64 `json:"bytes"`
}

// shownSource is what the source says of the checkpoint.
type shownSource struct {
	Position *shownPosition `json:"position,omitempty"`            // up to where the server has logged
	Behind   *uint64        `json:"transactions_behind,omitempty"` // absent where the server numbers none
	Seconds  *float64       `json:"seconds_behind,omitempty"`      // since the first transaction that is not published was committed; 0 without one
	Bytes    *uint64        `json:"bytes_behind,omitempty"`        // of binlog
	Binlogs  *shownBinlogs  `json:"binlogs,omitempty"`
	Error    string         `json:"error,omitempty"`
}

// shownBinlogs is whether the server still has what the checkpoint needs.
type shownBinlogs struct {
	Available bool   `json:"available"`
	Needed    string `json:"needed,omitempty"` // the file that reading goes on in
	// KeptUntil is when that may be purged at the earliest; absent where it is still being written or nothing is purged by time.
	KeptUntil        *time.Time `json:"kept_until,omitempty"`
	RetentionSeconds *float64   `json:"retention_seconds,omitempty"` // absent where binlogs are kept for ever
	Until            string     `json:"until"`                       // the same in words
}

// showCheckpoint prints the record that reader has, and closes it; cfg, where there is one,
// says whom to ask how far behind it is.
func (a *app) showCheckpoint(ctx context.Context, reader checkpoint.Reader, cfg *config, output outputFormat) (err error) {
	defer func() { err = errors.Join(err, reader.Close()) }()
	path := reader.Place()
	record, err := reader.Load(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return noCheckpoint(path, err)
	}
	if err != nil {
		return err
	}
	shown := newShownCheckpoint(path, record)
	if cfg != nil {
		shown.Source = askBehind(ctx, cfg.Source.reach(ctx, record), record)
	}
	if output == outputJSON {
		return writeJSON(a.stdout, shown)
	}
	return shown.writeText(a.stdout, time.Now())
}

func askBehind(ctx context.Context, connect canal.ConnectOptions, record *checkpoint.Record) *shownSource {
	place := record.Position
	if record.Published != nil {
		place = *record.Published
	}
	out, err := canal.Look(ctx, connect, place, record.Server)
	if err != nil {
		source := &shownSource{Error: err.Error()}
		if gone, ok := errors.AsType[*canal.SourceError](err); ok {
			source.Binlogs = &shownBinlogs{Until: "not there: " + gone.Err.Error()}
		}
		return source
	}
	end, seconds := newShownPosition(out.End), 0.0
	if out.Next != nil {
		seconds = max(time.Since(out.Next.CommittedAt).Seconds(), 0)
	}
	binlogs := &shownBinlogs{Available: true, Needed: out.Needed}
	if out.Retention > 0 {
		kept := out.Retention.Seconds()
		binlogs.RetentionSeconds = &kept
	}
	switch {
	case out.BySize:
		binlogs.Until = "the server purges binlogs above a total size, whatever their age"
	case out.Retention == 0:
		binlogs.Until = "they are purged by hand"
	case out.KeptUntil.IsZero():
		binlogs.Until = fmt.Sprintf("%s after its last write, and it is still being written", shortDuration(out.Retention))
	default:
		until := out.KeptUntil.UTC()
		binlogs.KeptUntil, binlogs.Until = &until, until.Format(time.RFC3339)
	}
	return &shownSource{Position: &end, Behind: out.Transactions, Seconds: &seconds, Bytes: &out.Bytes, Binlogs: binlogs}
}

func newShownCheckpoint(path string, r *checkpoint.Record) *shownCheckpoint {
	shown := &shownCheckpoint{
		Path: path, Name: r.Name, Position: newShownPosition(r.Position),
		Server:    shownServer{Flavor: r.Server.Flavor.String(), UUID: r.Server.UUID, ServerID: r.Server.ServerID, Version: r.Server.Version},
		Counters:  shownCounters(r.Counters),
		WrittenAt: r.WrittenAt, WrittenBy: r.WrittenBy,
	}
	if r.Published != nil {
		published := newShownPosition(*r.Published)
		shown.Published = &published
	}
	if p := r.Partial; p != nil {
		shown.Partial = &shownPartial{GTID: gtidText(p.GTID), File: p.File, Start: p.Start, Place: p.Place}
	}
	for _, h := range r.Held {
		shown.Held = append(shown.Held, shownPrepared{XID: h.XID, GTID: gtidText(h.GTID), File: h.File, Offset: h.Offset})
	}
	return shown
}

func newShownPosition(p canal.Position) shownPosition {
	shown := shownPosition{File: p.File, Offset: p.Offset}
	if p.GTIDs != nil {
		shown.GTIDs = p.GTIDs.String()
	}
	return shown
}

func gtidText(g canal.GTID) string {
	if g.IsZero() {
		return ""
	}
	return g.String()
}

func (s *shownCheckpoint) writeText(w io.Writer, now time.Time) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s  %s\n", name, fmt.Sprintf(format, args...))
	}
	position := func(name string, p shownPosition) {
		if p.GTIDs != "" {
			row(name, "%s", strings.ReplaceAll(p.GTIDs, ",", ",\n              "))
			name = ""
		}
		if p.File != "" {
			row(name, "%s:%d", p.File, p.Offset)
		}
	}
	row("checkpoint", "%s (%s)", s.Name, s.Path)
	position("position", s.Position)
	if s.Published != nil {
		position("published", *s.Published)
	}
	if p := s.Partial; p != nil {
		row("inside", "transaction %s at %s:%d, %d row changes durable", p.GTID, p.File, p.Start, p.Place)
	}
	for _, h := range s.Held {
		row("prepared XA", "%s %s, from %s:%d", h.XID, h.GTID, h.File, h.Offset)
	}
	server := s.Server.Flavor + " " + s.Server.Version
	if s.Server.UUID != "" {
		server += ", UUID " + s.Server.UUID
	}
	row("server", "%s, server id %d", server, s.Server.ServerID)
	row("published", "%d transactions, %d events, %d bytes since the first start", s.Counters.Transactions, s.Counters.Events, s.Counters.Bytes)
	row("written", "%s (%s ago) by %s", s.WrittenAt.UTC().Format(time.RFC3339), now.Sub(s.WrittenAt).Round(time.Second), s.WrittenBy)
	s.Source.writeText(row, position)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *shownSource) writeText(row func(name, format string, args ...any), position func(string, shownPosition)) {
	if s == nil {
		return
	}
	if b := s.Binlogs; b != nil && !b.Available {
		row("binlogs", "%s", b.Until)
	}
	if s.Error != "" {
		row("behind", "unknown: %s", s.Error)
		return
	}
	position("server is at", *s.Position)
	behind := fmt.Sprintf("%s, %s of binlog", shortDuration(time.Duration(*s.Seconds*float64(time.Second))), shortBytes(int64(*s.Bytes)))
	if s.Behind == nil {
		row("behind", "%s; the server does not number its transactions", behind)
	} else {
		row("behind", "%d transactions, %s", *s.Behind, behind)
	}
	row("binlogs", "all there, from %s on; kept until: %s", s.Binlogs.Needed, s.Binlogs.Until)
}
