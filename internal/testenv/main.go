// Package testenv gives tests real servers: MySQL, MariaDB, Kafka and Redis, fetched
// on first use, started on 127.0.0.1 on ports of their own, and gone when the tests are.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// and its tests ask for what they need: MySQL and its like return the server that all
// tests of the process share, StartMySQL and its like one that belongs to the test,
// which may be stopped, killed or configured at will.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// Main runs the tests, then stops every server that they left running and removes
// their data, also when the tests are interrupted. It does not return.
func Main(m *testing.M) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-interrupted
		env.close()
		os.Exit(130)
	}()
	if err := env.open(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
	code := m.Run()
	env.close()
	os.Exit(code)
}

// LeakOptions are for goleak.VerifyNone in tests that use this package's servers: they
// leave out the goroutines with which it watches servers and keeps connections.
func LeakOptions() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/binlogd/binlogd/internal/testenv/daemon.(*Process).wait"),
		goleak.IgnoreAnyFunction("github.com/binlogd/binlogd/internal/testenv/daemon.serveLastingThread"),
		goleak.IgnoreAnyFunction("github.com/binlogd/binlogd/internal/testenv.Main.func1"),
		goleak.IgnoreTopFunction("os/signal.signal_recv"),
		goleak.IgnoreTopFunction("os/signal.loop"),
		goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"),
		goleak.IgnoreAnyFunction("github.com/go-sql-driver/mysql.(*mysqlConn).startWatcher.func1"),
	}
}

// env is the test process's one set of servers: testing gives TestMain and the tests
// no other common ground.
var env environment

// environment keeps what must be gone when the process ends.
type environment struct {
	mu      sync.Mutex
	dir     string // of this process; empty before open and after close
	lock    *os.File
	serial  int
	running map[stopper]struct{}
	shared  map[string]*shared
}

type stopper interface{ destroy() }

// shared is a server that is started by the first test that asks for it.
type shared struct {
	once   sync.Once
	server any
	err    error
}

const dirPattern = "binlogd-testenv-*"

// open makes the process's folder, and clears those of processes that were killed.
func (e *environment) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := filepath.Glob(filepath.Join(os.TempDir(), dirPattern, "lock"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if lock, err := tryLock(file); err == nil {
			os.RemoveAll(filepath.Dir(file))
			lock.Close()
		}
	}
	dir, err := os.MkdirTemp("", dirPattern)
	if err != nil {
		return fmt.Errorf("make a folder for servers: %w", err)
	}
	if e.lock, err = tryLock(filepath.Join(dir, "lock")); err != nil {
		return fmt.Errorf("lock the folder for servers: %w", err)
	}
	e.dir = dir
	e.running = map[stopper]struct{}{}
	e.shared = map[string]*shared{}
	return nil
}

func tryLock(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// newDir returns the path, not made yet, of a new server's folder.
func (e *environment) newDir(kind string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		return "", errors.New("no test environment: the package needs `func TestMain(m *testing.M) { testenv.Main(m) }`")
	}
	e.serial++
	return filepath.Join(e.dir, fmt.Sprintf("%s-%d", kind, e.serial)), nil
}

// add notes a running server. It fails when the environment was closed meanwhile.
func (e *environment) add(s stopper) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		return errors.New("the test process is ending")
	}
	e.running[s] = struct{}{}
	return nil
}

func (e *environment) remove(s stopper) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, s)
}

// close stops all servers, in parallel, and removes the folder.
func (e *environment) close() {
	e.mu.Lock()
	dir, running := e.dir, e.running
	e.dir, e.running = "", nil
	e.mu.Unlock()
	if dir == "" {
		return
	}
	var wg sync.WaitGroup
	for s := range running {
		wg.Go(s.destroy)
	}
	wg.Wait()
	os.RemoveAll(dir)
	e.lock.Close()
}

// share returns the process's one server of a kind, and fails the test when it cannot be had.
func share[S any](t testing.TB, kind string, start func(ctx context.Context) (S, error)) S {
	t.Helper()
	env.mu.Lock()
	one := env.shared[kind]
	if one == nil {
		one = &shared{}
		if env.shared != nil {
			env.shared[kind] = one
		}
	}
	env.mu.Unlock()
	// Not the test's own context: the server outlives the test.
	one.once.Do(func() { one.server, one.err = start(context.Background()) })
	if one.err != nil {
		t.Fatalf("testenv: %s: %v", kind, one.err)
	}
	return one.server.(S)
}
