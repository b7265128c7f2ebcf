package main

import "github.com/spf13/cobra"

func (a *app) checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "checkpoint",
		Short:   "Look at the checkpoint, the place up to which everything is published, and move it",
		Example: "  binlogd checkpoint show -c binlogd.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.checkpointShowCommand(), a.checkpointHistoryCommand(), a.checkpointRewindCommand(), a.checkpointSetCommand(), a.checkpointUndoCommand(),
		a.checkpointExportCommand(), a.checkpointImportCommand(), a.checkpointConvertCommand())
	return cmd
}
