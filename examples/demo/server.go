package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	_ "github.com/go-sql-driver/mysql" // for database/sql

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// server is a MySQL server with an account that may do everything.
type server struct {
	Host, Port     string
	User, Password string
	DB             *sql.DB
}

func (s server) address() string { return net.JoinHostPort(s.Host, s.Port) }

// binlogPosition is a place in the server's binlog.
type binlogPosition struct {
	File   string
	Offset uint64
}

// startMySQL fetches MySQL, if it is not in the cache, and starts one of the demo's own
// with its data in dir. It dies with the demo.
func startMySQL(ctx context.Context, dir string) (server, *daemon.Process, error) {
	software, err := fetch.MySQL(ctx)
	if err != nil {
		return server{}, nil, fmt.Errorf("get MySQL: %w; or give a server of your own: -mysql user:password@host:port", err)
	}
	port, release, err := daemon.ReservePort()
	if err != nil {
		return server{}, nil, err
	}
	defer release()
	data := filepath.Join(dir, "mysql")
	if err := daemon.NewDataDir(ctx, software, data); err != nil {
		return server{}, nil, err
	}
	spec, err := daemon.MySQL(software, data, daemon.DatabaseOptions{Port: port, ServerID: 1})
	if err != nil {
		return server{}, nil, err
	}
	process, err := daemon.Start(ctx, spec)
	if err != nil {
		return server{}, nil, err
	}
	s, err := openServer(ctx, fmt.Sprintf("root:%s@%s", fetch.RootPassword, daemon.Address(port)))
	if err != nil {
		process.Kill()
		return server{}, nil, err
	}
	return s, process, nil
}

// openServer connects to user:password@host:port.
func openServer(ctx context.Context, address string) (server, error) {
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return server{}, fmt.Errorf("read -mysql %q: write user:password@host:port", address)
	}
	user, password, _ := strings.Cut(address[:at], ":")
	host, port, err := net.SplitHostPort(address[at+1:])
	if err != nil {
		return server{}, fmt.Errorf("read -mysql: %w; write user:password@host:port", err)
	}
	s := server{Host: host, Port: port, User: user, Password: password}
	s.DB, err = sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/?multiStatements=true", user, password, s.address()))
	if err != nil {
		return server{}, fmt.Errorf("open MySQL at %s: %w", s.address(), err)
	}
	if err := s.DB.PingContext(ctx); err != nil {
		return server{}, errors.Join(fmt.Errorf("connect to MySQL at %s: %w", s.address(), err), s.DB.Close())
	}
	return s, nil
}

// version is what the server calls itself.
func (s server) version(ctx context.Context) (version string, err error) {
	if err := s.DB.QueryRowContext(ctx, "SELECT @@version").Scan(&version); err != nil {
		return "", fmt.Errorf("ask for the server's version: %w", err)
	}
	return version, nil
}

// position is the end of the binlog now.
func (s server) position(ctx context.Context) (binlogPosition, error) {
	var p binlogPosition
	var doDB, ignoreDB, gtids string
	err := s.DB.QueryRowContext(ctx, "SHOW BINARY LOG STATUS").Scan(&p.File, &p.Offset, &doDB, &ignoreDB, &gtids)
	if err != nil {
		return p, fmt.Errorf("ask for the binlog's end: %w", err)
	}
	return p, nil
}

// executed is the set of all GTIDs that the server has committed.
func (s server) executed(ctx context.Context) (gtids string, err error) {
	if err := s.DB.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&gtids); err != nil {
		return "", fmt.Errorf("ask for the executed GTIDs: %w", err)
	}
	return gtids, nil
}

// subset lets the server decide whether one GTID set is inside another.
func (s server) subset(ctx context.Context, inner, outer string) (is bool, err error) {
	if err := s.DB.QueryRowContext(ctx, "SELECT GTID_SUBSET(?, ?)", inner, outer).Scan(&is); err != nil {
		return false, fmt.Errorf("compare GTID sets: %w", err)
	}
	return is, nil
}

// createReplicaUser makes the account that binlogd needs, with no right too many.
func (s server) createReplicaUser(ctx context.Context, name, password, database string) error {
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", name, password),
		fmt.Sprintf("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO %s@'%%'", name),
		fmt.Sprintf("GRANT SELECT ON %s.* TO %s@'%%'", database, name),
	} {
		if _, err := s.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create binlogd's user: %w", err)
		}
	}
	return nil
}

// dropUser removes an account.
func (s server) dropUser(ctx context.Context, name string) error {
	if _, err := s.DB.ExecContext(ctx, fmt.Sprintf("DROP USER %s@'%%'", name)); err != nil {
		return fmt.Errorf("drop user %s: %w", name, err)
	}
	return nil
}
