package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) mappingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "mapping",
		Short:   "Try rules out: against samples in a file, or against a server's recent past",
		Example: "  binlogd mapping test rules/*.yaml\n  binlogd mapping preview --last 1h",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mappingTestCommand(), a.mappingPreviewCommand())
	return cmd
}

func (a *app) mappingTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run rules against sample rows in files and compare the events; no server needed",
		Long: `Runs the rules of a configuration against the sample changes in each FILE and
compares the events that they make with those that the file expects. It needs neither
a server nor the configuration's secrets, so that rules can be tested wherever code is.
The files are described in docs/RULES.md; examples/rules/tests holds one.

Exit code 0: every test passed; 1: some did not, and what differs was printed;
2: a file or the configuration has a mistake.`,
		Example: "  binlogd mapping test rules/tests/*.yaml\n  binlogd mapping test -c binlogd.yaml orders.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			return a.mappingTest(files)
		},
	}
	cmd.Flags().StringVarP(&a.configPath, "config", "c", "", "the configuration whose rules are tested (default: what each file names)")
	if err := cmd.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // the flag is defined one line above
	}
	return cmd
}

// mappingTest runs the tests of files and prints how each went.
func (a *app) mappingTest(files []string) error {
	passed, failed := 0, 0
	for _, file := range files {
		suite, err := loadSamples(file, a.configPath, a.lookup)
		if err != nil {
			return &usageError{err}
		}
		for i := range suite.Tests {
			test := &suite.Tests[i]
			diff, err := suite.run(test)
			if err != nil {
				return &usageError{err}
			}
			if diff == "" {
				passed++
				fmt.Fprintf(a.stdout, "ok    %s: %s\n", file, test.Name)
				continue
			}
			failed++
			fmt.Fprintf(a.stdout, "FAIL  %s: %s\n%s", file, test.Name, diff)
		}
	}
	if _, err := fmt.Fprintf(a.stdout, "%d passed, %d failed\n", passed, failed); err != nil {
		return err
	}
	if failed > 0 {
		return &reportedError{exitUnexpected}
	}
	return nil
}

func (a *app) mappingPreviewCommand() *cobra.Command {
	var p preview
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show which events the rules would have made of a server's recent past",
		Long: `Reads the binlog of the last hour, or of what --last or --transactions say, applies
the rules and counts the events by table, type and topic. Nothing is published and
no checkpoint is read or moved.`,
		Example: "  binlogd mapping preview -c binlogd.yaml --last 1h\n  binlogd mapping preview --transactions 500 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.mappingPreview(cmd.Context(), cfg, &p)
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &p.output)
	cmd.Flags().StringVar(&p.last, "last", "1h", "how far back: 90m, 6h, 2d")
	cmd.Flags().IntVar(&p.transactions, "transactions", 0, "in the place of --last: the last N transactions that have events")
	cmd.MarkFlagsMutuallyExclusive("last", "transactions")
	return cmd
}

// mappingPreview counts what the rules make of a stretch.
func (a *app) mappingPreview(ctx context.Context, cfg *config, p *preview) error {
	contents, err := a.previewContents(ctx, cfg, p)
	if err != nil {
		return err
	}
	return a.printPreview(contents, p)
}
