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
				return a.showCheckpoint(cmd.Context(), path, nil, output)
			}
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.showCheckpoint(cmd.Context(), cfg.Checkpoint.Path, cfg, output)
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
	Behind *uint64 `json:"transactions_behind,omitempty"` // absent where the server numbers none
	Error  string  `json:"error,omitempty"`
}

// showCheckpoint prints the record in path; cfg, where there is one, says whom to ask how
// far behind it is.
func (a *app) showCheckpoint(ctx context.Context, path string, cfg *config, output outputFormat) error {
	record, err := checkpoint.ReadFile(path)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return &checkpoint.AccessError{Op: "read", Place: path, Remedy: "`binlogd run` writes the first one; check checkpoint.path", Err: err}
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
	inspector, err := canal.Inspect(ctx, connect)
	if err != nil {
		return &shownSource{Error: err.Error()}
	}
	defer func() { _ = inspector.Close() }()
	place := record.Position
	if record.Published != nil {
		place = *record.Published
	}
	source := &shownSource{}
	if behind, known := inspector.Behind(place); known {
		source.Behind = &behind
	}
	return source
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
	if s.Source != nil {
		switch {
		case s.Source.Error != "":
			row("behind", "unknown: %s", s.Source.Error)
		case s.Source.Behind == nil:
			row("behind", "unknown: the server does not number its transactions")
		default:
			row("behind", "%d transactions", *s.Source.Behind)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
