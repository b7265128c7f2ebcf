package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
)

func (a *app) schemaShowCommand() *cobra.Command {
	var output outputFormat
	var at string
	cmd := &cobra.Command{
		Use:   "show [DATABASE.TABLE]",
		Short: "Show the schema history: the tables as they are now, or one table through time",
		Long: `Prints the schema history beside the checkpoint, without locking it. Without a table it
lists the newest entry of each; with one, all its entries, oldest first, with
their columns. --at shows the one that rows of a transaction are read with.`,
		Example: `  binlogd schema show -c binlogd.yaml
  binlogd schema show shop.orders
  binlogd schema show shop.orders --at 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			table := ""
			if len(args) == 1 {
				table = args[0]
			}
			return a.showSchema(cmd.Context(), cfg, table, at, output)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().StringVar(&at, "at", "", "with a table: show what holds at this GTID")
	return cmd
}

// shownSchema is an entry of the result of `schema show`.
type shownSchema struct {
	Table      string        `json:"table"`
	Version    uint64        `json:"version"`
	From       string        `json:"from"`   // start, or the transaction that changed the table
	Origin     string        `json:"origin"` // start, statement, server or hand
	Dropped    bool          `json:"dropped,omitempty"`
	Unknown    string        `json:"unknown,omitempty"`
	Charset    string        `json:"charset,omitempty"`
	Columns    []shownColumn `json:"columns,omitempty"`
	PrimaryKey []string      `json:"primary_key,omitempty"`
	UniqueKey  []string      `json:"unique_key,omitempty"` // that the server takes in the place of a primary one
	Statement  string        `json:"statement,omitempty"`
}

type shownColumn struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Charset   string `json:"charset,omitempty"`
	Invisible bool   `json:"invisible,omitempty"`
}

func (a *app) showSchema(ctx context.Context, cfg *config, table, at string, output outputFormat) (err error) {
	reader, err := viewStore(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	entries, err := reader.SchemaEntries(ctx)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(canal.Settle(entries), func(e canal.SchemaEntry) bool { return e.Table == "" })
	switch {
	case table == "" && at != "":
		return &usageError{errors.New("--at needs a table: binlogd schema show DATABASE.TABLE --at GTID")}
	case table == "":
		entries = newestEntries(entries)
	default:
		if _, _, err := splitTable(table); err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e canal.SchemaEntry) bool { return e.Database+"."+e.Table != table })
		if len(entries) == 0 {
			return &usageError{fmt.Errorf("the schema history has no table %s: `binlogd schema show` lists those that it has", table)}
		}
	}
	if at != "" {
		if entries, err = entriesAt(entries, at); err != nil {
			return err
		}
	}
	shown := make([]shownSchema, 0, len(entries))
	for i := range entries {
		shown = append(shown, newShownSchema(&entries[i]))
	}
	if output == outputJSON {
		return writeJSON(a.stdout, shown)
	}
	return writeSchemas(a.stdout, shown, table != "")
}

// newestEntries are the newest of each table that is there, by name.
func newestEntries(entries []canal.SchemaEntry) []canal.SchemaEntry {
	newest := make(map[string]canal.SchemaEntry)
	for _, e := range entries {
		newest[e.Database+"."+e.Table] = e
	}
	var kept []canal.SchemaEntry
	for _, e := range newest {
		if e.Schema != nil || e.Unknown != "" {
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b canal.SchemaEntry) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.Table, b.Table))
	})
	return kept
}

// entriesAt is the entry of one table that holds at a transaction.
func entriesAt(entries []canal.SchemaEntry, at string) ([]canal.SchemaEntry, error) {
	var held []canal.SchemaEntry
	for i := range entries {
		holds, err := entries[i].HoldsAt(at)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--at: %w", err)}
		}
		if holds {
			held = entries[i : i+1]
		}
	}
	if held == nil {
		return nil, &usageError{fmt.Errorf("--at %s: the history begins later", at)}
	}
	return held, nil
}

func newShownSchema(e *canal.SchemaEntry) shownSchema {
	s := shownSchema{
		Table: e.Database + "." + e.Table, Version: e.Version, From: entryPlace(e), Origin: string(e.Origin),
		Dropped: e.Schema == nil && e.Unknown == "", Unknown: e.Unknown, Statement: e.Statement,
	}
	if e.Schema != nil {
		s.Charset, s.PrimaryKey = e.Schema.Charset, e.Schema.PrimaryKey
		if len(s.PrimaryKey) == 0 {
			s.UniqueKey = e.Schema.Key()
		}
		for _, c := range e.Schema.Columns {
			s.Columns = append(s.Columns, shownColumn{Name: c.Name, Type: c.Type, Charset: c.Charset, Invisible: c.Invisible})
		}
	}
	return s
}

func writeSchemas(w io.Writer, shown []shownSchema, whole bool) error {
	var b strings.Builder
	if len(shown) == 0 {
		b.WriteString("the schema history is empty: `binlogd run` begins it\n")
	}
	for _, s := range shown {
		state := fmt.Sprintf("%d columns", len(s.Columns))
		switch {
		case s.Dropped:
			state = "dropped"
		case s.Unknown != "":
			state = "unknown: " + s.Unknown
		}
		fmt.Fprintf(&b, "%-32s  version %d  from %s (%s)  %s\n", s.Table, s.Version, s.From, s.Origin, state)
		if !whole {
			continue
		}
		if s.Statement != "" {
			fmt.Fprintf(&b, "  %s\n", s.Statement)
		}
		for _, c := range s.Columns {
			fmt.Fprintf(&b, "  %-24s  %s", c.Name, c.Type)
			if c.Charset != "" {
				b.WriteString(" " + c.Charset)
			}
			if slices.Contains(s.PrimaryKey, c.Name) {
				b.WriteString(" primary key")
			}
			if slices.Contains(s.UniqueKey, c.Name) {
				b.WriteString(" unique key")
			}
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
