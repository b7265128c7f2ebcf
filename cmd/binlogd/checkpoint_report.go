package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
)

// moveReport is the result of the commands that move the checkpoint.
type moveReport struct {
	Action     string           `json:"action"`
	Applied    bool             `json:"applied"`
	Entry      string           `json:"entry,omitempty"` // of the history, once applied
	Name       string           `json:"name"`
	Before     shownPosition    `json:"before"`
	After      shownPosition    `json:"after"`
	Next       *shownBegins     `json:"next,omitempty"`    // absent at the end of the binlog
	Again      *shownContents   `json:"again,omitempty"`   // what will be published again
	Skipped    *shownContents   `json:"skipped,omitempty"` // what will be left out
	Statements []shownStatement `json:"statements"`
	Oldest     shownPosition    `json:"oldest_possible"`
	Consumers  string           `json:"consumers"`
	Notes      []string         `json:"notes,omitempty"`
	Problem    string           `json:"problem,omitempty"`
	Search     shownSearch      `json:"search"`
}

type shownBegins struct {
	GTID        string    `json:"gtid,omitempty"`
	File        string    `json:"file"`
	Offset      uint64    `json:"offset"`
	CommittedAt time.Time `json:"committed_at"`
}

type shownContents struct {
	Transactions uint64         `json:"transactions"`
	WithEvents   uint64         `json:"transactions_with_events"`
	Events       uint64         `json:"events"`
	Bytes        uint64         `json:"bytes"`
	First        *time.Time     `json:"first,omitempty"`
	Last         *time.Time     `json:"last,omitempty"`
	Tables       []tableOfEvent `json:"tables"`
}

type tableOfEvent struct {
	Table  string `json:"table"`
	Type   string `json:"type"`
	Topic  string `json:"topic"`
	Events uint64 `json:"events"`
}

type shownStatement struct {
	At        string   `json:"at"`
	Statement string   `json:"statement"`
	Tables    []string `json:"tables"`
	Covered   bool     `json:"covered"` // the schema history knows how the tables look behind it
	Unknown   string   `json:"unknown,omitempty"`
}

type shownSearch struct {
	Looks   int     `json:"looks"` // at the beginning of a binlog file
	Files   int     `json:"files_read"`
	Bytes   uint64  `json:"bytes_read"`
	Seconds float64 `json:"seconds"`
}

func newMoveReport(cfg *config, p *travel.Plan) *moveReport {
	r := &moveReport{
		Action: string(p.Action), Name: cfg.Name, Before: newShownPosition(p.Before.Position), After: newShownPosition(p.After.Position),
		Statements: []shownStatement{}, Notes: p.Notes,
		Search: shownSearch{Looks: p.Search.Looks, Files: p.Search.Files, Bytes: p.Search.Bytes, Seconds: p.Search.Took.Seconds()},
	}
	if p.Next != nil {
		r.Next = &shownBegins{GTID: gtidText(p.Next.GTID), File: p.Next.File, Offset: p.Next.Offset, CommittedAt: p.Next.CommittedAt}
	}
	r.Oldest = newShownPosition(canal.Position{GTIDs: p.Oldest.Read, File: p.Oldest.File, Offset: p.Oldest.Offset})
	r.Again, r.Skipped = newShownContents(p.Again), newShownContents(p.Skipped)
	for _, s := range p.Statements {
		r.Statements = append(r.Statements, shownStatement{At: s.At, Statement: s.Text, Tables: s.Tables, Covered: s.Unknown == "", Unknown: s.Unknown})
	}
	if p.Problem != nil {
		r.Problem = p.Problem.Error()
	}
	switch {
	case !p.Moves():
		r.Consumers = "nothing: the checkpoint is at this place already"
	case p.Skipped != nil && p.Again == nil && p.Action == checkpoint.ActionUndo:
		r.Consumers = "nothing of what lies between: it was published before the move that is undone"
	case p.Skipped != nil && p.Again == nil:
		r.Consumers = "nothing of what is left out: those events are lost to them"
	case p.Skipped != nil:
		r.Consumers = "events that they had, with the same ids; and nothing of what is left out"
	default:
		r.Consumers = "events that they had, with the same ids: who applies each id once changes nothing"
	}
	return r
}

func newShownContents(c *travel.Contents) *shownContents {
	if c == nil {
		return nil
	}
	shown := &shownContents{Transactions: c.Transactions, WithEvents: c.WithEvents, Events: c.Events, Bytes: c.Bytes, Tables: []tableOfEvent{}}
	if c.Events > 0 {
		first, last := c.First.UTC(), c.Last.UTC()
		shown.First, shown.Last = &first, &last
	}
	for _, t := range c.Tables {
		shown.Tables = append(shown.Tables, tableOfEvent(t))
	}
	return shown
}

func (r *moveReport) applied(e *checkpoint.Entry) {
	r.Applied, r.Entry = true, e.ID
}

func (r *moveReport) writeText(w io.Writer) error {
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
	row(r.Action, "%s", r.Name)
	position("before", r.Before)
	position("after", r.After)
	if r.Next != nil {
		name := r.Next.GTID
		if name == "" {
			name = fmt.Sprintf("%s:%d", r.Next.File, r.Next.Offset)
		}
		row("next", "transaction %s, committed %s", name, r.Next.CommittedAt.UTC().Format(time.RFC3339Nano))
	} else {
		row("next", "the end of the binlog")
	}
	r.Again.writeText(row, "again")
	r.Skipped.writeText(row, "left out")
	for i, s := range r.Statements {
		name := "statements"
		if i > 0 {
			name = ""
		}
		covered := "covered by the schema history"
		if !s.Covered {
			covered = "not covered: " + s.Unknown
		}
		row(name, "%s: %s (%s; %s)", s.At, s.Statement, strings.Join(s.Tables, ", "), covered)
	}
	if len(r.Statements) == 0 {
		row("statements", "none between the two places changes a table")
	}
	row("purged", "nothing of it; the oldest possible point is %s:%d", r.Oldest.File, r.Oldest.Offset)
	row("consumers", "see %s", r.Consumers)
	for _, note := range r.Notes {
		row("note", "%s", note)
	}
	row("search", "%d looks at the beginning of a file, %d files read, %s, %s", r.Search.Looks, r.Search.Files, shortBytes(int64(r.Search.Bytes)),
		shortDuration(time.Duration(r.Search.Seconds*float64(time.Second))))
	if r.Problem != "" {
		row("problem", "%s", r.Problem)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return r.writeOutcome(w)
}

func (c *shownContents) writeText(row func(name, format string, args ...any), name string) {
	if c == nil {
		return
	}
	row(name, "%s, %d of them with %s (%s)", plural(int(c.Transactions), "transaction"), c.WithEvents, plural(int(c.Events), "event"), shortBytes(int64(c.Bytes)))
	for _, t := range c.Tables {
		row("", "%8d  %s  %s", t.Events, t.Table, t.Type)
	}
	if c.First != nil {
		row("", "committed from %s to %s", c.First.Format(time.RFC3339Nano), c.Last.Format(time.RFC3339Nano))
	}
}

// writeOutcome says what became of the plan.
func (r *moveReport) writeOutcome(w io.Writer) error {
	outcome := "this is a preview: nothing was changed; add --yes to move the checkpoint"
	switch {
	case r.Applied:
		outcome = fmt.Sprintf("the checkpoint was moved (entry %s of its history); `binlogd checkpoint undo` takes it back", r.Entry)
	case r.Again == nil && r.Skipped == nil:
		outcome = "the checkpoint is at this place already: nothing was changed"
	case r.Problem != "":
		outcome = "a run could not go on from there: nothing was changed"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", outcome)
	return err
}
