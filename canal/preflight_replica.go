package canal

import (
	"context"
	"fmt"
	"strings"
)

// replicaState is what a server says of itself as a replica.
type replicaState struct {
	configured bool // it has a source, whether it reads from it at the moment or not
	running    bool // it takes transactions from there
	source     string
}

// replica asks whether the server is a replica. Group replication's own channels do not count. An account that may not see
// it on MariaDB learns only whether one runs.
func (i *Inspector) replica(ctx context.Context) (replicaState, error) {
	statement := "SHOW ALL SLAVES STATUS"
	switch {
	case i.atLeast("8.0.22"):
		statement = "SHOW REPLICA STATUS"
	case i.server.Flavor == MySQL:
		statement = "SHOW SLAVE STATUS"
	}
	r, err := ask(ctx, i.conn, statement)
	if accountLacks(err) {
		r, err = ask(ctx, i.conn, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
		if err != nil {
			return replicaState{}, err
		}
		running := len(r.rows) > 0 && r.rows[0][1] != "0"
		return replicaState{configured: running, running: running, source: "another server"}, nil
	}
	if err != nil {
		return replicaState{}, err
	}
	var found replicaState
	for n := range r.rows {
		if strings.HasPrefix(r.value(n, "channel_name"), "group_replication_") {
			continue
		}
		found.configured = true
		found.source = r.value(n, "source_host", "master_host") + ":" + r.value(n, "source_port", "master_port")
		if r.value(n, "replica_io_running", "slave_io_running") != "No" || r.value(n, "replica_sql_running", "slave_sql_running") != "No" {
			found.running = true
		}
	}
	return found, nil
}

// checkReplica looks at what makes a replica unfit, and says nothing of a server that is none.
func (i *Inspector) checkReplica(ctx context.Context) []Check {
	const name = "replica"
	r, err := i.replica(ctx)
	switch {
	case err != nil:
		return []Check{FailedCheck(name, err)}
	case !r.configured:
		return nil
	case r.running && i.logsOnlyItsOwn():
		return []Check{failSource(name, fmt.Sprintf("the server is a replica of %s with %s=OFF: what it replicates is not in its binlog", r.source, i.logReplicaUpdates()),
			fmt.Sprintf("write %s=ON under [mysqld] in its my.cnf and restart it; or name another server in source.address", i.logReplicaUpdates()))}
	}
	return []Check{checkOK(name, "of %s, and logs what it replicates", r.source)}
}

// logsOnlyItsOwn reports whether the server keeps what it replicates out of its binlog.
func (i *Inspector) logsOnlyItsOwn() bool { return i.variables[i.logReplicaUpdates()] == "OFF" }

// logReplicaUpdates is the server's name of the setting.
func (i *Inspector) logReplicaUpdates() string {
	if _, renamed := i.variables["log_replica_updates"]; renamed {
		return "log_replica_updates"
	}
	return "log_slave_updates"
}

// ownTransactions are those that the server itself committed while it was a replica, as far as can be told: errant ones, which
// its source does not have. MySQL: those of its own UUID beyond what is known; MariaDB: the last of a domain, if it is the server's.
// They are empty where it does not replicate at the moment: a server that was promoted commits its own.
func (i *Inspector) ownTransactions(r replicaState, known *GTIDSet) (*GTIDSet, error) {
	if !r.running {
		return NewGTIDSet(i.server.Flavor), nil
	}
	executed, err := i.executed()
	if err != nil {
		return nil, err
	}
	return executed.of(i.server).Subtract(known), nil
}

// of are the transactions in the set that a server numbered; on MariaDB only where it numbered the last of a domain.
func (s *GTIDSet) of(server Identity) *GTIDSet {
	own := NewGTIDSet(s.flavor)
	for _, last := range s.domains {
		if last.ServerID == server.ServerID {
			own.Add(last)
		}
	}
	id, err := parseUUID(server.UUID)
	if err != nil {
		return own
	}
	for in, numbers := range s.series {
		if in.uuid == id {
			own.putSeries(in, append(intervals(nil), *numbers...))
		}
	}
	return own
}
