package checkpoint

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlBackend keeps checkpoints in three tables of a schema of MySQL or MariaDB, a row of
// the first two for each pipeline. What is written at once is one transaction, which begins
// by locking the lease's row: whoever took the checkpoint over is seen there.
type mysqlBackend struct {
	options MySQLOptions
	name    string
	db      *sql.DB
	lease   lease // that was claimed
}

func newMySQL(o MySQLOptions, name string, lease time.Duration) (*mysqlBackend, error) {
	config, err := o.driver(lease)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("checkpoint.mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	db.SetConnMaxIdleTime(time.Hour)
	return &mysqlBackend{options: o, name: name, db: db}, nil
}

func (b *mysqlBackend) place() string {
	return fmt.Sprintf("mysql://%s/%s/%s", b.options.Address, b.options.database(), b.name)
}

// sql puts the tables' names for RECORD, LEASE and PART.
func (b *mysqlBackend) sql(statement string) string {
	database := "`" + b.options.database() + "`."
	return strings.NewReplacer("RECORD", database+recordTable, "LEASE", database+leaseTable, "PART", database+partTable).Replace(statement)
}

func (b *mysqlBackend) record(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout())
	defer cancel()
	content := []byte{}
	err := b.db.QueryRowContext(ctx, b.sql("SELECT content FROM RECORD WHERE name = ?"), b.name).Scan(&content)
	if errors.Is(err, sql.ErrNoRows) || missing(err) {
		return nil, nil
	}
	return content, err
}

func (b *mysqlBackend) parts(ctx context.Context, s shelf) ([]part, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout())
	defer cancel()
	rows, err := b.db.QueryContext(ctx, b.sql("SELECT number, content FROM PART WHERE name = ? AND shelf = ?"), b.name, string(s))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var parts []part
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.Key, &p.Data); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, rows.Err()
}

// claim goes by the server's clock.
func (b *mysqlBackend) claim(ctx context.Context, mine lease, _ bool) (theirs *lease, err error) {
	// Another process may have stopped inside a transaction, for as long as its lease lasts.
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout()+mine.Length)
	defer cancel()
	b.lease = mine
	theirs, err = b.tryClaim(ctx, mine)
	if missing(err) {
		if err := b.create(ctx); err != nil {
			return nil, err
		}
		theirs, err = b.tryClaim(ctx, mine)
	}
	if n := number(err); n == errDuplicate || n == errDeadlock { // another process was a moment faster
		theirs, err = b.tryClaim(ctx, mine)
	}
	return theirs, err
}

func (b *mysqlBackend) tryClaim(ctx context.Context, mine lease) (theirs *lease, err error) {
	content, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	err = b.transact(ctx, func(tx *sql.Tx) error {
		token, held, current, err := b.lock(ctx, tx)
		if errors.Is(err, sql.ErrNoRows) {
			_, err := tx.ExecContext(ctx, b.sql("INSERT INTO LEASE (name, token, content, expires) VALUES (?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)"),
				b.name, mine.Token, content, mine.Length.Microseconds())
			return err
		}
		if err != nil {
			return err
		}
		if held && token != mine.Token {
			theirs = current
			return nil
		}
		_, err = tx.ExecContext(ctx, b.sql("UPDATE LEASE SET token = ?, content = ?, expires = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE name = ?"),
			mine.Token, content, mine.Length.Microseconds(), b.name)
		return err
	})
	return theirs, err
}

// lock locks the lease's row until the transaction ends.
func (b *mysqlBackend) lock(ctx context.Context, tx *sql.Tx) (token string, held bool, l *lease, err error) {
	var content []byte
	err = tx.QueryRowContext(ctx, b.sql("SELECT token, content, token <> '' AND expires > UTC_TIMESTAMP(6) FROM LEASE WHERE name = ? FOR UPDATE"), b.name).Scan(&token, &content, &held)
	if err != nil {
		return "", false, nil, err
	}
	l = &lease{}
	if err := json.Unmarshal(content, l); err != nil {
		l = &lease{Token: token} // knowing who is a courtesy
	}
	return token, held, l, nil
}

// renew goes on also where the lease has run out and nobody has taken it.
func (b *mysqlBackend) renew(ctx context.Context) error {
	b.lease.Renewals++
	content, err := json.Marshal(b.lease)
	if err != nil {
		return err
	}
	return b.holding(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, b.sql("UPDATE LEASE SET content = ?, expires = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE name = ?"),
			content, b.lease.Length.Microseconds(), b.name)
		return err
	})
}

func (b *mysqlBackend) release(ctx context.Context) error {
	err := b.holding(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, b.sql("UPDATE LEASE SET token = '' WHERE name = ?"), b.name)
		return err
	})
	if Elsewhere(err) {
		return nil
	}
	return err
}

func (b *mysqlBackend) commit(ctx context.Context, w batch) error {
	return b.holding(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if w.record != nil {
			_, err := tx.ExecContext(ctx, b.sql("INSERT INTO RECORD (name, content) VALUES (?, ?) ON DUPLICATE KEY UPDATE content = VALUES(content)"), b.name, w.record)
			if err != nil {
				return err
			}
		}
		for s, c := range map[shelf]change{historyShelf: w.history, schemaShelf: w.schema} {
			if err := b.change(ctx, tx, s, &c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *mysqlBackend) change(ctx context.Context, tx *sql.Tx, s shelf, c *change) error {
	if len(c.Drop) > 0 {
		args := []any{b.name, string(s)}
		for _, key := range c.Drop {
			args = append(args, key)
		}
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(c.Drop)), ", ")
		if _, err := tx.ExecContext(ctx, b.sql("DELETE FROM PART WHERE name = ? AND shelf = ? AND number IN ("+marks+")"), args...); err != nil {
			return err
		}
	}
	for _, p := range c.Put {
		_, err := tx.ExecContext(ctx, b.sql("INSERT INTO PART (name, shelf, number, content) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE content = VALUES(content)"),
			b.name, string(s), p.Key, p.Data)
		if err != nil {
			return err
		}
	}
	return nil
}

// holding runs a transaction while the lease is held.
func (b *mysqlBackend) holding(ctx context.Context, run func(ctx context.Context, tx *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout())
	defer cancel()
	return b.transact(ctx, func(tx *sql.Tx) error {
		token, held, current, err := b.lock(ctx, tx)
		if errors.Is(err, sql.ErrNoRows) {
			return errors.New("the row of its lease was deleted")
		}
		if err != nil {
			return err
		}
		if token != b.lease.Token {
			fenced := &FencedError{}
			if held {
				fenced.Holder = current.Holder
			}
			return fenced
		}
		return run(ctx, tx)
	})
}

// transact runs a transaction, and again where the server had closed the connection before:
// what it then left undone is the same.
func (b *mysqlBackend) transact(ctx context.Context, run func(*sql.Tx) error) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := b.transactOnce(ctx, run)
		closed := number(err) == errClosedIdle || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn)
		if !closed || attempt == attempts || ctx.Err() != nil {
			return err
		}
	}
}

func (b *mysqlBackend) transactOnce(ctx context.Context, run func(*sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := run(tx); err != nil {
		_ = tx.Rollback() // where it fails the connection is gone, and the transaction with it
		return err
	}
	return tx.Commit()
}

// create makes what is missing.
func (b *mysqlBackend) create(ctx context.Context) error {
	const name = "name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"
	database := "`" + b.options.database() + "`"
	for _, statement := range []string{
		"CREATE DATABASE IF NOT EXISTS " + database,
		b.sql("CREATE TABLE IF NOT EXISTS RECORD (" + name + ", content LONGBLOB NOT NULL, PRIMARY KEY (name)) ENGINE=InnoDB COMMENT='where each binlogd is: binlogd checkpoint show'"),
		b.sql("CREATE TABLE IF NOT EXISTS LEASE (" + name + ", token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, content BLOB NOT NULL, expires DATETIME(6) NOT NULL, PRIMARY KEY (name)) ENGINE=InnoDB COMMENT='which process holds each checkpoint'"),
		b.sql("CREATE TABLE IF NOT EXISTS PART (" + name + ", shelf VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, number BIGINT UNSIGNED NOT NULL, content LONGBLOB NOT NULL, PRIMARY KEY (name, shelf, number)) ENGINE=InnoDB COMMENT='history of checkpoints and of schemas'"),
	} {
		_, err := b.db.ExecContext(ctx, statement)
		if err != nil && strings.HasPrefix(statement, "CREATE DATABASE") && b.there(ctx) {
			continue // the account may make tables in it, and no databases
		}
		if err != nil {
			return fmt.Errorf("make the tables of the checkpoint: %w", err)
		}
	}
	return nil
}

func (b *mysqlBackend) there(ctx context.Context) bool {
	var n int
	err := b.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", b.options.database()).Scan(&n)
	return err == nil && n > 0
}

func (b *mysqlBackend) holder(ctx context.Context) (*lease, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout())
	defer cancel()
	var content []byte
	err := b.db.QueryRowContext(ctx, b.sql("SELECT content FROM LEASE WHERE name = ? AND token <> '' AND expires > UTC_TIMESTAMP(6)"), b.name).Scan(&content)
	if errors.Is(err, sql.ErrNoRows) || missing(err) {
		return nil, nil //nolint:nilnil // nobody holds it
	}
	if err != nil {
		return nil, err
	}
	l := &lease{}
	return l, json.Unmarshal(content, l)
}

func (b *mysqlBackend) close() error {
	_ = b.db.Close() // a connection that is gone already is no failure
	return nil
}

// Numbers of the servers' errors.
const (
	errAccessDenied        = 1045
	errDatabaseDenied      = 1044
	errTableDenied         = 1142
	errUnknownDatabase     = 1049
	errDuplicate           = 1062
	errNoSuchTable         = 1146
	errDeadlock            = 1213
	errReadOnlyOption      = 1290
	errReadOnlyTransaction = 1792
	errClosedIdle          = 4031
)

func number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// missing reports whether the database or a table is not there.
func missing(err error) bool {
	n := number(err)
	return n == errUnknownDatabase || n == errNoSuchTable
}

func (b *mysqlBackend) remedy(err error) string {
	switch number(err) {
	case errAccessDenied:
		return "check checkpoint.mysql.user and password"
	case errDatabaseDenied, errTableDenied:
		return "on that server, " + strings.Join(MySQLGrants(b.options.database(), "the account"), " ")
	case errReadOnlyOption, errReadOnlyTransaction:
		return "that server takes no writes: point checkpoint.mysql.address at one that does"
	}
	return "check that the server of checkpoint.mysql.address runs and lets this machine in; the checkpoint there is as it was"
}
