package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// A run that stops before rows whose schema is not known goes on as its message says.
func TestSchemaSet(t *testing.T) {
	t.Parallel()
	server := testenv.StartMySQL(t, testenv.Options{Args: []string{"--binlog-row-metadata=MINIMAL"}})
	s := newSetup(t, server)
	s.start = "gtid:" + server.GTIDExecuted(t)
	s.write(t)
	server.Exec(t, "USE "+s.database, `INSERT INTO orders VALUES (1, 'before');
		ALTER TABLE orders ADD a VARCHAR(9), ADD b VARCHAR(9);
		INSERT INTO orders VALUES (2, 'between', 'a', 'b');
		ALTER TABLE orders RENAME COLUMN a TO b, RENAME COLUMN b TO a;
		INSERT INTO orders (id, state, a, b) VALUES (3, 'after', 'a', 'b')`)

	stopped := regexp.MustCompile("binlogd schema set " + s.database + `\.orders --file FILE --from (\S+)` + "`")
	create := []string{"CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20));", "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20), a VARCHAR(9), b VARCHAR(9))"}
	code, _, stderr := binlogd(t, s.dir, "run")
	require.Equal(t, exitSource, code, stderr)
	from := stopped.FindStringSubmatch(stderr)
	require.NotNil(t, from, stderr)
	require.Equal(t, "start", from[1])

	file := filepath.Join(s.dir, "orders.sql")
	for name, args := range map[string][]string{
		"--file is missing":       {"schema", "set", s.database + ".orders"},
		"is no table":             {"schema", "set", "orders", "--file", file},
		"has no table":            {"schema", "set", "other.orders", "--file", file},
		"has no such place":       {"schema", "set", s.database + ".orders", "--file", file, "--from", "nowhere"},
		"not one CREATE TABLE":    {"schema", "set", s.database + ".orders", "--file", file, "--from", "start"},
		"--at needs a table":      {"schema", "show", "--at", "x"},
		"the schema history has ": {"schema", "show", "a.b"},
	} {
		require.NoError(t, os.WriteFile(file, []byte("DROP TABLE orders"), 0o600))
		code, _, stderr := binlogd(t, s.dir, args...)
		require.Equal(t, exitConfig, code, stderr)
		require.Contains(t, stderr, name)
	}
	require.NoError(t, os.WriteFile(file, []byte(create[0]), 0o600))
	code, stdout, stderr := binlogd(t, s.dir, "schema", "set", s.database+".orders", "--file", "orders.sql", "--from", from[1])
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "2 columns from start on")

	// What was said is carried on over the statements that follow.
	d := startDaemon(t, s.dir, "run")
	events := filepath.Join(s.dir, "events.jsonl")
	eventually(t, func() bool {
		text, err := os.ReadFile(events)
		return err == nil && strings.Count(string(text), "\n") == 3
	}, "three events")
	time.Sleep(100 * time.Millisecond) // a fourth would be one too many
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
	text, err := os.ReadFile(events)
	require.NoError(t, err)
	for i, row := range []string{`{"id":1,"state":"before"}`, `{"id":2,"state":"between","a":"a","b":"b"}`, `{"id":3,"state":"after","b":"b","a":"a"}`} {
		require.Contains(t, strings.Split(string(text), "\n")[i], `"row":`+row)
	}

	code, stdout, stderr = binlogd(t, s.dir, "schema", "show", s.database+".orders", "-o", "json")
	require.Equal(t, exitOK, code, stderr)
	var shown []shownSchema
	require.NoError(t, json.Unmarshal([]byte(stdout), &shown))
	require.Len(t, shown, 3)
	require.Equal(t, []string{"hand", "start"}, []string{shown[0].Origin, shown[0].From})
	require.Len(t, shown[0].Columns, 2)
	require.Len(t, shown[2].Columns, 4)
	code, stdout, stderr = binlogd(t, s.dir, "schema", "show", s.database+".orders", "--at", shown[1].From)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "2 columns", "the statement itself still has the table of before")
	code, stdout, stderr = binlogd(t, s.dir, "schema", "show")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, s.database+".orders")
}
