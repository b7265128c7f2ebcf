package canal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// CheckStatus is the outcome of one preflight check.
type CheckStatus string

// The outcomes of a check.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn" // it will run, at a price that Detail names
	CheckFail CheckStatus = "fail" // it cannot run
)

// Check is one line of a preflight report.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`           // what was found
	Remedy string      `json:"remedy,omitempty"` // what to type to mend it
	// Err is set when Status is CheckFail. It is, or wraps, a *ConfigError or a
	// *SourceError, unless another attempt may succeed without a change.
	Err error `json:"-"`
}

func checkOK(name, format string, args ...any) Check {
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func checkWarn(name, detail, remedy string) Check {
	return Check{Name: name, Status: CheckWarn, Detail: detail, Remedy: remedy}
}

// failConfig is a check that only a change to the configuration or the account mends.
func failConfig(name, detail, remedy string) Check {
	return Check{Name: name, Status: CheckFail, Detail: detail, Remedy: remedy, Err: &ConfigError{Err: errors.New(detail), Remedy: remedy}}
}

// failSource is a check that means that this server cannot be followed as it is.
func failSource(name, detail, remedy string) Check {
	return Check{Name: name, Status: CheckFail, Detail: detail, Remedy: remedy, Err: &SourceError{Err: errors.New(detail), Remedy: remedy}}
}

// FailedCheck is the report of an error that kept a check from being made.
func FailedCheck(name string, err error) Check {
	c := Check{Name: name, Status: CheckFail, Err: err}
	var config *ConfigError
	var source *SourceError
	var lag *LagError
	switch {
	case errors.As(err, &lag):
		c.Detail, c.Remedy = lag.Err.Error(), lag.Remedy
	case errors.As(err, &config):
		c.Detail, c.Remedy = config.Err.Error(), config.Remedy
	case errors.As(err, &source):
		c.Detail, c.Remedy = source.Err.Error(), source.Remedy
	default:
		c.Detail = err.Error()
	}
	return c
}

// PreflightOptions are what the checks of a server are made against.
type PreflightOptions struct {
	// ServerID is the configured source.server_id, 0 where one is chosen at the start.
	ServerID uint32
	// Checkpoint is where reading is to resume, nil where that is not to be checked;
	// Server is the server that it was written for.
	Checkpoint *Position
	Server     Identity
	// Needs are GTIDs beyond Checkpoint that the server must have: what was published of a
	// transaction, or behind an unresolved XA PREPARE. Nil for none.
	Needs *GTIDSet
	// ReadAt is when Checkpoint was read, by this machine's clock; zero where that is not known.
	ReadAt time.Time
	// Called is what messages call Checkpoint: "the checkpoint" when empty.
	Called string
}

func (o PreflightOptions) called() string {
	if o.Called == "" {
		return "the checkpoint"
	}
	return o.Called
}

// Inspector looks at a server over a connection of its own: for the preflight checks, for
// `init`, and to say how far behind a checkpoint is. It changes nothing on the server.
type Inspector struct {
	connect   ConnectOptions
	conn      *client.Conn
	user      string
	server    Identity
	encrypted bool
	variables map[string]string // of the server, by lower-case name
}

// Inspect connects. Its errors are those of ConnectOptions.Connect.
func Inspect(ctx context.Context, o ConnectOptions) (*Inspector, error) {
	conn, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	i := &Inspector{connect: o, conn: conn, user: o.User, encrypted: encrypted(conn)}
	if i.server, err = Identify(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := i.readVariables(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return i, nil
}

// Close ends the connection.
func (i *Inspector) Close() error { return i.conn.Quit() }

// Server is who answered.
func (i *Inspector) Server() Identity { return i.server }

// Address is where it answered.
func (i *Inspector) Address() string { return i.connect.Address }

// Refresh reads the server's settings and its executed set again.
func (i *Inspector) Refresh(ctx context.Context) error { return i.readVariables(ctx) }

func (i *Inspector) readVariables(ctx context.Context) error {
	r, err := ask(ctx, i.conn, `SHOW GLOBAL VARIABLES WHERE Variable_name IN (
		'log_bin', 'binlog_format', 'binlog_row_image', 'binlog_row_metadata', 'binlog_row_value_options', 'gtid_mode',
		'gtid_executed', 'gtid_purged', 'gtid_binlog_pos', 'gtid_binlog_state', 'gtid_slave_pos',
		'log_slave_updates', 'log_replica_updates', 'character_set_server', 'collation_server', 'lower_case_table_names',
		'binlog_expire_logs_seconds', 'binlog_expire_logs_auto_purge', 'expire_logs_days', 'max_binlog_total_size')`)
	if err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	i.variables = make(map[string]string, len(r.rows))
	for _, row := range r.rows {
		i.variables[strings.ToLower(row[0])] = row[1]
	}
	return nil
}

// atLeast reports whether the server is MySQL of that version or newer.
func (i *Inspector) atLeast(version string) bool {
	order, err := mysql.CompareServerVersions(i.server.Version, version)
	return i.server.Flavor == MySQL && err == nil && order >= 0
}

// Checks looks at everything about the server that decides whether it can be followed. The
// connection itself is the first of them: it is there.
func (i *Inspector) Checks(ctx context.Context, o PreflightOptions) []Check {
	checks := []Check{i.checkConnection()}
	checks = append(checks, i.checkPrivileges(ctx)...)
	logged := i.checkBinlog()
	checks = append(checks, logged)
	if logged.Status == CheckFail {
		return checks
	}
	checks = append(checks,
		i.checkFormat(),
		i.checkRowImage(),
		i.checkPartialJSON(),
		i.checkMetadata(),
		i.checkGTIDs(),
		i.checkRetention(),
		i.checkServerID(ctx, o.ServerID))
	checks = append(checks, i.checkReplica(ctx)...)
	checks = append(checks, i.checkXA(ctx)...)
	if o.Checkpoint != nil {
		checks = append(checks, i.checkSettledPlace(ctx, o)...)
	}
	return checks
}

func (i *Inspector) checkConnection() Check {
	how := "not encrypted"
	if i.encrypted {
		how = "encrypted"
	}
	return checkOK("connection", "%s %s, server id %d, %s", product(i.server), i.server.Version, i.server.ServerID, how)
}

func product(server Identity) string {
	if server.Flavor == MariaDB {
		return "MariaDB"
	}
	return "MySQL"
}
