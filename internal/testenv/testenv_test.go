package testenv_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestMySQLIsConfiguredAsASource(t *testing.T) {
	t.Parallel()
	requireSource(t, testenv.MySQL(t))
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
	s := testenv.StartMySQL(t, testenv.Options{Args: []string{"--max-connections=17"}})
	require.Equal(t, "17", s.Query(t, "SELECT @@max_connections AS n")[0]["n"])
	uuid := s.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"]
	require.NotEqual(t, testenv.MySQL(t).Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"], uuid)

	db := s.Database(t)
	s.Exec(t, "CREATE TABLE "+db+".t (id INT PRIMARY KEY)", "INSERT INTO "+db+".t VALUES (1)")
	s.Kill()
	s.Start(t)
	s.Exec(t, "INSERT INTO "+db+".t VALUES (2)")
	s.Restart(t)
	require.Equal(t, "2", s.Query(t, "SELECT count(*) AS n FROM "+db+".t")[0]["n"])
	require.Equal(t, uuid, s.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"])

	s.PurgeBinlogs(t)
	require.Len(t, s.BinlogFiles(t), 1)
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
