package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// TestMoveBetweenStores exports a checkpoint from a file and imports it into Redis, as a team does that moves to another machine.
func TestMoveBetweenStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const head = "name: shop\nsource: {address: '127.0.0.1:1', user: u}\npublish: {stdout: {}}\nevents: [{table: shop.*}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file.yaml"), []byte(head), 0o600))
	redis := "checkpoint: {store: redis, lease: 1s, redis: {address: '" + testenv.Redis(t).Addr + "', prefix: '" + testenv.UniqueName("p") + ":'}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis.yaml"), []byte(head+redis), 0o600))
	store, err := checkpoint.OpenFile(filepath.Join(dir, "shop.checkpoint"), "shop")
	require.NoError(t, err)
	set, err := canal.ParseGTIDSet(canal.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23")
	require.NoError(t, err)
	record := &checkpoint.Record{Name: "shop", Position: canal.Position{GTIDs: set, File: "binlog.000007", Offset: 157}}
	require.NoError(t, store.Save(t.Context(), record))
	_, err = store.Move(t.Context(), record, checkpoint.Move{Action: checkpoint.ActionSet, Reason: "by hand"})
	require.NoError(t, err)

	code, stdout, stderr := binlogd(t, dir, "checkpoint", "export", "-c", "file.yaml", "--file", "shop.json")
	require.Zero(t, code, stderr+stdout)
	require.NoError(t, store.Close())
	code, stdout, stderr = binlogd(t, dir, "checkpoint", "import", "shop.json", "-c", "redis.yaml")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "as entry 3")

	// A second time it would replace something: nothing happens unless it is said.
	code, stdout, stderr = binlogd(t, dir, "checkpoint", "import", "shop.json", "-c", "redis.yaml")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "nothing was changed: --yes replaces it")
	code, stdout, stderr = binlogd(t, dir, "checkpoint", "import", "shop.json", "-c", "redis.yaml", "--yes", "--reason", "again")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "replaces ")

	code, stdout, stderr = binlogd(t, dir, "checkpoint", "show", "-c", "redis.yaml", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23")
	code, stdout, stderr = binlogd(t, dir, "checkpoint", "history", "-c", "redis.yaml", "-o", "json")
	require.Zero(t, code, stderr)
	var history []shownEntry
	require.NoError(t, json.Unmarshal([]byte(stdout), &history))
	require.Len(t, history, 3)
	require.Equal(t, []string{"3", "2", "1"}, []string{history[0].ID, history[1].ID, history[2].ID})
	require.Equal(t, "again", history[0].Reason)
	require.Equal(t, "binlog.000007", history[0].From.File)
	require.Equal(t, "by hand", history[1].Reason)
	code, stdout, stderr = binlogd(t, dir, "checkpoint", "history", "-c", "redis.yaml", "--manual", "-n", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "because: again")
	require.Contains(t, stdout, "and 1 older")
	require.Equal(t, 4, strings.Count(stdout, "\n"))

	// Another pipeline's, and something else.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.yaml"), []byte(strings.Replace(head, "name: shop", "name: other", 1)), 0o600))
	code, _, stderr = binlogd(t, dir, "checkpoint", "import", "shop.json", "-c", "other.yaml")
	require.Equal(t, exitCheckpoint, code, stderr)
	code, _, stderr = binlogd(t, dir, "checkpoint", "import", "file.yaml", "-c", "file.yaml")
	require.Equal(t, exitCheckpoint, code, stderr)
	code, _, stderr = binlogd(t, dir, "checkpoint", "import", "missing.json", "-c", "file.yaml")
	require.Equal(t, exitConfig, code, stderr)
	require.NoFileExists(t, filepath.Join(dir, "other.checkpoint"))
}

// TestRunWithTheCheckpointInTheSource captures everything there is: the checkpoint's own tables are left out.
func TestRunWithTheCheckpointInTheSource(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	place := s.server.Database(t)
	for _, grant := range checkpoint.MySQLGrants(place, "'"+s.user+"'@'%'") {
		s.server.Exec(t, grant)
	}
	s.tables = []string{s.database + ".*", place + ".*"}
	s.more = "checkpoint: {store: mysql, lease: 1s, mysql: {database: " + place + "}}\n"
	s.write(t)
	code, stdout, stderr := binlogd(t, s.dir, "check", "-c", "binlogd.yaml")
	require.Zero(t, code, stdout+stderr)
	require.Contains(t, stdout, "checkpoint lock")
	require.Contains(t, stdout, "none yet")

	d := startDaemon(t, s.dir, "run")
	d.await(t, "reading the binlog")
	s.insert(t, 1)
	published := func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, "events.jsonl"))
		require.NoError(t, err)
		return string(text)
	}
	eventually(t, func() bool { return strings.Contains(published(), "\n") }, "the event")
	code, _, stderr = binlogd(t, s.dir, "run")
	require.Equal(t, exitLocked, code, stderr)
	require.Contains(t, stderr, "is held by process")
	code, stdout, stderr = binlogd(t, s.dir, "check", "-c", "binlogd.yaml")
	require.Zero(t, code, stdout+stderr)
	require.Contains(t, stdout, "held by process")
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
	require.Equal(t, []string{"1"}, subjects(t, published()), "and none of its own tables")
	code, stdout, stderr = binlogd(t, s.dir, "checkpoint", "history", "-c", "binlogd.yaml", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"action": "start"`)
}
