package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// against runs check --against and gives its exit code and, by name, the lines of the outcome, worst last.
func (s *setup) against(t *testing.T, address string) (code int, report checkReport) {
	t.Helper()
	code, stdout, stderr := binlogd(t, s.dir, "check", "--against", address, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), stdout+stderr)
	require.Equal(t, code, report.ExitCode)
	require.NotContains(t, stdout+stderr, s.password)
	return code, report
}

// requireCheck asserts that a check of that name and status says the words.
func (r checkReport) requireCheck(t *testing.T, name, status string, words ...string) {
	t.Helper()
	for _, c := range r.Checks {
		text := c.Detail + " -> " + c.Remedy
		if c.Name != name || string(c.Status) != status {
			continue
		}
		found := true
		for _, word := range words {
			found = found && strings.Contains(text, word)
		}
		if found {
			return
		}
	}
	require.FailNow(t, "no such check", "%s %s %q in %+v", name, status, words, r.Checks)
}

// TestCheckAgainst asks about a switch to a replica: when it has everything, lags, has purged what is needed, made transactions
// itself, and when it is no replica at all. Then it runs with both addresses.
func TestCheckAgainst(t *testing.T) {
	t.Parallel()
	primary := testenv.StartMySQL(t, testenv.Options{})
	s := newSetup(t, primary)
	s.write(t)
	replica := testenv.StartReplica(t, primary, testenv.Options{Args: []string{"--character-set-server=latin1", "--binlog-row-metadata=MINIMAL"}})
	insert := func(id string) { primary.Exec(t, "INSERT INTO `"+s.database+"`.orders VALUES ("+id+", 'new')") }

	code, report := s.against(t, replica.Addr)
	require.Equal(t, exitOK, code)
	report.requireCheck(t, "place", "warn", "no checkpoint yet")

	d := startDaemon(t, s.dir, "run")
	d.await(t, "reading the binlog")
	insert("1")
	store := filepath.Join(s.dir, "shop.checkpoint")
	eventually(t, func() bool {
		record, err := checkpoint.ReadFile(store)
		return err == nil && record.Position.GTIDs.String() == primary.GTIDExecuted(t)
	}, "the checkpoint to have everything")
	replica.CatchUp(t, primary)
	code, report = s.against(t, replica.Addr)
	require.Equal(t, exitOK, code, report)
	report.requireCheck(t, "identity", "ok", "UUID")
	report.requireCheck(t, "same settings", "warn", "character_set_server=latin1")
	report.requireCheck(t, "same settings", "warn", "binlog_row_metadata=MINIMAL", "SET PERSIST binlog_row_metadata = FULL;")
	report.requireCheck(t, "same server", "ok", "executed everything")
	report.requireCheck(t, "own transactions", "ok", "none")
	report.requireCheck(t, "behind", "ok", "everything")

	replica.Exec(t, "STOP REPLICA SQL_THREAD")
	insert("2")
	missing := primary.GTIDExecuted(t)
	missing = missing[strings.LastIndexAny(missing, "-")+1:]
	eventually(t, func() bool {
		record, err := checkpoint.ReadFile(store)
		return err == nil && record.Position.GTIDs.String() == primary.GTIDExecuted(t)
	}, "the checkpoint to have everything")
	code, report = s.against(t, replica.Addr)
	require.Equal(t, exitSource, code)
	report.requireCheck(t, "same server", "fail", "has not caught up", ":"+missing+" of the checkpoint")
	report.requireCheck(t, "behind", "warn", ":"+missing)
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
	replica.Exec(t, "START REPLICA SQL_THREAD")
	replica.CatchUp(t, primary)

	// A run with both, by the second address.
	s.more = "admin: {listen: ''}\n"
	s.address = primary.Addr + "\n  addresses: [" + primary.Addr + ", " + replica.Addr + "]"
	s.write(t)
	code, stdout, stderr := binlogd(t, s.dir, "check")
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Contains(t, stdout, "a run begins here")
	require.Contains(t, stdout, "it could take over")

	insert("3")
	replica.CatchUp(t, primary)
	replica.PurgeBinlogs(t)
	code, report = s.against(t, replica.Addr)
	require.Equal(t, exitSource, code)
	report.requireCheck(t, "purged range", "fail", "has purged")
	replica.Exec(t, "CREATE DATABASE errant")
	_, report = s.against(t, replica.Addr)
	report.requireCheck(t, "own transactions", "fail", replica.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"]+":1")

	primary.Kill()
	code, stdout, _ = binlogd(t, s.dir, "check")
	require.Equal(t, exitSource, code)
	require.Contains(t, stdout, "no server of source.addresses can go on")
	code, stdout, stderr = binlogd(t, s.dir, "checkpoint", "show")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "the server has purged", "as the replica says, the primary being away")

	stranger := testenv.MySQL(t)
	stranger.Exec(t, "CREATE USER '"+s.user+"'@'%' IDENTIFIED BY '"+s.password+"'", "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '"+s.user+"'@'%'")
	t.Cleanup(func() { _, _ = stranger.DB().Exec("DROP USER '" + s.user + "'@'%'") })
	code, report = s.against(t, stranger.Addr)
	require.Equal(t, exitSource, code)
	report.requireCheck(t, "same server", "fail", "another server answers")
	code, report = s.against(t, "127.0.0.1:1")
	require.Equal(t, exitSource, code)
	report.requireCheck(t, "connection", "fail", "connection refused")
	code, _, stderr = binlogd(t, s.dir, "check", "--against", "a:b")
	require.Equal(t, exitConfig, code)
	require.Contains(t, stderr, "--against")
}
