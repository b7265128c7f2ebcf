package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// types are those of the events in the file sink, in order.
func (s *setup) types(t *testing.T) []string {
	t.Helper()
	var types []string
	for _, line := range s.lines(t) {
		_, rest, _ := strings.Cut(line.line, `"type":"`)
		name, _, _ := strings.Cut(rest, `"`)
		types = append(types, name)
	}
	return types
}

// TestReload: SIGHUP and POST /reload swap valid rules without a gap or a repeat, refuse others with the old ones in force,
// and capture other tables.
func TestReload(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	s := newSetup(t, server)
	server.Exec(t, "CREATE TABLE `"+s.database+"`.other (id INT PRIMARY KEY)")
	port := freePort(t)
	rules := func(emit string) {
		s.more = emit + fmt.Sprintf("admin: {listen: 127.0.0.1:%d, token: secret-token}\n", port)
		s.write(t)
	}
	n := 0
	insert := func(table string, want ...string) {
		n++
		server.Exec(t, fmt.Sprintf("INSERT INTO `%s`.%s (id) VALUES (%d)", s.database, table, n))
		eventually(t, func() bool { return len(s.types(t)) >= len(want) }, fmt.Sprint(want))
		require.Equal(t, want, s.types(t))
	}
	rules("    emit: [{type: first, on: insert}]\n")
	d := startDaemon(t, s.dir, "run")
	d.await(t, "admin server")
	eventually(t, func() bool {
		return strings.Contains(d.stderr.String(), "starting without a checkpoint")
	}, "the first place")
	eventually(t, func() bool { return s.ready(port) }, "the source to be connected")
	insert("orders", "first")

	rules("    emit: [{type: second, on: insert, when: new.nothing == 1}]\n")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGHUP))
	d.await(t, "reload refused")
	require.Contains(t, d.stderr.String(), `events[0].emit[0].when: in new.nothing: table `+s.database+`.orders has no column \"nothing\"`)
	require.Contains(t, d.stderr.String(), "binlogd.yaml:")
	insert("orders", "first", "first")

	rules("    emit: [{type: second, on: insert}]\n")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGHUP))
	d.await(t, "reloaded the rules")
	insert("orders", "first", "first", "second")

	s.publish = "{stdout: {}}"
	rules("    emit: [{type: third, on: insert}]\n")
	require.Equal(t, http.StatusConflict, s.post(t, port, "secret-token"))
	require.Contains(t, d.stderr.String(), "publish has changed, too: restart binlogd for it")
	s.publish = "{file: {path: events.jsonl}}"

	rules("    emit: [{type: third, on: insert}]\n  - {table: " + s.database + ".other, emit: [{type: other, on: insert}]}\n")
	require.Equal(t, http.StatusUnauthorized, s.post(t, port, "wrong"))
	require.Equal(t, http.StatusOK, s.post(t, port, "secret-token"))
	insert("other", "first", "first", "second", "other")
	insert("orders", "first", "first", "second", "other", "third")

	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
	ids := map[string]bool{}
	for _, line := range s.lines(t) {
		require.False(t, ids[line.ID], "%s came twice", line.ID)
		ids[line.ID] = true
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().(*net.TCPAddr).Port
}

func (s *setup) ready(port int) bool {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", port))
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// post asks for a reload.
func (s *setup) post(t *testing.T, port int, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/reload", port), nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// TestCheckNamesMistakesInRules: check and run refuse rules that the real tables do not allow, with file and line.
func TestCheckNamesMistakesInRules(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	for _, c := range []struct{ more, line, words string }{
		{"    emit:\n      - {type: a, on: insert}\n      - {type: b, when: new.statee == \"x\"}\n", ":12:", `in new.statee: table DB.orders has no column "statee": write one of id, state`},
		{"    emit:\n      - {type: a, on: insert, data: {x: new.id, y: new.id + new.state}}\n", ":11:", "events[0].emit[0].data.y: in new.id + new.state: one side is a text"},
		{"    emit:\n      - {type: a, on: insert, when: new.id == \"7\"}\n", ":11:", "a number cannot be compared with a text"},
		{"    emit:\n      - {type: a, when: changed(\"id\") && 1 == 2}\n      - {type: b, when: 1 == 2}\n", ":12:", "it is never true, so that the rule is unused"},
		{"    emit: [{type: a}]\n  - table: DB.orders*\n    emit: [{type: b}]\n  - table: \"{DB}.orders\"\n    emit: [{type: c}]\n", ":13:", "events[2] is unused: DB.orders is taken by events[0]"},
	} {
		s := newSetup(t, server)
		s.more = strings.ReplaceAll(c.more, "DB", s.database)
		s.requireRefusal(t, exitConfig, "binlogd.yaml"+c.line, strings.ReplaceAll(c.words, "DB", s.database))
	}
}

// TestARuleThatFails: it ends the run with exit code 2, naming table, GTID and key; with on_error: skip the change is logged
// and counted, and the next one published.
func TestARuleThatFails(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	s := newSetup(t, server)
	s.start = "earliest"
	server.Exec(t, "INSERT INTO `"+s.database+"`.orders VALUES (1, 'not a number'), (2, '22')")
	port := freePort(t)
	rule := func(more string) {
		s.more = "    emit: [{type: counted, on: insert, data: {n: number(new.state)}" + more + "}]\n" + fmt.Sprintf("admin: {listen: 127.0.0.1:%d}\n", port)
		s.write(t)
	}
	rule("")
	code, _, stderr := binlogd(t, s.dir, "run")
	require.Equal(t, exitConfig, code, stderr)
	for _, words := range []string{"map change 1 of table " + s.database + ".orders in transaction ", "rule events[0].emit[0].data (counted), key \"1\"", "the text is no number", "on_error: skip"} {
		require.Contains(t, stderr, words)
	}
	require.NotContains(t, stderr, "not a number")

	rule(", on_error: skip")
	d := startDaemon(t, s.dir, "run")
	d.await(t, "skipped a change: its rule failed")
	eventually(t, func() bool { return len(s.types(t)) == 1 }, "the other row")
	require.Contains(t, s.lines(t)[0].line, `"data":{"n":22}`)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	require.NoError(t, err)
	metrics, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.Contains(t, string(metrics), `binlogd_skipped_changes_total{name="shop"} 1`)
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM))
}
