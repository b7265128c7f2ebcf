// Package daemon runs MySQL, MariaDB, Kafka and Redis servers as processes of the
// caller, or detached from it.
package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec says how a server is run.
type Spec struct {
	// Name is for messages: "mysql on port 20001".
	Name string
	// Command is the program and its arguments.
	Command []string
	// Dir is the server's own folder: its working folder, with its data and its log.
	Dir string
	// Ready returns nil once the server answers.
	Ready func(ctx context.Context) error
	// StartLimit is how long it may take until Ready, StopLimit how long a clean stop.
	StartLimit, StopLimit time.Duration
	// Detached servers outlive the process that starts them; others die with it, even
	// when it is killed.
	Detached bool
}

// LogFile is where the server's output goes; it is added to at every start.
func (s Spec) LogFile() string { return filepath.Join(s.Dir, "server.log") }

// Process is one run of a server.
type Process struct {
	spec   Spec
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
}

// Start runs the server and waits until it is ready. When it does not get there, the
// error has the end of its log, and nothing is left running.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer log.Close()
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("find the end of the log of %s: %w", spec.Name, err)
	}

	cmd := exec.Command(spec.Command[0], spec.Command[1:]...) //nolint:noctx // a server outlives the call that starts it
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	if spec.Detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = cmd.Start()
	} else {
		// A group of its own: Ctrl-C reaches the tests, and they stop their servers.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		err = startFromLastingThread(cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, exited: make(chan struct{})}
	go p.wait()
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w; the end of %s:\n%s", spec.Name, err, spec.LogFile(), tail(spec.LogFile(), from))
	}
	return p, nil
}

// startFromLastingThread starts cmd from a thread that lives as long as the process:
// the parent-death signal is sent when the thread that started a child ends, and the
// runtime ends threads as it likes.
func startFromLastingThread(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	lastingThread() <- func() { started <- cmd.Start() }
	return <-started
}

// lastingThread takes functions to run on one thread that never ends.
var lastingThread = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go serveLastingThread(calls)
	return calls
})

func serveLastingThread(calls <-chan func()) {
	runtime.LockOSThread()
	for call := range calls {
		call()
	}
}

func (p *Process) wait() {
	defer close(p.exited)
	p.cmd.Wait() //nolint:errcheck // how a server ended stands in its log
}

func (p *Process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.spec.StartLimit, fmt.Errorf("not ready after %s", p.spec.StartLimit))
	defer cancel()
	var last error
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := p.spec.Ready(attempt)
		cancel()
		select {
		case <-p.exited: // whatever answered there was not this server
			return errors.New("it exited: " + p.cmd.ProcessState.String())
		default:
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// PID is the server's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop asks the server to end and waits for it. One that takes longer than its limit is
// killed, which is an error.
func (p *Process) Stop() error {
	p.signal(syscall.SIGCONT) // a paused process does not hear SIGTERM
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(p.spec.StopLimit):
		p.Kill()
		return fmt.Errorf("stop %s: still running after %s, killed", p.spec.Name, p.spec.StopLimit)
	}
}

// Kill ends the server at once, as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// Pause stops the process where it stands: its connections stay open and are silent.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// signal does nothing when the process is gone.
func (p *Process) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
}

// tail returns at most the last 4 KiB of what was added to file after offset.
func tail(file string, offset int64) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	text = text[min(offset, int64(len(text))):]
	return bytes.TrimSpace(text[max(0, len(text)-4096):])
}
