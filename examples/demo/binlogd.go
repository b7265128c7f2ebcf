package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// binlogd is the real program, run as an operator would: a binary, a configuration
// file, signals, its HTTP endpoints.
type binlogd struct {
	program string
	config  string // file
	logFile string
	admin   string // host:port
	env     []string

	command *exec.Cmd
	exited  chan struct{} // closed once the process is gone
}

// building is a compilation that goes on while the servers are fetched.
type building struct {
	program string
	err     error
	done    chan struct{} // closed when the fields above hold
}

// beginBuild starts to compile cmd/binlogd of the module that the demo belongs to.
func beginBuild(ctx context.Context, module, dir string) *building {
	b := &building{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.program, b.err = buildBinlogd(ctx, module, dir)
	}()
	return b
}

// wait returns the program's path once it is built.
func (b *building) wait() (program string, err error) {
	<-b.done
	return b.program, b.err
}

func buildBinlogd(ctx context.Context, module, dir string) (string, error) {
	program := filepath.Join(dir, "binlogd")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/binlogd")
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build binlogd: %w:\n%s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// start runs binlogd and waits until it says that it is ready.
func (b *binlogd) start(ctx context.Context) error {
	log, err := os.OpenFile(b.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open binlogd's log: %w", err)
	}
	defer log.Close()
	b.command = exec.Command(b.program, "run", "-c", b.config) //nolint:noctx // it is stopped by signals, that is the point
	b.command.Env = append(os.Environ(), b.env...)
	b.command.Stdout, b.command.Stderr = log, log
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := b.command.Start(); err != nil {
		return fmt.Errorf("start binlogd: %w", err)
	}
	b.exited = make(chan struct{})
	go func(command *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		command.Wait() //nolint:errcheck // stands in command.ProcessState
	}(b.command, b.exited)
	return b.await(ctx, time.Minute, "binlogd to be ready", func(ctx context.Context) (bool, error) {
		return b.ready(ctx), nil
	})
}

func (b *binlogd) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.admin+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false // not listening yet
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// await polls until reached says so. It gives up when binlogd ends on its own.
func (b *binlogd) await(ctx context.Context, limit time.Duration, what string, reached func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not so after %s", limit))
	defer cancel()
	for {
		ok, err := reached(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-b.exited:
			return fmt.Errorf("wait for %s: binlogd ended on its own (%s); the end of its log:\n%s", what, b.command.ProcessState, b.logTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; the end of binlogd's log:\n%s", what, context.Cause(ctx), b.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill is kill -9.
func (b *binlogd) kill() {
	if b.command == nil {
		return
	}
	b.command.Process.Kill() //nolint:errcheck // an error means that it is gone already
	<-b.exited
}

// stop is what systemd does: SIGTERM, then wait. binlogd has to end cleanly.
func (b *binlogd) stop() error {
	if err := b.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop binlogd: %w", err)
	}
	select {
	case <-b.exited:
	case <-time.After(30 * time.Second):
		b.kill()
		return errors.New("stop binlogd: still running 30 s after SIGTERM")
	}
	if code := b.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop binlogd: exit code %d instead of 0; the end of its log:\n%s", code, b.logTail())
	}
	return nil
}

// checkpointGTIDs is the executed GTID set of the saved checkpoint, as the command
// line shows it; empty before the first one.
func (b *binlogd) checkpointGTIDs(ctx context.Context) (string, error) {
	show := exec.CommandContext(ctx, b.program, "checkpoint", "show", "-c", b.config, "-o", "json")
	show.Env = append(os.Environ(), b.env...)
	out, err := show.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("show the checkpoint: %w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("show the checkpoint: %w", err)
	}
	var shown struct {
		Position struct {
			GTIDs string `json:"gtids"`
		} `json:"position"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return "", fmt.Errorf("read the shown checkpoint: %w", err)
	}
	return shown.Position.GTIDs, nil
}

// logTail returns the last lines of binlogd's log.
func (b *binlogd) logTail() []byte {
	text, err := os.ReadFile(b.logFile)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-3000):])
}
