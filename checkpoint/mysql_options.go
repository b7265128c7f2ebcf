package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/binlogd/binlogd/canal"
)

// DefaultDatabase is the schema that a checkpoint in MySQL is kept in.
const DefaultDatabase = "binlogd"

// The tables of a checkpoint in MySQL.
const (
	recordTable = "binlogd_checkpoint"
	leaseTable  = "binlogd_lease"
	partTable   = "binlogd_part"
)

// OwnTables is a pattern (mapping.TableRule) of the tables that checkpoints are kept in,
// whatever their database. They are never captured.
const OwnTables = "*.{" + recordTable + "," + leaseTable + "," + partTable + "}"

// MySQLOptions say where in MySQL or MariaDB a checkpoint is kept.
type MySQLOptions struct {
	// Address, User, Password, TLS and Timeout of the server. Timeout bounds one attempt
	// to connect and one transaction.
	canal.ConnectOptions
	// Database is a schema for checkpoints alone; DefaultDatabase by default.
	Database string `yaml:"database"`
}

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *MySQLOptions) Validate() error {
	if err := o.ConnectOptions.Validate(); err != nil {
		// They name the keys of the source, which are the same.
		return errors.New(strings.ReplaceAll(err.Error(), "source.", "checkpoint.mysql."))
	}
	if len(o.Addresses) > 0 {
		return errors.New("checkpoint.mysql.addresses: leave it out: a checkpoint is on one server, that of checkpoint.mysql.address")
	}
	if len(o.Database) > 64 || strings.ContainsAny(o.Database, "`\x00") {
		return errors.New("checkpoint.mysql.database: write the name of a schema for checkpoints alone, such as " + DefaultDatabase)
	}
	return nil
}

func (o *MySQLOptions) database() string {
	if o.Database == "" {
		return DefaultDatabase
	}
	return o.Database
}

func (o *MySQLOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return canal.DefaultTimeout
	}
	return o.Timeout
}

// MySQLGrants are the statements that let an account ('user'@'host') keep checkpoints in a schema.
func MySQLGrants(database, account string) []string {
	quoted := "`" + strings.NewReplacer("`", "``", "_", `\_`, "%", `\%`).Replace(database) + "`"
	return []string{fmt.Sprintf("GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON %s.* TO %s;", quoted, account)}
}

// driver is the configuration of the driver. A connection that is silent for as long as the
// lease lasts is closed by the server: a process that was stopped inside a transaction must not
// keep its successor from the lease's row.
func (o *MySQLOptions) driver(lease time.Duration) (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd = o.User, o.Password
	c.Net, c.Addr = "tcp", o.Address
	switch {
	case strings.Contains(o.Address, "/"):
		c.Net = "unix"
	case !strings.Contains(strings.TrimPrefix(o.Address, "["), ":"):
		c.Addr += ":3306"
	}
	secure, err := o.TLSConfig()
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "source.", "checkpoint.mysql."))
	}
	c.TLS = secure
	c.AllowFallbackToPlaintext = o.TLS.Mode == "" || o.TLS.Mode == canal.TLSPreferred
	c.Timeout, c.ReadTimeout, c.WriteTimeout = o.timeout(), o.timeout(), o.timeout()
	c.InterpolateParams = true
	c.Params = map[string]string{"wait_timeout": strconv.Itoa(int(max(lease.Round(time.Second), time.Second).Seconds()))}
	c.Logger = &mysql.NopLogger{} // what matters is in its errors
	c.ConnectionAttributes = "program_name:binlogd"
	return c, nil
}
