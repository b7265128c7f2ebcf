// Binlogd joins a MySQL or MariaDB server as a replica, turns the row changes of its
// binlog into events and publishes them.
//
// One transaction's way begins in run.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/admin"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// Exit codes, as `binlogd help` lists them.
const (
	exitOK         = 0
	exitUnexpected = 1
	exitConfig     = 2
	exitSource     = 3
	exitSink       = 4
	exitCheckpoint = 5
	exitLocked     = 6
)

func main() {
	// A reader of standard output that goes away is the sink's error, not this process's
	// silent end.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilSignal(context.Background(), os.Stderr)
	code := newApp(os.Stdin, os.Stdout, os.Stderr, os.LookupEnv).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// sameRequest is for how long signals count as one request to stop: timeout(1), terminals
// and supervisors signal a process and its group, so that one request arrives twice.
const sameRequest = 200 * time.Millisecond

// untilSignal ends the context at the first SIGINT or SIGTERM, which asks for an orderly
// end; one that comes after sameRequest ends the process on the spot, as a kill would.
func untilSignal(parent context.Context, stderr io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		second := <-signals
		for time.Since(asked) < sameRequest {
			second = <-signals
		}
		fmt.Fprintf(stderr, "binlogd: second signal (%s), stopping at once\n", second)
		code := 128
		if number, ok := second.(syscall.Signal); ok {
			code += int(number)
		}
		os.Exit(code)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// unavailableError is a source or sink that does not answer at the start. Another attempt
// may succeed without a change.
type unavailableError struct {
	code   int
	err    error
	remedy string
}

func (e *unavailableError) Error() string {
	if e.remedy == "" {
		return e.err.Error()
	}
	return e.err.Error() + "; " + e.remedy
}

func (e *unavailableError) Unwrap() error { return e.err }

// usageError is a command line that cannot be understood or does not make sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// reportedError ends the program with a code after its message was already given.
type reportedError struct{ code int }

func (e *reportedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var (
		reported *reportedError
		usage    *usageError
		located  *locatedError
		config   *canal.ConfigError
		source   *canal.SourceError
		schema   *canal.SchemaError
		row      *canal.DecodeError
		refused  *publish.PermanentError
		away     *unavailableError
		option   *mapping.OptionError
		rule     *mapping.RuleError
		listen   *admin.ListenError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &reported):
		return reported.code
	case checkpoint.Elsewhere(err):
		return exitLocked
	case checkpoint.Unusable(err):
		return exitCheckpoint
	case errors.As(err, &refused):
		return exitSink
	case errors.As(err, &source), errors.As(err, &schema), errors.As(err, &row):
		return exitSource
	case errors.As(err, &usage), errors.As(err, &located), errors.As(err, &config), errors.As(err, &option), errors.As(err, &rule), errors.As(err, &listen):
		return exitConfig
	case errors.As(err, &away):
		return away.code
	}
	return exitUnexpected
}
