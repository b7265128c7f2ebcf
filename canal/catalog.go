package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// catalogPatience is how long a Catalog goes on trying to reach the server. The source
// itself reconnects meanwhile, so that a restart of the server is no reason to stop.
const catalogPatience = 5 * time.Minute

// Catalog is the Schemas that asks the server's information_schema. It knows tables as
// they are now: rows that were written before a change of their table are an error where
// the column count or a type tells, which is why full metadata in the rows
// (binlog_row_metadata=FULL) is better.
type Catalog struct {
	connect func(context.Context) (*client.Conn, error)

	mu   sync.Mutex
	conn *client.Conn // nil until first asked, and after an error
}

// NewCatalog returns a Catalog that connects when it is first asked. The account sees
// tables on which it has any privilege.
func NewCatalog(connect func(context.Context) (*client.Conn, error)) *Catalog {
	return &Catalog{connect: connect}
}

// Close gives up the connection. The catalog connects again when it is asked again.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil
	}
	conn := c.conn
	c.conn = nil
	return conn.Close()
}

// Table returns the schema that information_schema shows for a table. A *SchemaError says
// that it does not fit columns. A server that cannot be reached is tried again for some minutes.
func (c *Catalog) Table(ctx context.Context, database, name string, columns []Column) (*Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return backoff.Retry(ctx, func() (*Table, error) {
		table, err := c.ask(ctx, database, name, columns)
		var schema *SchemaError
		var config *ConfigError
		if errors.As(err, &schema) || errors.As(err, &config) || accountLacks(err) {
			err = backoff.Permanent(err)
		}
		return table, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(catalogPatience))
}

func (c *Catalog) ask(ctx context.Context, database, name string, columns []Column) (*Table, error) {
	if c.conn == nil {
		conn, err := c.connect(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the schema of table %s.%s: %w", database, name, err)
		}
		if err := prepareCatalog(ctx, conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
		c.conn = conn
	}
	table, err := readSchema(ctx, c.conn, database, name, columns)
	var schema *SchemaError
	if err != nil && !errors.As(err, &schema) {
		_ = c.conn.Close() // it may be of no further use; the next attempt has a new one
		c.conn = nil
	}
	return table, err
}

// prepareCatalog makes the session show generated invisible primary keys, which are in the
// rows, and answer in UTF-8.
func prepareCatalog(ctx context.Context, conn *client.Conn) error {
	const errUnknownSystemVariable = 1193
	if _, err := ask(ctx, conn, "SET NAMES utf8mb4"); err != nil {
		return err
	}
	_, err := ask(ctx, conn, "SET SESSION show_gipk_in_create_table_and_information_schema = ON")
	var refusal *mysql.MyError
	if errors.As(err, &refusal) && refusal.Code == errUnknownSystemVariable {
		return nil // MariaDB, and MySQL before 8.0.30: they generate none
	}
	return err
}

// readSchema reads a table's schema and compares it with the columns of its table map.
func readSchema(ctx context.Context, conn *client.Conn, database, name string, columns []Column) (*Table, error) {
	answer, err := ask(ctx, conn, `SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA, IS_NULLABLE
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`, database, name)
	if err != nil {
		return nil, fmt.Errorf("read the columns of table %s.%s: %w", database, name, err)
	}
	table := &Table{Database: database, Name: name, Columns: make([]Column, 0, len(columns))}
	refuse := func(column, format string, args ...any) error {
		return &SchemaError{
			Database: database, Table: name, Column: column, Problem: fmt.Sprintf(format, args...),
			Remedy: "the table was probably changed since these rows were written; SET GLOBAL binlog_row_metadata=FULL keeps that from happening again, and source.start with a new checkpoint.path passes over these rows",
		}
	}
	if len(columns) > 0 && columns[0].Name != "" {
		return nameMariaDBTypes(&Table{Database: database, Name: name, Columns: slices.Clone(columns)}, answer)
	}
	if len(answer.rows) == 0 {
		return nil, refuse("", "the server shows no such table to this account")
	}
	for i := range answer.rows {
		var c Column
		if i < len(columns) {
			c = columns[i]
		}
		typ, err := parseColumnType(answer.value(i, "column_type"))
		if err != nil {
			return nil, refuse(answer.value(i, "column_name"), "%s", err)
		}
		c.describe(answer.value(i, "column_name"), &typ, answer.value(i, "character_set_name"))
		c.Nullable = answer.value(i, "is_nullable") == "YES"
		c.Invisible = strings.Contains(strings.ToUpper(answer.value(i, "extra")), "INVISIBLE")
		table.Columns = append(table.Columns, c)
		if i < len(columns) {
			if !typ.fits(&columns[i], c.Charset) {
				return nil, refuse(c.Name, "it is %s now, the rows have %s in its place", typ.text, columns[i].typeName())
			}
		}
	}
	addSystemVersioning(table, columns)
	if hidden := hiddenHashes(columns, len(table.Columns)); len(table.Columns)+hidden != len(columns) {
		return nil, refuse("", "it has %d columns now, the rows have %d", len(table.Columns), len(columns))
	}
	if table.PrimaryKey, err = readPrimaryKey(ctx, conn, table); err != nil {
		return nil, err
	}
	return table, nil
}

// describe sets what information_schema says of a column.
func (c *Column) describe(name string, typ *columnType, charset string) {
	c.Name = name
	c.SourceType = typ.text
	c.Unsigned = typ.unsigned
	c.Labels = typ.labels
	c.Charset = charset
	switch c.Type {
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_BLOB,
		typeMariaDBVarcharCompressed, typeMariaDBBlobCompressed:
		if charset == "" {
			c.Charset = "binary"
		}
	case mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP:
		// MariaDB's own formats have their digits in the schema only.
		c.fraction = uint8(typ.arg(0, 0))
	}
}

// readPrimaryKey reads the column indexes of a table's primary key, in key order.
func readPrimaryKey(ctx context.Context, conn *client.Conn, table *Table) ([]int, error) {
	answer, err := ask(ctx, conn, `SELECT COLUMN_NAME FROM information_schema.STATISTICS
		WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX`, table.Database, table.Name)
	if err != nil {
		return nil, fmt.Errorf("read the primary key of table %s.%s: %w", table.Database, table.Name, err)
	}
	var key []int
	for i := range answer.rows {
		name := answer.value(i, "column_name")
		for c := range table.Columns {
			if strings.EqualFold(table.Columns[c].Name, name) {
				key = append(key, c)
			}
		}
	}
	if len(key) != len(answer.rows) {
		return nil, &SchemaError{
			Database: table.Database, Table: table.Name, Problem: "its primary key names columns that it does not have",
			Remedy: "it was changed while it was looked at: start binlogd again",
		}
	}
	return key, nil
}
