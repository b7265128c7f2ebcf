package testenv_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// databases are the kinds of database server, each shared and on its own.
var databases = map[string]struct {
	shared func(testing.TB) *testenv.Server
	start  func(testing.TB, testenv.Options) *testenv.Server
}{
	"MySQL":         {testenv.MySQL, testenv.StartMySQL},
	"MariaDB 10.11": {testenv.MariaDB, testenv.StartMariaDB},
	"MariaDB 11.8":  {testenv.MariaDB118, testenv.StartMariaDB118},
}

func TestDatabasesAreConfiguredAsSources(t *testing.T) {
	t.Parallel()
	for name, kind := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireSource(t, kind.shared(t))
		})
	}
}

// requireSource checks that s is what binlogd's tests rely on.
func requireSource(t *testing.T, s *testenv.Server) {
	t.Helper()
	settings := s.Query(t, `SELECT @@binlog_format AS format, @@binlog_row_image AS image, @@binlog_row_metadata AS metadata,
		@@sync_binlog AS synced, @@innodb_flush_log_at_trx_commit AS flushed, @@server_id AS id`)[0]
	require.Equal(t, map[string]string{
		"format": "ROW", "image": "FULL", "metadata": "FULL", "synced": "1", "flushed": "1",
		"id": strconv.FormatUint(uint64(s.ServerID), 10),
	}, settings)

	before := s.GTIDExecuted(t)
	db := s.Database(t)
	s.Exec(t, "USE "+db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
	require.NotEqual(t, before, s.GTIDExecuted(t))
	require.Equal(t, "2", s.Query(t, "SELECT count(*) AS n FROM "+db+".t")[0]["n"])
}

func TestAnOwnServerKeepsItsDataAcrossStopAndCrash(t *testing.T) {
	t.Parallel()
	for name, kind := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireKeepsData(t, kind.start(t, testenv.Options{Args: []string{"--max-connections=17"}}))
		})
	}
}

func requireKeepsData(t *testing.T, s *testenv.Server) {
	t.Helper()
	require.Equal(t, "17", s.Query(t, "SELECT @@max_connections AS n")[0]["n"])
	db := s.Database(t)
	s.Exec(t, "CREATE TABLE "+db+".t (id INT PRIMARY KEY)", "INSERT INTO "+db+".t VALUES (1)")
	s.Kill()
	s.Start(t)
	s.Exec(t, "INSERT INTO "+db+".t VALUES (2)")
	s.Restart(t)
	require.Equal(t, "2", s.Query(t, "SELECT count(*) AS n FROM "+db+".t")[0]["n"])

	s.PurgeBinlogs(t)
	require.Len(t, s.BinlogFiles(t), 1)
}

func TestOwnMySQLServersHaveUUIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := testenv.StartMySQL(t, testenv.Options{})
	uuid := func(s *testenv.Server) string { return s.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"] }
	before := uuid(s)
	require.NotEqual(t, uuid(testenv.MySQL(t)), before)
	s.Restart(t)
	require.Equal(t, before, uuid(s))
}

func TestAUserHasTheGivenGrantsOnly(t *testing.T) {
	t.Parallel()
	s := testenv.MySQL(t)
	user, _ := s.User(t, "REPLICATION SLAVE ON *.*")
	var grants []string
	for _, row := range s.Query(t, "SHOW GRANTS FOR "+user+"@'%'") {
		for _, grant := range row {
			grants = append(grants, grant)
		}
	}
	require.Equal(t, []string{"GRANT REPLICATION SLAVE ON *.* TO `" + user + "`@`%`"}, grants)
}
