package testenv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestAReplicaHasTheSourcesTransactions(t *testing.T) {
	t.Parallel()
	for name, kind := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := kind.start(t, testenv.Options{Name: "source"})
			source.Exec(t, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
			replica := testenv.StartReplica(t, source, testenv.Options{Name: "replica"})
			source.Exec(t, "INSERT INTO d.t VALUES (1)")
			replica.CatchUp(t, source)
			require.Equal(t, source.GTIDExecuted(t), replica.GTIDExecuted(t), "in its own binlog, too")

			require.Len(t, source.DumpThreads(t), 1)
			require.Equal(t, 1, source.KillDumpThreads(t))
			source.Exec(t, "INSERT INTO d.t VALUES (2)")
			replica.CatchUp(t, source)
			require.Equal(t, "2", replica.Query(t, "SELECT count(*) AS n FROM d.t")[0]["n"])
		})
	}
}
