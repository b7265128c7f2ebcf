package pipeline_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// onEach runs a test on MySQL and on both MariaDBs, on servers that it shares with others.
func onEach(t *testing.T, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []struct {
		name  string
		share func(testing.TB) *testenv.Server
	}{{"mysql", testenv.MySQL}, {"mariadb 10.11", testenv.MariaDB}, {"mariadb 11.8", testenv.MariaDB118}} {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.share(t)) })
	}
}

// onEachOwn runs a test on MySQL and on both MariaDBs, each a server that it can purge, stop and kill.
func onEachOwn(t *testing.T, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []struct {
		name  string
		start func(testing.TB, testenv.Options) *testenv.Server
	}{{"mysql", testenv.StartMySQL}, {"mariadb 10.11", testenv.StartMariaDB}, {"mariadb 11.8", testenv.StartMariaDB118}} {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.start(t, testenv.Options{})) })
	}
}

// sqlCase runs a script of testdata/cases in a database of its own while a pipeline follows it.
func sqlCase(t *testing.T, server *testenv.Server, name string) *live {
	t.Helper()
	db := server.Database(t)
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	l := s.run(t, nil)
	script, err := os.ReadFile("../../testdata/cases/" + name + ".sql")
	require.NoError(t, err)
	server.Exec(t, "USE "+db, string(script))
	return l
}

// publishedTwice gives the events of a case after a second pipeline, which begins before the script, gave the same ones.
func publishedTwice(t *testing.T, server *testenv.Server, name string) []event {
	t.Helper()
	before := server.GTIDExecuted(t)
	l := sqlCase(t, server, name)
	l.caughtUp(t, server)
	l.stop(t)
	events := l.settings.events(t)

	rewound := newSettings(t, server, l.settings.Tables)
	rewound.Start = "gtid:" + before
	rewound.once(t, server)
	require.Equal(t, events, rewound.events(t))
	requireDistinct(t, events)
	return events
}

// requireDistinct asserts that each id is there once, and that the events are in commit order.
func requireDistinct(t *testing.T, events []event) {
	t.Helper()
	seen := make(map[string]bool)
	sequence := ""
	for _, e := range events {
		require.False(t, seen[e.ID], "id %s twice", e.ID)
		seen[e.ID] = true
		require.Greater(t, e.Sequence, sequence, "commit order")
		sequence = e.Sequence
	}
}

// brief is what the events say, as "type column=value".
func brief(t *testing.T, events []event, column string) []string {
	t.Helper()
	var lines []string
	for _, e := range events {
		lines = append(lines, e.Type+" "+column+"="+strconv.Itoa(e.number(t, column)))
	}
	return lines
}

func TestCaseCommitWithoutXID(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		events := publishedTwice(t, server, "commit-without-xid")
		require.Equal(t, []string{"m.created v=1", "m.created v=2", "m.updated v=3"}, brief(t, events, "v"))
	})
}

func TestCaseRepeatedRow(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		events := publishedTwice(t, server, "repeated-row")
		require.Equal(t, []string{"rep.created v=0", "rep.updated v=1", "rep.updated v=2", "rep.deleted v=2", "rep.created v=0"}, brief(t, events, "v"))
		for _, e := range events {
			require.Equal(t, events[0].GTID, e.GTID)
		}
	})
}

func TestCaseNoPrimaryKey(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		events := publishedTwice(t, server, "no-primary-key")
		require.Equal(t, []string{"nopk.created a=1", "nopk.created a=1", "nopk.created a=2", "nopk.deleted a=1"}, brief(t, events, "a"))
	})
}

func TestCaseStatementFormat(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		s := newSettings(t, server, db+".*")
		d := s.daemon(t, "")
		script, err := os.ReadFile("../../testdata/cases/statement-format.sql")
		require.NoError(t, err)
		server.Exec(t, "USE "+db, string(script))
		code, message := d.wait(t)
		require.Equal(t, 3, code, message)
		for _, word := range []string{"table " + db + ".sf", "in statement format", "binlog_format=ROW", "source.start: gtid:"} {
			require.Contains(t, message, word)
		}
		events := s.events(t)
		require.Equal(t, []string{"sf.created v=1"}, brief(t, events, "v"))
		require.NotContains(t, message, "transaction "+events[0].GTID+" at", "the transaction before the statement")

		// A restart does not pass it either.
		code, message = s.launch(t, "").wait(t)
		require.Equal(t, 3, code, message)
		require.Equal(t, events, s.events(t))
	})
}
