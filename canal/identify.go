package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// answer is a small result set as text; NULL is the empty string.
type answer struct {
	columns map[string]int // by lower-case name
	rows    [][]string
}

// value is the named column of row i, or empty where the statement gives no such column:
// the columns of SHOW statements differ between servers.
func (r *answer) value(i int, names ...string) string {
	for _, name := range names {
		if c, ok := r.columns[name]; ok {
			return r.rows[i][c]
		}
	}
	return ""
}

// ask runs a statement and reads its whole result. When ctx ends first, the connection
// is of no further use.
func ask(ctx context.Context, conn *client.Conn, statement string, args ...any) (*answer, error) {
	defer bound(ctx, conn)()
	res, err := conn.Execute(statement, args...)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("run %q: %w", abbreviate(statement), err)
	}
	defer res.Close()

	r := &answer{columns: map[string]int{}}
	if !res.HasResultset() {
		return r, nil
	}
	for i, field := range res.Fields {
		r.columns[strings.ToLower(string(field.Name))] = i
	}
	r.rows = make([][]string, len(res.Values))
	for i := range res.Values {
		row := make([]string, len(res.Fields))
		for c := range row {
			text, err := res.GetString(i, c)
			if err != nil {
				return nil, fmt.Errorf("read the answer to %q: %w", abbreviate(statement), err)
			}
			row[c] = strings.Clone(text) // Close takes the memory back
		}
		r.rows[i] = row
	}
	return r, nil
}

// bound lets ctx end what waits on conn, until the returned function is called.
func bound(ctx context.Context, conn *client.Conn) (release func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// abbreviate keeps messages on one line.
func abbreviate(statement string) string {
	const limit = 80
	statement = strings.Join(strings.Fields(statement), " ")
	if len(statement) > limit {
		statement = statement[:limit] + "…"
	}
	return statement
}

// Identify asks the server who it is.
func Identify(ctx context.Context, conn *client.Conn) (Identity, error) {
	r, err := ask(ctx, conn, "SELECT @@version, @@server_id")
	if err != nil {
		return Identity{}, fmt.Errorf("identify the server: %w", err)
	}
	if len(r.rows) != 1 {
		return Identity{}, errors.New("identify the server: it does not answer SELECT @@version")
	}
	id := Identity{Flavor: MySQL, Version: r.rows[0][0]}
	serverID, err := strconv.ParseUint(r.rows[0][1], 10, 32)
	if err != nil {
		return Identity{}, fmt.Errorf("identify the server: read @@server_id: %w", err)
	}
	id.ServerID = uint32(serverID)
	if strings.Contains(strings.ToLower(id.Version), "mariadb") {
		id.Flavor = MariaDB
		return id, nil
	}
	r, err = ask(ctx, conn, "SELECT @@server_uuid")
	if err != nil {
		return Identity{}, fmt.Errorf("identify the server: %w", err)
	}
	id.UUID = r.rows[0][0]
	return id, nil
}
