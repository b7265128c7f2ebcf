package testenv

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Exec runs SQL scripts as root, each of one statement or more. One call is one session, so
// that what SET SESSION and USE did holds for the later scripts of the call.
func (s *Server) Exec(t testing.TB, scripts ...string) {
	t.Helper()
	conn, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatalf("testenv: connect to %s: %v", s.spec.Name, err)
	}
	// The session's settings must not reach whoever gets the connection next.
	defer discard(conn)
	for _, script := range scripts {
		if _, err := conn.ExecContext(t.Context(), script); err != nil {
			t.Fatalf("testenv: %v\nin: %s", err, script)
		}
	}
}

// discard closes a connection instead of giving it back to its pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}

// query returns the rows of a statement as text, by column name; NULL is "".
func (s *Server) query(ctx context.Context, statement string, args ...any) ([]map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	var result []map[string]string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
		row := make(map[string]string, len(columns))
		for i, column := range columns {
			row[column] = values[i].String
		}
		result = append(result, row)
	}
	return result, rows.Err()
}

// Query returns the rows of a statement as text, by column name; NULL is "".
func (s *Server) Query(t testing.TB, statement string, args ...any) []map[string]string {
	t.Helper()
	rows, err := s.query(t.Context(), statement, args...)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return rows
}

// Database creates a database with a name of its own, which is dropped after the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := unique("db")
	s.Exec(t, "CREATE DATABASE "+name)
	s.cleanup(t, "DROP DATABASE IF EXISTS "+name)
	return name
}

// User creates a user with exactly the given grants, each what stands between GRANT and TO:
// "SELECT ON shop.*", "REPLICATION SLAVE ON *.*". It is dropped after the test.
func (s *Server) User(t testing.TB, grants ...string) (user, password string) {
	t.Helper()
	user, password = unique("u"), unique("p")
	statements := []string{fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", user, password)}
	for _, grant := range grants {
		statements = append(statements, fmt.Sprintf("GRANT %s TO %s@'%%'", grant, user))
	}
	s.Exec(t, statements...)
	s.cleanup(t, fmt.Sprintf("DROP USER IF EXISTS %s@'%%'", user))
	return user, password
}

// cleanup runs a statement after the test, if the server then runs.
func (s *Server) cleanup(t testing.TB, statement string) {
	t.Cleanup(func() {
		s.mu.Lock()
		running := s.process != nil
		s.mu.Unlock()
		if !running {
			return // an own server: its data goes with it
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // t.Context is over
		defer cancel()
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			t.Errorf("testenv: clean up after the test: %v", err)
		}
	})
}

// DumpThreads returns the ids of the connections that are being sent the binlog.
func (s *Server) DumpThreads(t testing.TB) []int {
	t.Helper()
	var ids []int
	for _, row := range s.Query(t, "SHOW PROCESSLIST") {
		if strings.HasPrefix(row["Command"], "Binlog Dump") { // "Binlog Dump GTID" too
			id, err := strconv.Atoi(row["Id"])
			if err != nil {
				t.Fatalf("testenv: read the process list: %v", err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// KillDumpThreads ends all connections that are being sent the binlog and returns how many
// there were.
func (s *Server) KillDumpThreads(t testing.TB) int {
	t.Helper()
	ids := s.DumpThreads(t)
	for _, id := range ids {
		// One that is gone already is as good.
		const noSuchThread = 1094
		_, err := s.db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id))
		if refusal, ok := errors.AsType[*mysql.MySQLError](err); err != nil && (!ok || refusal.Number != noSuchThread) {
			t.Fatalf("testenv: kill dump thread %d: %v", id, err)
		}
	}
	return len(ids)
}

// GTIDExecuted is what the server has in its binlog's history: gtid_executed, on
// MariaDB gtid_binlog_pos.
func (s *Server) GTIDExecuted(t testing.TB) string {
	t.Helper()
	variable := "gtid_executed"
	if s.Flavor == "mariadb" {
		variable = "gtid_binlog_pos"
	}
	rows := s.Query(t, "SELECT @@global."+variable+" AS gtids")
	return strings.ReplaceAll(rows[0]["gtids"], "\n", "")
}

// BinlogFiles are the names of the server's binlog files, oldest first.
func (s *Server) BinlogFiles(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, row := range s.Query(t, "SHOW BINARY LOGS") {
		names = append(names, row["Log_name"])
	}
	return names
}

// BinlogPosition is the server's newest binlog file and its end, the place where
// the next transaction begins.
func (s *Server) BinlogPosition(t testing.TB) (file string, offset uint64) {
	t.Helper()
	statement := "SHOW BINARY LOG STATUS"
	if s.Flavor == "mariadb" {
		statement = "SHOW MASTER STATUS"
	}
	row := s.Query(t, statement)[0]
	offset, err := strconv.ParseUint(row["Position"], 10, 64)
	if err != nil {
		t.Fatalf("testenv: read the binlog position: %v", err)
	}
	return row["File"], offset
}

// PurgeBinlogs begins a new binlog file and deletes all others. Files that are being sent are
// kept by the server: end the dump threads first.
func (s *Server) PurgeBinlogs(t testing.TB) {
	t.Helper()
	s.Exec(t, "FLUSH BINARY LOGS")
	files := s.BinlogFiles(t)
	newest := files[len(files)-1]
	// MariaDB keeps the file before for a moment, until InnoDB has forgotten it.
	deadline := time.Now().Add(20 * time.Second)
	for len(files) > 1 {
		if time.Now().After(deadline) {
			t.Fatalf("testenv: purge binlogs up to %s: %v are still there", newest, files)
		}
		s.Exec(t, fmt.Sprintf("PURGE BINARY LOGS TO '%s'", newest))
		time.Sleep(20 * time.Millisecond)
		files = s.BinlogFiles(t)
	}
}

// UniqueName returns a name that no other test has, of lower-case letters, digits and _.
func UniqueName(prefix string) string { return unique(prefix) }

func unique(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:12])
}
