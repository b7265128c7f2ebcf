package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
	"github.com/binlogd/binlogd/mapping"
)

// moveFlags are what the commands that move the checkpoint have in common.
type moveFlags struct {
	yes    bool
	live   bool
	reason string
	output outputFormat
}

func (a *app) addMoveFlags(cmd *cobra.Command, f *moveFlags) {
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &f.output)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "move without asking, for scripts")
	cmd.Flags().BoolVar(&f.live, "live", false, "have the running daemon do it between two transactions (needs admin.listen and admin.token)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the checkpoint's history")
}

// targetFlags name a place. One of them is written.
type targetFlags struct {
	gtid, time, event, entry, position, zone string
	transactions                             int
}

func (f *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.gtid, "to-gtid", "", "the GTID set that counts as published then")
	cmd.Flags().StringVar(&f.time, "to-time", "", "the first transaction committed at or after this time is the next: 2026-11-29T10:00:00Z, '2026-11-29 10:00' with --zone, or -3h")
	cmd.Flags().StringVar(&f.event, "to-event", "", "the transaction of the event with this id is the next")
	cmd.Flags().IntVar(&f.transactions, "transactions", 0, "back over the last N transactions that had events of this configuration")
	cmd.Flags().StringVar(&f.entry, "to-entry", "", "the place of this entry of \"binlogd checkpoint history\"")
	cmd.Flags().StringVar(&f.position, "to-position", "", "the transaction that begins at FILE:POS is the next")
	cmd.Flags().StringVar(&f.zone, "zone", "", "the time zone of a --to-time that states none: UTC, Local or a name such as Europe/Berlin")
	targets := []string{"to-gtid", "to-time", "to-event", "transactions", "to-entry", "to-position"}
	cmd.MarkFlagsMutuallyExclusive(targets...)
	cmd.MarkFlagsOneRequired(targets...)
}

// target reads the flag that was written.
func (f *targetFlags) target(cmd *cobra.Command, now time.Time) (travel.Target, error) {
	switch changed := cmd.Flags().Changed; {
	case changed("to-gtid"):
		return travel.Target{Kind: travel.ToGTID, Text: f.gtid}, nil
	case changed("to-event"):
		return travel.Target{Kind: travel.ToEvent, Text: f.event}, nil
	case changed("to-entry"):
		return travel.Target{Kind: travel.ToEntry, Text: f.entry}, nil
	case changed("transactions"):
		if f.transactions < 1 {
			return travel.Target{}, &usageError{fmt.Errorf("--transactions %d: write a number from 1 on", f.transactions)}
		}
		return travel.Target{Kind: travel.ToTransactions, Transactions: f.transactions}, nil
	case changed("to-position"):
		file, offset, err := travel.ParsePosition(f.position)
		if err != nil {
			return travel.Target{}, &usageError{fmt.Errorf("--to-position %w", err)}
		}
		return travel.Target{Kind: travel.ToPosition, File: file, Offset: offset}, nil
	}
	t, err := parseTimeFlag("--to-time", f.time, f.zone, now)
	return travel.Target{Kind: travel.ToTime, Time: t}, err
}

// parseTimeFlag reads a time in the zone that --zone states.
func parseTimeFlag(flag, text, zone string, now time.Time) (time.Time, error) {
	var location *time.Location
	if zone != "" {
		var err error
		if location, err = time.LoadLocation(zone); err != nil {
			return time.Time{}, &usageError{fmt.Errorf("--zone: %w; write UTC, Local or a name such as Europe/Berlin", err)}
		}
	}
	t, err := travel.ParseTime(text, location, now)
	if err != nil {
		return time.Time{}, &usageError{fmt.Errorf("%s %w", flag, err)}
	}
	return t, nil
}

// travelSetup is what reading the past of the configuration's source takes: of the server that a run would go on with. end closes what
// it opened.
func (a *app) travelSetup(ctx context.Context, cfg *config, reader checkpoint.Reader) (setup *travel.Setup, end func(), err error) {
	record, err := reader.Load(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil, err
	}
	connect := cfg.Source.reach(ctx, record)
	mapper, err := mapping.New(cfg.mapping())
	if err != nil {
		return nil, nil, cfg.locateAll(err)
	}
	catalog := canal.NewCatalog(connect.Connect)
	setup = &travel.Setup{
		Name: cfg.Name, Connect: connect, Mapper: mapper, Schemas: catalog, InvalidText: cfg.Source.invalidText(),
		MaxInFlight: int64(cfg.Limits.InFlight), Workers: cfg.Limits.Workers, Logger: a.logger, Watch: a.showTravel,
	}
	return setup, func() {
		a.status.show("")
		_ = catalog.Close() // it only reads
	}, nil
}

// showTravel keeps the living line at how far a search or a stretch is.
func (a *app) showTravel(p travel.Progress) {
	if a.status.living() {
		a.status.show(progressBar(p))
	}
}

// progressBar is a bar for a line of a terminal.
func progressBar(p travel.Progress) string {
	const width = 24
	if p.Total == 0 {
		return fmt.Sprintf("%s: %s", p.What, shortBytes(int64(p.Bytes)))
	}
	share := min(float64(p.Bytes)/float64(p.Total), 1)
	done := int(share * width)
	text := fmt.Sprintf("%s [%s%s] %3.0f%% of %s", p.What, strings.Repeat("#", done), strings.Repeat("·", width-done), 100*share, shortBytes(int64(p.Total)))
	if p.Events > 0 {
		text += fmt.Sprintf(" · %d events", p.Events)
	}
	if left := p.Left(); left > 0 {
		text += " · " + shortDuration(left) + " left"
	}
	return text
}

// planner thinks a move through.
type planner func(ctx context.Context, p *travel.Planner) (*travel.Plan, error)

// move shows what a move would do, and makes it where somebody says so.
func (a *app) move(ctx context.Context, cfg *config, flags *moveFlags, plan planner, check func(*travel.Plan) error) (err error) {
	willAsk := !flags.yes && a.interactive() && flags.output == outputText
	reader, store, err := a.openForMove(ctx, cfg, flags, flags.yes || willAsk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	setup, end, err := a.travelSetup(ctx, cfg, reader)
	if err != nil {
		return err
	}
	p, err := plan(ctx, &travel.Planner{Setup: setup, Reader: reader})
	end()
	if errors.Is(err, checkpoint.ErrNotFound) {
		return noCheckpoint(reader.Place(), err)
	}
	if errors.Is(err, travel.ErrSkips) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	report := newMoveReport(cfg, p)
	refusal := p.Problem
	if refusal == nil && check != nil {
		refusal = check(p)
	}
	confirmed := refusal == nil && p.Moves() && flags.yes
	if !confirmed && refusal == nil && willAsk && p.Moves() {
		if err := report.writeText(a.stdout); err != nil {
			return err
		}
		if confirmed, err = a.ask(ctx, "Move the checkpoint?"); err != nil {
			return err
		}
		if !confirmed {
			fmt.Fprintln(a.stdout, "nothing was changed")
			return nil
		}
	}
	if confirmed {
		entry, err := a.apply(ctx, cfg, flags, p, store)
		if err != nil {
			return err
		}
		report.applied(entry)
	}
	switch {
	case flags.output == outputJSON:
		err = writeJSON(a.stdout, report)
	case confirmed && willAsk:
		err = report.writeOutcome(a.stdout)
	default:
		err = report.writeText(a.stdout)
	}
	return errors.Join(refusal, err)
}

// openForMove opens the checkpoint: with its lock where it is going to be moved by this process, else to look only.
func (a *app) openForMove(ctx context.Context, cfg *config, flags *moveFlags, moves bool) (checkpoint.Reader, checkpoint.Store, error) {
	if !cfg.Checkpoint.Remote() && cfg.Checkpoint.Path == "" {
		return nil, nil, &usageError{errors.New("the configuration keeps no checkpoint")}
	}
	if flags.live {
		if cfg.Admin.Listen == "" || cfg.Admin.Token == "" {
			return nil, nil, &usageError{errors.New("--live asks the running daemon: set admin.listen and admin.token in the configuration, and restart binlogd once")}
		}
		reader, err := viewStore(cfg)
		return reader, nil, err
	}
	store, err := a.openStore(ctx, cfg)
	if _, locked := errors.AsType[*checkpoint.LockedError](err); locked {
		if moves {
			return nil, nil, fmt.Errorf("%w; or add --live to have the running daemon do it", err)
		}
		reader, err := viewStore(cfg)
		return reader, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	return store, store, nil
}

// apply carries a plan out.
func (a *app) apply(ctx context.Context, cfg *config, flags *moveFlags, p *travel.Plan, store checkpoint.Store) (*checkpoint.Entry, error) {
	by := person()
	if flags.live {
		if len(p.Schemas) > 0 { // the daemon's history does not have them: it begins anew
			p.After.SchemaVersion = 0
		}
		return askDaemonToMove(ctx, cfg, p, checkpoint.Move{Action: p.Action, Reason: flags.reason, By: by})
	}
	entry, err := p.Carry(ctx, store, checkpoint.Move{Action: p.Action, Reason: flags.reason, By: by})
	return &entry, err
}

// person is who runs this command.
func person() checkpoint.Holder {
	h := checkpoint.Holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}
	if host, err := os.Hostname(); err == nil {
		h.Host = host
	}
	if u, err := user.Current(); err == nil { // a container's user may have no name
		h.User = u.Username
	}
	return h
}

// interactive reports whether there is somebody to ask.
func (a *app) interactive() bool {
	file, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && a.status.living()
}

// ask asks a question that is answered with yes or no. No answer is a no.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a terminal cannot be waited for otherwise; the process ends after the answer
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // its end is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		return false, fmt.Errorf("asked and not answered: %w", ctx.Err())
	}
}
