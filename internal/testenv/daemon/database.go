package daemon

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

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

// MariaDB is the Spec of a MariaDB server on dir, which NewDataDir made, set up as MySQL is.
func MariaDB(db fetch.Database, dir string, o DatabaseOptions) (Spec, error) {
	return database(db, "mariadb", dir, o,
		"--gtid-strict-mode=ON",
		"--tmpdir="+dir, // servers clear what others left in a shared one
		"--innodb-log-file-size=128M",
	)
}

func database(db fetch.Database, name, dir string, o DatabaseOptions, args ...string) (Spec, error) {
	all := []string{
		"--no-defaults",
		"--user=root", // where the caller is root the server refuses to guess
		"--basedir=" + filepath.Join(db.Root, "usr"),
		"--datadir=" + dir,
		"--lc-messages-dir=" + db.Messages,
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

// OpenDatabase returns a pool of root's connections to a database server of this
// package, with several statements per call allowed.
func OpenDatabase(port int) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd = "root", fetch.RootPassword
	config.Net, config.Addr = "tcp", Address(port)
	config.MultiStatements = true
	config.Logger = &mysql.NopLogger{} // connections that a test broke are no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("configure the connection to port %d: %w", port, err)
	}
	return sql.OpenDB(connector), nil
}

// Address is 127.0.0.1:port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func pingDatabase(ctx context.Context, port int) error {
	db, err := OpenDatabase(port)
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
