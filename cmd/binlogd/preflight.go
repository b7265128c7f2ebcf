package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/publish"
)

// preflight looks whether a run would work: `check` prints what it finds, `run` refuses to
// begin where a check fails. record is the checkpoint, nil where none exists yet.
func preflight(ctx context.Context, cfg *config, record *checkpoint.Record, look sinkLook) []canal.Check {
	checks := preflightSource(ctx, cfg, record)
	return append(checks, checkSink(ctx, cfg, look)...)
}

// sinkLook asks the sink whether it can be written to, and what its server's settings cost.
type sinkLook func(context.Context) ([]publish.Warning, error)

func preflightSource(ctx context.Context, cfg *config, record *checkpoint.Record) []canal.Check {
	others, connect := checkAddresses(ctx, cfg, record)
	if failures(others) != nil {
		return others
	}
	inspector, err := canal.Inspect(ctx, connect)
	if err != nil {
		c := canal.FailedCheck("connection", err)
		if c.Remedy == "" {
			c.Remedy = "check that the server runs, that source.address is right, and that no firewall stands between"
			c.Err = &unavailableError{exitSource, err, c.Remedy}
		}
		return []canal.Check{c}
	}
	defer func() { _ = inspector.Close() }()

	options := canal.PreflightOptions{}
	if record != nil {
		options = canal.PreflightAt(record.Resume())
	}
	options.ServerID = cfg.Source.ServerID
	checks := append(inspector.Checks(ctx, options), others...)
	if record == nil && failures(checks) == nil {
		checks = append(checks, checkStart(ctx, cfg, connect, inspector)...)
	}
	tables, err := checkTables(ctx, cfg, inspector)
	if err != nil {
		return append(checks, unavailableSource(canal.FailedCheck("tables", err)))
	}
	checks = append(checks, tables...)
	for i := range checks {
		checks[i] = unavailableSource(checks[i])
	}
	return checks
}

// checkStart looks for the place where a first run begins.
func checkStart(ctx context.Context, cfg *config, connect canal.ConnectOptions, inspector *canal.Inspector) []canal.Check {
	check := canal.Check{Name: "start", Status: canal.CheckOK, Detail: "source.start: " + cfg.Source.Start}
	start, err := canal.ParseStart(cfg.Source.Start)
	if err != nil {
		return []canal.Check{canal.FailedCheck(check.Name, cfg.located(err))}
	}
	place, err := canal.Locate(ctx, connect, start)
	if err != nil {
		return []canal.Check{canal.FailedCheck(check.Name, err)}
	}
	if err := inspector.Refresh(ctx); err != nil { // the place may be newer than what was read before
		return []canal.Check{canal.FailedCheck(check.Name, err)}
	}
	check.Detail += " is at " + describePosition(place.Position)
	return append([]canal.Check{check}, inspector.CheckPlace(ctx, canal.PreflightOptions{Checkpoint: &place.Position, Server: place.Server, Called: "source.start"})...)
}

// unavailableSource gives a failure that is neither the configuration's nor the server's
// the source's exit code: the connection broke while checks were made.
func unavailableSource(c canal.Check) canal.Check {
	if c.Err != nil && exitCode(c.Err) == exitUnexpected {
		c.Err = &unavailableError{exitSource, c.Err, c.Remedy}
	}
	return c
}

// checkSink reports whether the sink can be written to, and what its server's settings cost.
func checkSink(ctx context.Context, cfg *config, look sinkLook) []canal.Check {
	c := canal.Check{Name: "sink", Status: canal.CheckOK, Detail: cfg.Publish.Describe()}
	warnings, err := look(ctx)
	if err == nil {
		checks := []canal.Check{c}
		for _, w := range warnings {
			checks = append(checks, canal.Check{Name: "sink settings", Status: canal.CheckWarn, Detail: w.Detail, Remedy: w.Remedy})
		}
		return checks
	}
	c.Status, c.Detail, c.Err = canal.CheckFail, err.Error(), err
	if _, refused := errors.AsType[*publish.PermanentError](err); !refused {
		c.Err = &unavailableError{code: exitSink, err: err}
	}
	// The sinks' errors end with the remedy.
	if detail, remedy, found := strings.Cut(c.Detail, "; "); found {
		c.Detail, c.Remedy = detail, remedy
	}
	return []canal.Check{c}
}

// lookAtSink opens the configured sink for its questions. A file is only looked at: opening it
// would lock it and cut its end off, beside a daemon that is writing to it.
func (a *app) lookAtSink(ctx context.Context, cfg *config) ([]publish.Warning, error) {
	if cfg.Publish.File != nil {
		return nil, lookAtFile(cfg.Publish.File.Path)
	}
	sink, err := publish.Open(ctx, cfg.Publish, publish.Deps{Stdout: a.stdout, Logger: a.logger})
	if err != nil {
		return nil, err
	}
	warnings, err := publish.Inspect(ctx, sink)
	return warnings, errors.Join(err, sink.Close())
}

func lookAtFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; name another in publish.file.path", path)
	case err == nil:
		err = unix.Access(path, unix.W_OK)
	default:
		err = unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("write to %s: %w; name a file in publish.file.path whose directory exists and may be written to", path, err)
	}
	return nil
}

// checkCheckpoint looks at the checkpoint without taking it, so that it can be done beside a
// running daemon. The record is nil where there is none yet.
func checkCheckpoint(ctx context.Context, cfg *config) (*checkpoint.Record, []canal.Check) {
	const name = "checkpoint"
	failed := func(err error) (*checkpoint.Record, []canal.Check) {
		c := canal.FailedCheck(name, err)
		if detail, remedy, found := strings.Cut(c.Detail, "; "); found {
			c.Detail, c.Remedy = detail, remedy
		}
		return nil, []canal.Check{c}
	}
	if !cfg.Checkpoint.Remote() && cfg.Checkpoint.Path == "" {
		return nil, []canal.Check{{Name: name, Status: canal.CheckOK, Detail: "none is kept (--checkpoint FILE keeps one)"}}
	}
	reader, err := viewStore(cfg)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = reader.Close() }() // it only read
	record, err := reader.Load(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		record, err = nil, lookAtDirectory(cfg.Checkpoint.Path)
	}
	if err != nil {
		return failed(err)
	}
	survey, err := reader.Survey(ctx)
	if err != nil {
		return failed(err)
	}
	c := canal.Check{Name: name, Status: canal.CheckOK, Detail: fmt.Sprintf("%s: none yet, a run begins at source.start: %s", reader.Place(), cfg.Source.Start)}
	if record != nil {
		c.Detail = fmt.Sprintf("%s: at %s", reader.Place(), describePosition(record.Position))
	}
	return record, append([]canal.Check{c}, surveyChecks(survey)...)
}

// lookAtDirectory reports whether a checkpoint's file could be written; none is needed elsewhere.
func lookAtDirectory(path string) error {
	if path == "" {
		return nil
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK); err != nil {
		return &checkpoint.AccessError{Op: "open", Place: path, Remedy: "name a file in checkpoint.path whose directory exists and may be written to", Err: err}
	}
	return nil
}

func surveyChecks(s checkpoint.Survey) []canal.Check {
	lock := canal.Check{Name: "checkpoint lock", Status: canal.CheckOK, Detail: "free"}
	if s.Holder != nil {
		lock.Status = canal.CheckWarn
		lock.Detail = fmt.Sprintf("held by %s", s.Holder)
		lock.Remedy = "that is as it should be while binlogd runs; another run is refused with exit code 6 as long as that one lives"
	}
	checks := []canal.Check{lock}
	for _, w := range s.Warnings {
		checks = append(checks, canal.Check{Name: "checkpoint settings", Status: canal.CheckWarn, Detail: w.Detail, Remedy: w.Remedy})
	}
	return checks
}

// describePosition is a place on one line.
func describePosition(p canal.Position) string {
	file := fmt.Sprintf("%s:%d", p.File, p.Offset)
	switch {
	case p.GTIDs == nil:
		return file
	case p.File == "":
		return "GTIDs " + p.GTIDs.String()
	}
	return fmt.Sprintf("GTIDs %s (%s)", p.GTIDs, file)
}

// preflightError is one or more failed checks.
type preflightError struct{ failed []canal.Check }

// failures is nil where no check failed.
func failures(checks []canal.Check) error {
	e := &preflightError{}
	for _, c := range checks {
		if c.Status == canal.CheckFail {
			e.failed = append(e.failed, c)
		}
	}
	if len(e.failed) == 0 {
		return nil
	}
	return e
}

func (e *preflightError) Error() string {
	lines := make([]string, len(e.failed))
	for i, c := range e.failed {
		lines[i] = c.Name + ": " + c.Detail
		if c.Remedy != "" {
			lines[i] += "\n  -> " + c.Remedy
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap is the first failure: it decides the exit code.
func (e *preflightError) Unwrap() error { return e.failed[0].Err }

// passing reports whether nothing but time is needed to mend what failed.
func (e *preflightError) passing() bool {
	for _, c := range e.failed {
		if _, away := errors.AsType[*unavailableError](c.Err); !away {
			return false
		}
	}
	return true
}
