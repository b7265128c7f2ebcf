package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	table, err := fitSchema(ctx, c.conn, database, name, columns)
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

// fitSchema reads a table's schema as it is now and compares it with the columns of its table map.
func fitSchema(ctx context.Context, conn *client.Conn, database, name string, columns []Column) (*Table, error) {
	schema, err := readSchema(ctx, conn, database, name)
	if err != nil {
		return nil, err
	}
	if len(columns) > 0 && columns[0].Name != "" {
		if schema == nil {
			schema = &Schema{}
		}
		table := &Table{Database: database, Name: name, Columns: slices.Clone(columns)}
		hideMariaDBColumns(table)
		return nameMariaDBTypes(table, schema)
	}
	misfit := &schemaMisfit{problem: "the server shows no such table to this account"}
	if schema != nil {
		table, err := schema.fit(database, name, columns, "now")
		if !errors.As(err, &misfit) {
			return table, err
		}
	}
	return nil, &SchemaError{
		Database: database, Table: name, Column: misfit.column, Problem: misfit.problem,
		Remedy: "the table was probably changed since these rows were written; SET GLOBAL binlog_row_metadata=FULL keeps that from happening again, and source.start with a new checkpoint.path passes over these rows",
	}
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
