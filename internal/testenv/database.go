package testenv

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// Options say how an own database server differs from the shared one.
type Options struct {
	// Args are further arguments of mysqld or mariadbd; they override the defaults.
	Args []string
	// ServerID is its server_id; by default its port, which nobody else has.
	ServerID uint32
	// Name is for messages; by default the kind of server.
	Name string
}

// Server is a MySQL or MariaDB server: GTIDs on, row format, full row metadata,
// durable at every commit, unless its Options say otherwise.
type Server struct {
	Addr         string // 127.0.0.1:port
	Host         string
	Port         int
	Flavor       string // "mysql" or "mariadb"
	ServerID     uint32
	RootUser     string
	RootPassword string

	kind    databaseKind
	dir     string
	spec    daemon.Spec
	release func() // gives back the port
	db      *sql.DB

	mu      sync.Mutex
	process *daemon.Process // nil while stopped
}

// databaseKind is what differs between the database servers.
type databaseKind struct {
	name   string
	flavor string
	fetch  func(context.Context) (fetch.Database, error)
	spec   func(db fetch.Database, dir string, o daemon.DatabaseOptions) (daemon.Spec, error)
}

var mysqlKind = databaseKind{name: "mysql", flavor: "mysql", fetch: fetch.MySQL, spec: daemon.MySQL}

// MySQL returns the MySQL 9.x server that the process's tests share. Tests keep to
// databases of their own (Server.Database) and change no global settings.
func MySQL(t testing.TB) *Server { return sharedDatabase(t, mysqlKind) }

// StartMySQL starts a MySQL 9.x server that is the test's own and ends with it.
func StartMySQL(t testing.TB, o Options) *Server { return ownDatabase(t, mysqlKind, o) }

func sharedDatabase(t testing.TB, kind databaseKind) *Server {
	t.Helper()
	return share(t, kind.name, func(ctx context.Context) (*Server, error) {
		return startDatabase(ctx, kind, Options{})
	})
}

func ownDatabase(t testing.TB, kind databaseKind, o Options) *Server {
	t.Helper()
	s, err := startDatabase(t.Context(), kind, o)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		env.remove(s)
		s.destroy()
	})
	return s
}

func startDatabase(ctx context.Context, kind databaseKind, o Options) (*Server, error) {
	software, err := kind.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = kind.name
	}
	dir, err := env.newDir(o.Name)
	if err != nil {
		return nil, err
	}
	if err := daemon.NewDataDir(ctx, software, dir); err != nil {
		return nil, err
	}
	port, release, err := daemon.ReservePort()
	if err != nil {
		return nil, err
	}
	if o.ServerID == 0 {
		o.ServerID = uint32(port)
	}
	s := &Server{
		Addr: daemon.Address(port), Host: "127.0.0.1", Port: port,
		Flavor: kind.flavor, ServerID: o.ServerID,
		RootUser: "root", RootPassword: fetch.RootPassword,
		kind: kind, dir: dir, release: release,
	}
	s.spec, err = kind.spec(software, dir, daemon.DatabaseOptions{Port: port, ServerID: o.ServerID, Args: o.Args})
	if err != nil {
		return nil, err
	}
	s.spec.Name = fmt.Sprintf("%s on port %d", o.Name, port)
	if s.db, err = sql.Open("mysql", daemon.DSN(port)); err != nil {
		return nil, fmt.Errorf("open a database handle: %w", err)
	}
	if err := env.add(s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		env.remove(s)
		s.destroy()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
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
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(t.Context()); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

// Stop shuts the server down cleanly.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if p := s.takeProcess(); p != nil {
		if err := p.Stop(); err != nil {
			t.Fatalf("testenv: %v", err)
		}
	}
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if p := s.takeProcess(); p != nil {
		p.Kill()
	}
}

// Restart stops the server cleanly and starts it again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Pause freezes the server: its connections stay open and are silent.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Pause()
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Resume()
	}
}

func (s *Server) takeProcess() *daemon.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	s.process = nil
	return p
}

// destroy ends the server for good, with its data.
func (s *Server) destroy() {
	s.db.Close()
	s.Kill() // the data goes too: nothing to shut down cleanly for
	os.RemoveAll(s.dir)
	s.release()
}

// DataDir is the server's data folder.
func (s *Server) DataDir() string { return s.dir }

// LogFile is where the server's error log goes.
func (s *Server) LogFile() string { return s.spec.LogFile() }

// DB is a pool of root's connections, for several statements a call.
func (s *Server) DB() *sql.DB { return s.db }
