package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// currentRows reads whole tables with plain SELECTs and renders the values as events
// have to show them.
func currentRows(ctx context.Context, db *sql.DB, database string) (tables, error) {
	// TIMESTAMPs are shown in the session's time zone; events have UTC.
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SET time_zone = '+00:00'"); err != nil {
		return nil, fmt.Errorf("set the session's time zone: %w", err)
	}
	keys, err := primaryKeys(ctx, conn, database)
	if err != nil {
		return nil, err
	}
	state := tables{}
	for table, key := range keys {
		rows, err := tableRows(ctx, conn, database, table, key)
		if err != nil {
			return nil, fmt.Errorf("read table %s.%s: %w", database, table, err)
		}
		state[table] = rows
	}
	return state, nil
}

// primaryKeys are the key columns of every table, in key order.
func primaryKeys(ctx context.Context, conn *sql.Conn, database string) (map[string][]string, error) {
	rows, err := conn.QueryContext(ctx, `SELECT table_name, column_name FROM information_schema.key_column_usage
		WHERE table_schema = ? AND constraint_name = 'PRIMARY' ORDER BY table_name, ordinal_position`, database)
	if err != nil {
		return nil, fmt.Errorf("read primary keys: %w", err)
	}
	defer rows.Close()
	keys := map[string][]string{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return nil, fmt.Errorf("read primary keys: %w", err)
		}
		keys[table] = append(keys[table], column)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read primary keys: %w", err)
	}
	return keys, nil
}

func tableRows(ctx context.Context, conn *sql.Conn, database, table string, key []string) (map[string]map[string]any, error) {
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT * FROM `%s`.`%s`", database, table))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	texts := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range texts {
		targets[i] = &texts[i]
	}
	found := map[string]map[string]any{}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := map[string]any{}
		keyText := map[string]string{}
		for i, column := range columns {
			if row[column.Name()], err = render(column.DatabaseTypeName(), texts[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", column.Name(), err)
			}
			keyText[column.Name()] = texts[i].String
		}
		parts := make([]string, len(key))
		for i, column := range key {
			parts[i] = keyText[column]
		}
		found[strings.Join(parts, ",")] = row
	}
	return found, rows.Err()
}

// render turns a column's text into the value that an event's JSON decodes to.
func render(typeName string, text sql.NullString) (any, error) {
	if !text.Valid {
		return nil, nil
	}
	switch strings.TrimPrefix(typeName, "UNSIGNED ") {
	case "TINYINT", "INT", "BIGINT":
		return json.Number(text.String), nil
	case "DECIMAL", "CHAR", "VARCHAR", "ENUM":
		return text.String, nil
	case "DATETIME":
		return strings.Replace(text.String, " ", "T", 1), nil
	case "TIMESTAMP":
		return strings.Replace(text.String, " ", "T", 1) + "Z", nil
	case "JSON":
		var value any
		err := decodeJSON([]byte(text.String), &value)
		return value, err
	}
	return nil, fmt.Errorf("no rule for a column of type %s; add one to examples/demo/rows.go", typeName)
}
