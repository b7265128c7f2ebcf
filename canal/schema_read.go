package canal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// schemaQuery reads schemas from information_schema over a connection that prepareCatalog has prepared.
type schemaQuery struct {
	conn *client.Conn
	// where chooses tables by TABLE_SCHEMA and TABLE_NAME.
	where string
}

// readSchema reads the schema of one table; nil where the server shows none to this account.
func readSchema(ctx context.Context, conn *client.Conn, database, name string) (*Schema, error) {
	q := schemaQuery{conn, "TABLE_SCHEMA = " + textLiteral(database) + " AND TABLE_NAME = " + textLiteral(name)}
	found, err := q.read(ctx, schemaPool{})
	if err != nil {
		return nil, fmt.Errorf("read the schema of table %s.%s: %w", database, name, err)
	}
	for _, schema := range found { // in whatever case the server shows the name
		return schema, nil
	}
	return nil, nil //nolint:nilnil // there is no such table
}

// readSchemas reads the schemas of all tables of some databases, in a few statements however many they are.
func readSchemas(ctx context.Context, conn *client.Conn, databases []string, pool schemaPool) (map[tableName]*Schema, error) {
	if len(databases) == 0 {
		return nil, nil
	}
	quoted := make([]string, len(databases))
	for i, name := range databases {
		quoted[i] = textLiteral(name)
	}
	q := schemaQuery{conn, "TABLE_SCHEMA IN (" + strings.Join(quoted, ", ") + ")"}
	found, err := q.read(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("read the schemas of the tables: %w", err)
	}
	return found, nil
}

func (q schemaQuery) read(ctx context.Context, pool schemaPool) (map[tableName]*Schema, error) {
	found := make(map[tableName]*Schema)
	strs := make(map[string]string) // names and types that tables have in common
	common := func(s string) string {
		if known, ok := strs[s]; ok {
			return known
		}
		s = strings.Clone(s)
		strs[s] = s
		return s
	}
	err := q.each(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES WHERE "+q.where+
		" AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')", func(row []string) {
		found[tableName{common(row[0]), strings.Clone(row[1])}] = &Schema{Charset: charsetOfCollationName(row[2])}
	})
	if err != nil {
		return nil, err
	}
	err = q.each(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE FROM information_schema.COLUMNS WHERE "+q.where+
		" ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION", func(row []string) {
		if s := found[tableName{row[0], row[1]}]; s != nil {
			s.Columns = append(s.Columns, SchemaColumn{
				Name: common(row[2]), Type: common(row[3]), Charset: common(row[4]),
				Invisible: strings.Contains(strings.ToUpper(row[5]), "INVISIBLE"),
				NotNull:   row[7] == "NO", Virtual: strings.Contains(strings.ToUpper(row[5]), "VIRTUAL"),
			})
			if row[6] == "ROW END" {
				s.RowEnd = common(row[2])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = q.each(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, "+keyColumns+" FROM information_schema.STATISTICS WHERE "+q.where+
		" AND NON_UNIQUE = 0 ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX", func(row []string) {
		if s := found[tableName{row[0], row[1]}]; s != nil {
			s.addKeyPart(common(row[2]), common(row[3]), row[4], row[5])
		}
	})
	if err != nil {
		return nil, err
	}
	for name, s := range found {
		if len(s.Columns) == 0 { // dropped while it was looked at
			delete(found, name)
			continue
		}
		if err := s.orderUnique(ctx, q.conn, name); err != nil {
			return nil, err
		}
		s.Columns = slices.Clip(s.Columns)
		found[name] = pool.share(s)
	}
	return found, nil
}

// keyColumns are what addKeyPart wants of information_schema.STATISTICS.
const keyColumns = "INDEX_NAME, COLUMN_NAME, CAST(SUB_PART AS CHAR), INDEX_TYPE"

// orderUnique puts unique keys that were read by their names in the server's order, which SHOW INDEX alone tells. With a
// primary key that can be done without.
func (s *Schema) orderUnique(ctx context.Context, conn *client.Conn, name tableName) error {
	s.UniqueKnown = true
	if len(s.Unique) < 2 {
		return nil
	}
	if len(s.PrimaryKey) > 0 {
		s.forgetUnique()
		return nil
	}
	r, err := ask(ctx, conn, "SHOW INDEX FROM "+quoteName(name.database)+"."+quoteName(name.name))
	if refusedFor(err) { // it is gone
		s.forgetUnique()
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the keys of table %s: %w", name, err)
	}
	order := make(map[string]int)
	for i := range r.rows {
		order[r.value(i, "key_name")] = i
	}
	slices.SortStableFunc(s.Unique, func(a, b UniqueKey) int { return order[a.Name] - order[b.Name] })
	return nil
}

// each calls f for each row of an answer without keeping the answer: it may have hundreds of thousands. The row and its
// texts are valid during the call.
func (q schemaQuery) each(ctx context.Context, statement string, f func(row []string)) error {
	defer bound(ctx, q.conn)()
	var result mysql.Result
	var row []string
	err := q.conn.ExecuteSelectStreaming(statement, &result, func(values []mysql.FieldValue) error {
		row = row[:0]
		for i := range values {
			text := ""
			if values[i].Type != mysql.FieldValueTypeNull { // then AsString is of a row before
				text = string(values[i].AsString())
			}
			row = append(row, text)
		}
		f(row)
		return nil
	}, nil)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("run %q: %w", abbreviate(statement), err)
	}
	return nil
}

// readDatabases reads the default character set of every database that the account may see.
func readDatabases(ctx context.Context, conn *client.Conn) (map[string]string, error) {
	r, err := ask(ctx, conn, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA")
	if err != nil {
		return nil, fmt.Errorf("list the databases: %w", err)
	}
	charsets := make(map[string]string, len(r.rows))
	for _, row := range r.rows {
		charsets[row[0]] = row[1]
	}
	return charsets, nil
}

// listTables lists the base tables that the account may see, system databases aside.
func listTables(ctx context.Context, conn *client.Conn) ([]tableName, error) {
	var names []tableName
	err := schemaQuery{conn: conn}.each(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
		WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')`,
		func(row []string) { names = append(names, tableName{strings.Clone(row[0]), strings.Clone(row[1])}) })
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	return names, nil
}

// charsetOfCollationName is the character set that a collation's name begins with; empty for those of MariaDB that fit
// several (uca1400_ai_ci).
func charsetOfCollationName(collation string) string {
	name, _, _ := strings.Cut(strings.ToLower(collation), "_")
	return knownCharset(name)
}

// knownCharset is the name by which information_schema shows a character set, or empty for an unknown one.
func knownCharset(name string) string {
	name = strings.ToLower(name)
	if name == "utf8" {
		return "utf8mb3"
	}
	if charsets[name] == nil {
		return ""
	}
	return name
}

// textLiteral writes a string literal that holds whatever the session's sql_mode is.
func textLiteral(s string) string {
	if s == "" {
		return "''"
	}
	return fmt.Sprintf("_utf8mb4 0x%x", s)
}
