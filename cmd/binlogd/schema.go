package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

func (a *app) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Look at how tables looked at a place in the binlog, and say it where that is not known",
		Long: `Where the server does not send full metadata (binlog_row_metadata=FULL), rows are read
with the schema history: how each table looked from the first start on, and after
every statement that changed it. It is kept beside the checkpoint.`,
		Example: `  binlogd schema show -c binlogd.yaml
  binlogd schema set shop.orders --file orders.sql --from start`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.schemaShowCommand(), a.schemaSetCommand())
	return cmd
}

func (a *app) schemaSetCommand() *cobra.Command {
	var file, from string
	cmd := &cobra.Command{
		Use:   "set DATABASE.TABLE",
		Short: "Say how a table looked from a place in the binlog on",
		Long: `Puts the columns of a CREATE TABLE into the schema history, in place of what is known, or
not known, from a place on until the next statement that changed the table. The
message with which ` + "`binlogd run`" + ` stopped names the place. binlogd must not be running.`,
		Example: `  # The table as it looked when the history begins:
  binlogd schema set shop.orders --file orders.sql --from start

  # As it looked after a statement that binlogd did not understand:
  binlogd schema set shop.orders --file orders.sql --from 3e11fa47-71ca-11e1-9e33-c80aa9429562:23`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return &usageError{errors.New("--file is missing: write the table's CREATE TABLE as of then into a file")}
			}
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.setSchema(cmd.Context(), cfg, args[0], file, from)
		},
	}
	a.addConfigFlag(cmd)
	cmd.Flags().StringVar(&file, "file", "", "a file with the table's CREATE TABLE, as SHOW CREATE TABLE prints it")
	cmd.Flags().StringVar(&from, "from", "", "from where on: start, or the transaction that changed the table (default: where the history does not know it)")
	if err := cmd.MarkFlagFilename("file", "sql"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (a *app) setSchema(ctx context.Context, cfg *config, table, file, from string) (err error) {
	database, name, err := splitTable(table)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return &usageError{fmt.Errorf("read --file: %w", err)}
	}
	store, err := a.openStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	record, err := store.Load(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return noCheckpoint(store.Place(), err)
	}
	if err != nil {
		return err
	}
	history := store.Schemas()
	entries, err := history.Load(ctx, record.SchemaVersion)
	if err != nil {
		return err
	}
	replaced, err := entryFrom(entries, database, name, from)
	if err != nil {
		return err
	}
	schema, err := canal.ParseCreateTable(string(text), record.Server.Flavor, charsetOf(entries, database))
	if err != nil {
		return &usageError{fmt.Errorf("read %s: %w", file, err)}
	}
	entry := *replaced
	entry.Version, entry.Replaces = entries[len(entries)-1].Version+1, replaced.Version
	entry.Schema, entry.Unknown, entry.Until, entry.Origin = schema, "", nil, canal.SchemaFromHand
	if err := history.Append(ctx, []canal.SchemaEntry{entry}); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s.%s has %d columns from %s on; start binlogd again\n", database, name, len(schema.Columns), entryPlace(&entry))
	return nil
}

func splitTable(table string) (database, name string, err error) {
	database, name, found := strings.Cut(table, ".")
	if !found || database == "" || name == "" {
		return "", "", &usageError{fmt.Errorf("%q is no table: write database.table", table)}
	}
	return database, name, nil
}

// entryFrom finds the entry of a table whose place --from names.
func entryFrom(entries []canal.SchemaEntry, database, table, from string) (*canal.SchemaEntry, error) {
	var places []string
	var found, doubtful *canal.SchemaEntry
	settled := canal.Settle(entries)
	for i := range settled {
		e := &settled[i]
		if e.Database != database || e.Table != table {
			continue
		}
		place := entryPlace(e)
		places = append(places, place)
		if place == from {
			found = e
		}
		if e.Unknown != "" || e.Until != nil {
			doubtful = e
		}
	}
	switch {
	case len(places) == 0:
		return nil, &usageError{fmt.Errorf("the schema history has no table %s.%s: `binlogd schema show` lists those that it has", database, table)}
	case from == "" && doubtful != nil:
		return doubtful, nil
	case from == "":
		return nil, &usageError{fmt.Errorf("the schema of %s.%s is known everywhere: name a place with --from: %s", database, table, strings.Join(places, ", "))}
	case found == nil:
		return nil, &usageError{fmt.Errorf("--from %s: the history of %s.%s has no such place: write one of %s", from, database, table, strings.Join(places, ", "))}
	}
	return found, nil
}

// entryPlace is what --from takes for the place of an entry.
func entryPlace(e *canal.SchemaEntry) string {
	switch {
	case e.Start != nil:
		return "start"
	case !e.GTID.IsZero():
		return e.GTID.String()
	}
	return fmt.Sprintf("%s:%d", e.File, e.Offset)
}

// charsetOf is the newest default character set of a database.
func charsetOf(entries []canal.SchemaEntry, database string) string {
	charset := "utf8mb4"
	for i := range entries {
		if e := &entries[i]; e.Database == database && e.Table == "" && e.Charset != "" {
			charset = e.Charset
		}
	}
	return charset
}
