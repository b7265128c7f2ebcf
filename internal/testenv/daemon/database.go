package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"database/sql"

	_ "github.com/go-sql-driver/mysql" // the driver that DSN is for

	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// DatabaseOptions say what a database server is to be.
type DatabaseOptions struct {
	Port     int
	ServerID uint32
	// Args come after the defaults and override them.
	Args []string
}

// NewDataDir makes dir the data folder of a new server: a copy of db's template.
func NewDataDir(ctx context.Context, db fetch.Database, dir string) error {
	// cp keeps holes, links and modes, and is quicker than reading files here.
	if err := run(ctx, "cp", "--archive", "--sparse=always", db.Template, dir); err != nil {
		return fmt.Errorf("copy the data folder template: %w", err)
	}
	return nil
}

// MySQL is the Spec of a MySQL server on dir, which NewDataDir made: GTIDs on, row
// format with full metadata, durable at every commit.
func MySQL(db fetch.Database, dir string, o DatabaseOptions) (Spec, error) {
	return database(db, "mysql", dir, o,
		"--mysqlx=OFF",
		"--gtid-mode=ON",
		"--enforce-gtid-consistency=ON",
		"--innodb-redo-log-capacity=128M",
	)
}

func database(db fetch.Database, name, dir string, o DatabaseOptions, args ...string) (Spec, error) {
	all := []string{
		"--no-defaults",
		"--user=root", // where the caller is root the server refuses to guess
		"--basedir=" + filepath.Join(db.Root, "usr"),
		"--datadir=" + dir,
		"--port=" + strconv.Itoa(o.Port),
		"--bind-address=127.0.0.1",
		"--socket=mysql.sock",
		"--pid-file=" + filepath.Join(dir, "mysql.pid"),
		"--skip-name-resolve",
		"--max-connect-errors=1000000", // tests break connections on purpose
		"--secure-file-priv=",
		"--server-id=" + strconv.FormatUint(uint64(o.ServerID), 10),
		"--log-bin=binlog",
		"--binlog-format=ROW",
		"--binlog-row-metadata=FULL",
		"--sync-binlog=1",
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-buffer-pool-size=64M",
	}
	all = append(append(all, args...), o.Args...)
	words, err := db.Command(db.Program, all...)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Name:       fmt.Sprintf("%s on port %d", name, o.Port),
		Command:    words,
		Dir:        dir,
		Ready:      func(ctx context.Context) error { return pingDatabase(ctx, o.Port) },
		StartLimit: 2 * time.Minute,
		StopLimit:  time.Minute,
	}, nil
}

// DSN is the address of a database server for go-sql-driver, as root, with several
// statements per call allowed.
func DSN(port int) string {
	return "root:" + fetch.RootPassword + "@tcp(" + Address(port) + ")/?multiStatements=true"
}

// Address is 127.0.0.1:port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func pingDatabase(ctx context.Context, port int) error {
	// The driver logs every refused connection, so a plain one is tried first.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", Address(port))
	if err != nil {
		return err
	}
	conn.Close()
	db, err := sql.Open("mysql", DSN(port))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

// run runs a short program to its end.
func run(ctx context.Context, words ...string) error {
	if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", words[0], err, bytes.TrimSpace(out))
	}
	return nil
}
