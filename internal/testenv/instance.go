package testenv

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// instance is a server process that can be stopped and started again on the same data
// and port.
type instance struct {
	spec    daemon.Spec
	release func() // gives back the port

	mu      sync.Mutex
	process *daemon.Process // nil while stopped
}

func (s *instance) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	p, err := daemon.Start(ctx, s.spec)
	if err != nil {
		return err
	}
	s.process = p
	return nil
}

// Start starts the server again, on the same data and port. One that runs is left alone.
func (s *instance) Start(t testing.TB) {
	t.Helper()
	if err := s.start(t.Context()); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

// Stop shuts the server down cleanly.
func (s *instance) Stop(t testing.TB) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func (s *instance) stop() error {
	if p := s.takeProcess(); p != nil {
		return p.Stop()
	}
	return nil
}

// Kill ends the server as a crash would.
func (s *instance) Kill() {
	if p := s.takeProcess(); p != nil {
		p.Kill()
	}
}

// Restart stops the server cleanly and starts it again.
func (s *instance) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Pause freezes the server: its connections stay open and are silent.
func (s *instance) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Pause()
	}
}

// Resume lets a paused server go on.
func (s *instance) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Resume()
	}
}

func (s *instance) takeProcess() *daemon.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	s.process = nil
	return p
}

// DataDir is the server's own folder.
func (s *instance) DataDir() string { return s.spec.Dir }

// LogFile is where the server's output goes.
func (s *instance) LogFile() string { return s.spec.LogFile() }

// destroy ends the server for good, with its data.
func (s *instance) destroy() {
	s.Kill() // the data goes too: nothing to shut down cleanly for
	os.RemoveAll(s.spec.Dir)
	s.release()
}

// destroyAfter ends a server that belongs to a test.
func destroyAfter(t testing.TB, s stopper) {
	t.Cleanup(func() {
		env.remove(s)
		s.destroy()
	})
}
