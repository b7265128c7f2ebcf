package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `binlogd joins a MySQL or MariaDB server as a replica, turns the row changes of
its binlog into events and publishes them to Kafka, Redis Streams, a file or
standard output. The application that writes the database is not touched.

Only events and results go to standard output; logs go to standard error.

Exit codes:
  0  fine
  1  unexpected
  2  usage or configuration
  3  the source cannot continue: binlogs purged, another server, schema
  4  the sink refuses for good
  5  the checkpoint cannot be read or written
  6  another instance holds the checkpoint`

const rootExample = `  # See what changes in a database, without leaving anything behind:
  binlogd tail --source shop:secret@127.0.0.1:3306/shop

  # Write a configuration, see whether it would work, and run it:
  binlogd init --source root:secret@127.0.0.1:3306/shop -w binlogd.yaml
  binlogd check -c binlogd.yaml
  binlogd run -c binlogd.yaml`

// app is the process as its commands see it.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// lookup finds environment variables.
	lookup func(name string) (string, bool)

	configPath string
	quick      quickFlags
	logFormat  string
	logLevel   string

	status *statusLine // stderr, shared by logs and the living line
	logger *slog.Logger
	parsed bool // the command line was understood: an error is not about usage
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr, lookup: lookup, status: newStatusLine(stderr)}
}

// run carries out one command line and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.parsed {
		err = &usageError{fmt.Errorf("%w\nrun `%s --help` for what it takes", err, commandPath(root, args))}
	}
	var reported *reportedError
	if err != nil && !errors.As(err, &reported) {
		a.status.clear()
		fmt.Fprintf(a.stderr, "binlogd: %s\n", indent(err.Error()))
	}
	return exitCode(err)
}

// indent sets the further lines of a message off, and drops empty ones.
func indent(message string) string {
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n  ")
}

// commandPath is the command that args lead to, for a hint.
func commandPath(root *cobra.Command, args []string) string {
	if found, _, err := root.Find(args); err == nil {
		return found.CommandPath()
	}
	return root.Name()
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "binlogd",
		Short:         "Publish a database's changes as events, without touching the application",
		Long:          rootHelp,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			logger, err := newLogger(a.status, a.logFormat, a.logLevel)
			if err != nil {
				return err
			}
			a.logger, a.parsed = logger, true
			return nil
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", "text", "how logs are written: text or json")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "info", "the least that is logged: debug, info, warn or error")
	complete(root, "log-format", "text", "json")
	complete(root, "log-level", "debug", "info", "warn", "error")
	root.AddCommand(a.runCommand(), a.tailCommand(), a.checkCommand(), a.initCommand(), a.checkpointCommand(), a.schemaCommand(), a.mappingCommand(), a.replayCommand(), a.traceCommand(), a.statusCommand(), a.versionCommand())
	return root
}

// newLogger writes to stderr only: standard output is for events and results.
func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: write debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: write text or json", format)
}

// addConfigFlag gives a command -c.
func (a *app) addConfigFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.configPath, "config", "c", "", "configuration file (default: "+defaultConfigFile+" if it is there)")
	if err := cmd.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // the flag is defined one line above
	}
}

// addQuickFlags gives a command the flags that stand in for a file.
func (a *app) addQuickFlags(cmd *cobra.Command) {
	a.addSourceFlag(cmd)
	cmd.Flags().StringVar(&a.quick.start, "start", "", "with --source: "+startHelp+` (default "latest")`)
	cmd.Flags().StringVar(&a.quick.sink, "sink", "", "with --source: where events go: stdout (the default), file:PATH, kafka:HOST:PORT or redis:HOST:PORT")
	cmd.Flags().StringVar(&a.quick.checkpoint, "checkpoint", "", "with --source: keep the place in this file (default: keep none)")
	complete(cmd, "start", "latest", "earliest")
}

const startHelp = "where to begin: latest, earliest, gtid:SET, file:NAME:OFFSET or time:RFC3339"

func (a *app) addSourceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.quick.source, "source", "", "without a file: user:password@host:port/database; %XX in user and password is decoded; the password may come from BINLOGD_PASSWORD or be asked for instead, so that it does not show in the process list")
}

// addOutputFlag gives a command -o.
func addOutputFlag(cmd *cobra.Command, output *outputFormat) {
	*output = outputText
	cmd.Flags().VarP(output, "output", "o", "how the result is written: text or json")
	complete(cmd, "output", string(outputText), string(outputJSON))
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined where complete is called
	}
}

// outputFormat is the value of -o.
type outputFormat string

const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

// Set implements pflag.Value.
func (o *outputFormat) Set(text string) error {
	if text != string(outputText) && text != string(outputJSON) {
		return errors.New("write text or json")
	}
	*o = outputFormat(text)
	return nil
}

func (o *outputFormat) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *outputFormat) Type() string { return "format" }
