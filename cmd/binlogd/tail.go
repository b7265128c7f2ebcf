package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/publish"
)

// colorChoice is the value of --color.
type colorChoice string

const (
	colorAuto   colorChoice = "auto"
	colorAlways colorChoice = "always"
	colorNever  colorChoice = "never"
)

// Set implements pflag.Value.
func (c *colorChoice) Set(text string) error {
	switch choice := colorChoice(text); choice {
	case colorAuto, colorAlways, colorNever:
		*c = choice
		return nil
	}
	return errors.New("write auto, always or never")
}

func (c *colorChoice) String() string { return string(*c) }

// Type implements pflag.Value.
func (c *colorChoice) Type() string { return "when" }

func (a *app) tailCommand() *cobra.Command {
	color, start := colorAuto, ""
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show row changes as they happen, for people",
		Long: `Shows the events of the configured tables as they happen, one line each, with what an
update changed marked. It begins at the end of the binlog unless --start says
otherwise, keeps no checkpoint and leaves nothing behind. For programs there is
` + "`binlogd run`" + `, which writes JSON.

Colours are left out where standard output is no terminal or NO_COLOR is set.`,
		Example: `  binlogd tail --source shop:secret@127.0.0.1:3306/shop
  binlogd tail -c binlogd.yaml --start time:2026-11-29T10:00:00Z
  binlogd tail --source shop@127.0.0.1:3306/shop --color always | less -R`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			// What the file says of its place, its sink and its port is for `run`.
			cfg.Checkpoint.Path = ""
			cfg.Source.Start = start
			cfg.Publish = publish.Options{Stdout: &publish.StdoutOptions{}}
			cfg.Admin.Listen = ""
			if err := cfg.validate(); err != nil {
				return err
			}
			return a.tailUntilStopped(cmd.Context(), cfg, newLiner(a.status.above(a.stdout), a.colors(color)))
		},
	}
	a.addConfigFlag(cmd)
	a.addSourceFlag(cmd)
	cmd.Flags().StringVar(&start, "start", "latest", startHelp)
	complete(cmd, "start", "latest", "earliest")
	cmd.Flags().Var(&color, "color", "when to use colours: auto, always or never")
	complete(cmd, "color", string(colorAuto), string(colorAlways), string(colorNever))
	return cmd
}

// colors decides whether standard output gets colours.
func (a *app) colors(c colorChoice) bool {
	switch c {
	case colorAlways:
		return true
	case colorNever:
		return false
	case colorAuto:
	}
	if value, set := a.lookup("NO_COLOR"); set && value != "" {
		return false
	}
	file, ok := a.stdout.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (a *app) tailUntilStopped(ctx context.Context, cfg *config, lines *liner) error {
	if err := a.awaitReady(ctx, cfg, nil, lines); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it looked
		}
		return err
	}
	return a.publish(ctx, cfg, nil, checkpoint.None{}, lines, nil)
}

// liner is the sink of tail: a line for people per event.
type liner struct {
	out   io.Writer
	style style
	text  []byte
}

func newLiner(out io.Writer, colors bool) *liner { return &liner{out: out, style: newStyle(colors)} }

// Publish implements publish.Sink. A reader that went away is for good.
func (l *liner) Publish(ctx context.Context, b *publish.Batch) error {
	for i := range b.Events {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.Confirmed(i) {
			continue
		}
		line, err := l.style.line(l.text[:0], &b.Events[i])
		if err != nil {
			return &publish.PermanentError{Event: &b.Events[i], Err: err}
		}
		l.text = line
		if _, err := l.out.Write(line); err != nil {
			return &publish.PermanentError{Err: err, Remedy: "keep the reader of standard output alive"}
		}
		b.Confirm(i)
	}
	return nil
}

// Ping implements publish.Sink.
func (l *liner) Ping(context.Context) error { return nil }

// Close implements publish.Sink.
func (l *liner) Close() error { return nil }
