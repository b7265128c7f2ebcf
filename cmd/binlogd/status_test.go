package main

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/admin"
	"github.com/binlogd/binlogd/internal/testenv"
)

func TestStatusOfARunningDaemon(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.more = "admin: {listen: \"127.0.0.1:0\"}\n"
	s.write(t)
	d := startDaemon(t, s.dir, "run")
	d.await(t, "reading the binlog")
	d.await(t, "admin server")
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(d.stderr.String())[1]
	s.insert(t, 1)
	var snapshot admin.Snapshot
	eventually(t, func() bool {
		code, stdout, _ := binlogd(t, s.dir, "status", "--address", address, "-o", "json")
		return code == exitOK && json.Unmarshal([]byte(stdout), &snapshot) == nil && snapshot.Events == 1
	}, "the event in the status")
	code, stdout, _ := binlogd(t, s.dir, "status", "--address", address)
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "1 events")
	require.NotContains(t, stdout, s.password)
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))

	code, _, stderr := binlogd(t, s.dir, "status", "--address", address)
	require.Equal(t, exitUnexpected, code)
	require.Contains(t, stderr, address)
}
