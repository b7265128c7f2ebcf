package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/checkpoint"
)

func (a *app) checkpointExportCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the checkpoint with all that belongs to it as one JSON file",
		Long: `Prints the checkpoint, its history and its schema history as one JSON object, which
"binlogd checkpoint import" takes: to move a pipeline to another machine or to
another store, or as a copy. It locks nothing; stop binlogd first if the copy is
to take over, or what is published meanwhile is published again.`,
		Example: `  binlogd checkpoint export -c binlogd.yaml > shop.json
  binlogd checkpoint export --file shop.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.exportCheckpoint(cmd.Context(), cfg, file)
		},
	}
	a.addConfigFlag(cmd)
	cmd.Flags().StringVar(&file, "file", "", "write to this file instead of standard output; it must not be there yet")
	return cmd
}

func (a *app) exportCheckpoint(ctx context.Context, cfg *config, file string) (err error) {
	reader, err := viewStore(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	exported, err := checkpoint.Export(ctx, reader)
	var damage *checkpoint.HistoryError
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		return noCheckpoint(reader.Place(), err)
	case errors.As(err, &damage):
		a.logger.Warn("a part of the history cannot be read and is left out", "error", damage)
	case err != nil:
		return err
	}
	content, err := exported.Encode()
	if err != nil {
		return err
	}
	if file != "" {
		return writeNewFile(file, string(content), false)
	}
	_, err = a.stdout.Write(content)
	return err
}

func (a *app) checkpointImportCommand() *cobra.Command {
	var yes bool
	var reason string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take over a checkpoint that was exported",
		Long: `Puts an exported checkpoint, with its history and schema history, into the store of
the configuration. Where one is there already, it shows both and replaces it only
with --yes or once you say so; what was replaced stays in the history. binlogd
must not be running. "-" reads standard input.`,
		Example: `  binlogd checkpoint import shop.json -c binlogd.yaml
  binlogd checkpoint import shop.json --yes --reason "moved to the new machine"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.importCheckpoint(cmd.Context(), cfg, args[0], yes, reason)
		},
	}
	a.addConfigFlag(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "replace a checkpoint that is there, without asking")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}

func (a *app) importCheckpoint(ctx context.Context, cfg *config, file string, yes bool, reason string) (err error) {
	exported, err := a.readExport(file)
	if err != nil {
		return err
	}
	if exported.Record.Name != cfg.Name {
		return &checkpoint.NameError{Place: file, Want: cfg.Name, Have: exported.Record.Name}
	}
	store, err := a.openStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	existing, err := store.Load(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	fmt.Fprintf(a.stdout, "import   %s\n         from %s, exported %s, with %s and %s\n", describePosition(exported.Record.Position),
		exported.From, exported.At.Format("2006-01-02T15:04:05Z"), entriesOf(len(exported.History), "history"), entriesOf(len(exported.Schemas), "schema history"))
	if existing != nil {
		fmt.Fprintf(a.stdout, "replaces %s\n         in %s\n", describePosition(existing.Position), store.Place())
		if !yes && a.interactive() {
			if yes, err = a.ask(ctx, "Replace the checkpoint?"); err != nil {
				return err
			}
		}
		if !yes {
			fmt.Fprintln(a.stdout, "nothing was changed: --yes replaces it")
			return nil
		}
	}
	entry, err := checkpoint.Import(ctx, store, exported, checkpoint.Move{Action: checkpoint.ActionImport, Reason: reason})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "imported into %s as entry %s\n", store.Place(), entry.ID)
	return nil
}

func entriesOf(n int, what string) string {
	if n == 1 {
		return "1 entry of " + what
	}
	return fmt.Sprintf("%d entries of %s", n, what)
}

func (a *app) readExport(file string) (*checkpoint.Exported, error) {
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(a.stdin)
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, &usageError{fmt.Errorf("read the export: %w", err)}
	}
	return checkpoint.DecodeExport(content, file)
}
