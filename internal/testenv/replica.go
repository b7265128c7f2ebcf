package testenv

import (
	"fmt"
	"testing"
	"time"
)

// StartReplica starts a server of the same kind that replicates from source, by GTID and
// with a binlog of its own, from the beginning of source's binlog, which must be all there. It is the
// test's own and ends with it.
func StartReplica(t testing.TB, source *Server, o Options) *Server {
	t.Helper()
	if source.Flavor == "mariadb" {
		o.Args = append([]string{"--log-slave-updates=ON"}, o.Args...)
	}
	s := ownDatabase(t, source.kind, o)
	s.ReplicateFrom(t, source)
	s.CatchUp(t, source)
	return s
}

// ReplicateFrom makes s a replica of source, whatever it was before.
func (s *Server) ReplicateFrom(t testing.TB, source *Server) {
	t.Helper()
	if s.Flavor == "mariadb" {
		s.Exec(t, "STOP SLAVE", fmt.Sprintf(`CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%d,
			MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1`,
			source.Host, source.Port, source.RootUser, source.RootPassword), "START SLAVE")
		return
	}
	s.Exec(t, "STOP REPLICA", fmt.Sprintf(`CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%d,
		SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1`,
		source.Host, source.Port, source.RootUser, source.RootPassword), "START REPLICA")
}

// CatchUp waits until s has everything that source has now.
func (s *Server) CatchUp(t testing.TB, source *Server) {
	t.Helper()
	const limit = 60 * time.Second
	wait := "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?) AS missing"
	if s.Flavor == "mariadb" {
		wait = "SELECT MASTER_GTID_WAIT(?, ?) AS missing"
	}
	gtids := source.GTIDExecuted(t)
	if gtids == "" {
		return
	}
	if row := s.Query(t, wait, gtids, limit.Seconds())[0]; row["missing"] != "0" {
		status := "SHOW REPLICA STATUS"
		t.Fatalf("testenv: wait until %s has %s: not after %s; %v", s.spec.Name, gtids, limit, s.Query(t, status))
	}
}
