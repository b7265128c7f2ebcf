package testenv

import (
	"context"
	"database/sql"
	"fmt"
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
	// LowerCaseNames sets lower_case_table_names=1: names are kept in lower case and compared
	// without regard to case.
	LowerCaseNames bool
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

	instance
	kind databaseKind
	db   *sql.DB
}

// databaseKind is what differs between the database servers.
type databaseKind struct {
	name   string
	flavor string
	fetch  func(context.Context) (fetch.Database, error)
	// fetchLower is fetch for lower_case_table_names=1, where that takes a data folder of its own.
	fetchLower func(context.Context) (fetch.Database, error)
	spec       func(db fetch.Database, dir string, o daemon.DatabaseOptions) (daemon.Spec, error)
}

var (
	mysqlKind       = databaseKind{name: "mysql", flavor: "mysql", fetch: fetch.MySQL, fetchLower: fetch.MySQLLowerCase, spec: daemon.MySQL}
	mariadb1011Kind = databaseKind{name: "mariadb-10.11", flavor: "mariadb", fetch: fetch.MariaDB1011, spec: daemon.MariaDB}
	mariadb118Kind  = databaseKind{name: "mariadb-11.8", flavor: "mariadb", fetch: fetch.MariaDB118, spec: daemon.MariaDB}
)

// MySQL returns the MySQL 9.x server that the process's tests share. Tests keep to
// databases of their own (Server.Database) and change no global settings.
func MySQL(t testing.TB) *Server { return sharedDatabase(t, mysqlKind) }

// StartMySQL starts a MySQL 9.x server that is the test's own and ends with it.
func StartMySQL(t testing.TB, o Options) *Server { return ownDatabase(t, mysqlKind, o) }

// MariaDB returns the MariaDB 10.11 server that the process's tests share.
func MariaDB(t testing.TB) *Server { return sharedDatabase(t, mariadb1011Kind) }

// StartMariaDB starts a MariaDB 10.11 server that is the test's own and ends with it.
func StartMariaDB(t testing.TB, o Options) *Server { return ownDatabase(t, mariadb1011Kind, o) }

// MariaDB118 returns the MariaDB 11.8 server that the process's tests share.
func MariaDB118(t testing.TB) *Server { return sharedDatabase(t, mariadb118Kind) }

// StartMariaDB118 starts a MariaDB 11.8 server that is the test's own and ends with it.
func StartMariaDB118(t testing.TB, o Options) *Server { return ownDatabase(t, mariadb118Kind, o) }

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
	destroyAfter(t, s)
	return s
}

func startDatabase(ctx context.Context, kind databaseKind, o Options) (*Server, error) {
	fetchKind := kind.fetch
	if o.LowerCaseNames {
		o.Args = append([]string{"--lower-case-table-names=1"}, o.Args...)
		if kind.fetchLower != nil {
			fetchKind = kind.fetchLower
		}
	}
	software, err := fetchKind(ctx)
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
	}
	s.kind, s.release = kind, release
	s.spec, err = kind.spec(software, dir, daemon.DatabaseOptions{Port: port, ServerID: o.ServerID, Args: o.Args})
	if err != nil {
		return nil, err
	}
	s.spec.Name = fmt.Sprintf("%s on port %d", o.Name, port)
	if s.db, err = daemon.OpenDatabase(port); err != nil {
		return nil, err
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

// destroy ends the server for good, with its data.
func (s *Server) destroy() {
	s.db.Close()
	s.instance.destroy()
}

// DB is a pool of root's connections, for several statements a call.
func (s *Server) DB() *sql.DB { return s.db }
