package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
)

// pair is a primary and its replica, and a pipeline that may read from both.
type pair struct {
	primary, replica *testenv.Server
	load             load
	settings         settings
}

// onEachPair runs a test on a primary and a replica of each kind.
func onEachPair(t *testing.T, test func(t *testing.T, p pair)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{
		"mysql": testenv.StartMySQL, "mariadb 10.11": testenv.StartMariaDB, "mariadb 11.8": testenv.StartMariaDB118,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPair(t, start(t, testenv.Options{})))
		})
	}
}

func newPair(t *testing.T, primary *testenv.Server) pair {
	t.Helper()
	p := pair{primary: primary, load: newLoad(t, primary)}
	p.replica = testenv.StartReplica(t, primary, testenv.Options{Name: "replica"})
	p.settings = newSettings(t, primary, p.load.db+".*")
	p.settings.Addresses = []string{p.replica.Addr}
	return p
}

// replicaStatement is a statement about a replica in the words of its kind.
func replicaStatement(s *testenv.Server, statement string) string {
	if s.Flavor == "mariadb" {
		return strings.NewReplacer("REPLICA", "SLAVE", "SOURCE", "MASTER").Replace(statement)
	}
	return statement
}

// received waits until the replica has the primary's whole binlog, applied or not.
func (p pair) received(t *testing.T) {
	t.Helper()
	file, offset := p.primary.BinlogPosition(t)
	require.Eventually(t, func() bool {
		row := p.replica.Query(t, replicaStatement(p.replica, "SHOW REPLICA STATUS"))[0]
		return row["Source_Log_File"]+row["Master_Log_File"] == file && row["Read_Source_Log_Pos"]+row["Read_Master_Log_Pos"] == fmt.Sprint(offset)
	}, patience, 20*time.Millisecond, "the replica does not receive the primary's binlog")
}

// promote makes the replica a server of its own.
func (p pair) promote(t *testing.T) {
	t.Helper()
	p.replica.Exec(t, replicaStatement(p.replica, "STOP REPLICA"), replicaStatement(p.replica, "RESET REPLICA ALL"))
}

// requireAsUnbroken asserts that what was published is, byte for byte and in order, what a run gives that reads everything from the replica.
func (p pair) requireAsUnbroken(t *testing.T) {
	t.Helper()
	afresh := newSettings(t, p.replica, p.settings.Tables)
	afresh.Start = "earliest"
	afresh.once(t, p.replica)
	want, got := afresh.events(t), p.settings.events(t)
	seen := make(map[string]bool)
	var distinct []event
	for _, e := range got {
		if !seen[e.ID] {
			seen[e.ID] = true
			distinct = append(distinct, e)
		}
	}
	require.Len(t, distinct, len(want))
	for i := range want {
		require.Equal(t, want[i].raw, distinct[i].raw)
	}
}

// lastError waits until the source says why it cannot go on.
func (l *live) lastError(t *testing.T, words ...string) {
	t.Helper()
	var last string
	require.Eventuallyf(t, func() bool {
		last = l.Stats().Source.LastError
		for _, word := range words {
			if !strings.Contains(last, word) {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond, "the source's last error does not say %q", words)
}

// TestFailoverUnderLoad kills the primary while it is written to. Its replica, which has received everything, is not taken before it
// has applied everything too; then reading goes on there, before and after it is promoted.
func TestFailoverUnderLoad(t *testing.T) {
	onEachPair(t, func(t *testing.T, p pair) {
		p.settings.once(t, p.primary)
		l := p.settings.run(t, nil)
		p.load.during(t, func() { l.awaitMore(t) })
		l.caughtUp(t, p.primary) // so that what comes next was written then
		p.replica.CatchUp(t, p.primary)
		p.replica.Exec(t, replicaStatement(p.replica, "STOP REPLICA SQL_THREAD"))
		p.load.during(t, func() { l.awaitMore(t) })
		l.caughtUp(t, p.primary)
		p.received(t)
		before := l.Stats()
		require.Equal(t, p.primary.Addr, before.Source.Address)
		p.primary.Kill()
		l.lastError(t, p.primary.Addr, p.replica.Addr, "has not caught up", "of the checkpoint")
		require.Equal(t, before.Events, l.Stats().Events)
		require.Zero(t, l.Stats().Source.Failovers)

		p.replica.Exec(t, replicaStatement(p.replica, "START REPLICA SQL_THREAD"))
		require.Eventually(t, func() bool { return l.Stats().Source.Connected }, patience, 20*time.Millisecond, "the replica is not taken")
		p.promote(t)
		p.load.server = p.replica
		p.load.during(t, func() { l.awaitMore(t) })
		l.caughtUp(t, p.replica)
		after := l.Stats().Source
		require.Equal(t, p.replica.Addr, after.Address)
		require.Equal(t, p.replica.ServerID, after.Server.ServerID)
		require.Equal(t, uint64(1), after.Failovers)
		l.stop(t)
		require.Zero(t, p.load.verify(t, p.settings.to.read(t)).repeats)
		p.requireAsUnbroken(t)
		p.settings.once(t, p.replica) // a restart finds the server of the checkpoint at its second address

		record, err := checkpoint.ReadFile(p.settings.Checkpoint)
		require.NoError(t, err)
		require.Equal(t, p.replica.ServerID, record.Server.ServerID)
		store, err := checkpoint.OpenFile(p.settings.Checkpoint, "test")
		require.NoError(t, err)
		defer store.Close()
		entries, err := store.History(t.Context())
		require.NoError(t, err)
		failovers := 0
		for _, e := range entries {
			if e.Action == checkpoint.ActionFailover {
				failovers++
			}
		}
		require.Equal(t, 1, failovers)
	})
}

// gate lets a number of batches pass and holds up the next until it is opened.
type gate struct {
	publish.Sink
	pass    int
	reached chan struct{} // closed at the first batch that is held up
	open    chan struct{}
	once    sync.Once
}

func (g *gate) Publish(ctx context.Context, b *publish.Batch) error {
	if g.pass--; g.pass < 0 {
		g.once.Do(func() { close(g.reached) })
		select {
		case <-g.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.Sink.Publish(ctx, b)
}

// bigTransaction writes 100 rows of 600 KB in one transaction.
func bigTransaction(t *testing.T, server *testenv.Server, db string, first int) {
	t.Helper()
	var transaction strings.Builder
	transaction.WriteString("BEGIN;")
	for id := range 100 {
		fmt.Fprintf(&transaction, "INSERT INTO %s.big VALUES (%d, REPEAT('%c', 600000));", db, first+id, 'a'+id%26)
	}
	server.Exec(t, transaction.String()+"COMMIT")
}

// TestFailoverInsideATransaction kills the primary, and then binlogd and the primary, in the middle of a transaction that is published in
// part. On the replica it goes on at the row behind the last durable one, and not before the replica has the transaction.
func TestFailoverInsideATransaction(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb 11.8": testenv.StartMariaDB118} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := testenv.Options{}
			if name != "mysql" {
				o.Args = []string{"--log-slave-updates=ON"} // it becomes a replica later
			}
			p := newPair(t, start(t, o))
			p.primary.Exec(t, "CREATE TABLE "+p.load.db+".big (id INT PRIMARY KEY, v LONGTEXT)")
			p.settings.once(t, p.primary)
			g := &gate{pass: 2, reached: make(chan struct{}), open: make(chan struct{})}
			l := p.settings.run(t, func(sink publish.Sink, store checkpoint.Store) (publish.Sink, checkpoint.Store) {
				g.Sink = sink
				return g, store
			})
			p.replica.Exec(t, replicaStatement(p.replica, "STOP REPLICA SQL_THREAD"))
			bigTransaction(t, p.primary, p.load.db, 0)
			<-g.reached
			p.received(t)
			p.primary.Kill()
			close(g.open)
			l.lastError(t, p.replica.Addr, "has not caught up")
			if p.primary.Flavor == "mysql" { // of a MariaDB the whole is read before anything is published: it may be rolled back
				require.Less(t, l.Stats().Events, uint64(100), "half of the transaction is published")
			}
			p.replica.Exec(t, replicaStatement(p.replica, "START REPLICA SQL_THREAD"))
			require.Eventually(t, func() bool { return l.Stats().Events == 100 }, patience, 10*time.Millisecond)
			l.stop(t)
			events := p.settings.events(t)
			require.Len(t, events, 100)
			requireDistinct(t, events)

			// The other way round, with a restart of binlogd: the primary is back, as the one to fall back to.
			p.promote(t)
			p.primary.Start(t)
			p.primary.ReplicateFrom(t, p.replica)
			p.settings.Crash, p.settings.Countdown = published, 3
			child := p.settings.start(t)
			bigTransaction(t, p.replica, p.load.db, 100)
			expectKilled(t, child)
			p.settings.Crash = nowhere
			record, err := checkpoint.ReadFile(p.settings.Checkpoint)
			require.NoError(t, err)
			require.NotNil(t, record.Partial)
			half := len(p.settings.events(t)) - 100
			p.primary.CatchUp(t, p.replica)
			p.replica.Kill()
			p.settings.once(t, p.primary)
			all := p.settings.events(t)
			repeats := len(all) - 200
			require.Less(t, repeats, half, "it goes on inside the transaction, not from its beginning")
			seen := make(map[string]string)
			for _, e := range all {
				if before, repeated := seen[e.ID]; repeated {
					require.Equal(t, before, e.raw)
				}
				seen[e.ID] = e.raw
			}
			require.Len(t, seen, 200)
		})
	}
}

// TestFailoverWithPreparedXA: XA transactions are prepared on the primary and committed or rolled back on the replica.
func TestFailoverWithPreparedXA(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb 10.11": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, start(t, testenv.Options{}))
			insert := func(id int) string { return fmt.Sprintf("INSERT INTO %s.counted VALUES (%d, 0, '')", p.load.db, id) }
			prepare := func(xid string, id int) {
				p.primary.Exec(t, "XA START '"+xid+"'; "+insert(id)+"; XA END '"+xid+"'; XA PREPARE '"+xid+"'")
			}
			p.settings.once(t, p.primary)
			prepare("before", 1)
			p.primary.Exec(t, insert(2))
			l := p.settings.run(t, nil)
			require.Eventually(t, func() bool { return l.Stats().Events == 1 }, patience, 10*time.Millisecond)
			l.stop(t) // 'before' is held in the checkpoint
			l = p.settings.run(t, nil)
			prepare("while", 3)
			prepare("dropped", 4)
			p.primary.Exec(t, insert(5))
			require.Eventually(t, func() bool { return l.Stats().Events == 1 }, patience, 10*time.Millisecond)
			p.replica.CatchUp(t, p.primary)
			p.primary.Kill()
			require.Eventually(t, func() bool { s := l.Stats().Source; return s.Connected && s.Failovers == 1 }, patience, 10*time.Millisecond)
			p.promote(t)
			p.replica.Exec(t, "XA COMMIT 'before'", "XA ROLLBACK 'dropped'", "XA COMMIT 'while'", insert(6))
			l.caughtUp(t, p.replica)
			l.stop(t)
			require.Equal(t, []string{"2", "5", "1", "3", "6"}, keys(p.settings.events(t)))
			p.requireAsUnbroken(t)
		})
	}
}

// TestFailoverRefusesReplicas: a replica with transactions of its own is not taken as long as it is a replica, and one that does not log what
// it replicates is not either.
func TestFailoverRefusesReplicas(t *testing.T) {
	t.Parallel()
	p := newPair(t, testenv.StartMySQL(t, testenv.Options{}))
	silent := testenv.StartMySQL(t, testenv.Options{Name: "silent", Args: []string{"--log-replica-updates=OFF"}})
	silent.ReplicateFrom(t, p.primary)
	silent.CatchUp(t, p.primary)
	p.settings.Addresses = append(p.settings.Addresses, silent.Addr)
	l := p.settings.run(t, nil)
	p.load.during(t, func() { l.awaitMore(t) })
	l.caughtUp(t, p.primary)
	p.replica.CatchUp(t, p.primary)
	p.replica.Exec(t, "CREATE DATABASE errant")
	own := p.replica.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"] + ":1"
	p.primary.Kill()
	l.lastError(t, p.replica.Addr, "transactions of its own", own, silent.Addr, "log_replica_updates=OFF")
	p.promote(t)
	require.Eventually(t, func() bool { s := l.Stats().Source; return s.Connected && s.Address == p.replica.Addr }, patience, 20*time.Millisecond)
	l.stop(t)
}

// requireRewritten asserts that the program refuses a server whose history is another one now, with exit code 3 and the place kept.
func (s settings) requireRewritten(t *testing.T, running *binlogd, words ...string) {
	t.Helper()
	published := len(s.events(t))
	s.requireRefused(t, running, append(words, "source.start")...)
	require.Len(t, s.events(t), published)
}

// TestServerThatWasReset: RESET BINARY LOGS AND GTIDS, or RESET MASTER, while binlogd runs and while it is down; the server gives the same
// numbers to other transactions, more than before.
func TestServerThatWasReset(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		reset := "RESET BINARY LOGS AND GTIDS"
		if server.Flavor == "mariadb" {
			reset = "RESET MASTER"
		}
		db := server.Database(t)
		server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY AUTO_INCREMENT)")
		write := func(n int) { server.Exec(t, "USE "+db, strings.Repeat("INSERT INTO a VALUES ();", n)) }
		s := newSettings(t, server, db+".*")
		d := s.daemon(t, "")
		write(5)
		awaitCaughtUp(t, server, s.Checkpoint)
		untilNextSecond(server)
		server.Exec(t, reset, "USE "+db, strings.Repeat("INSERT INTO a VALUES ();", 50))
		s.requireRewritten(t, d, "binlogs were reset ("+reset+")")
		write(1000)
		s.requireRewritten(t, s.launch(t, ""), "binlogs were reset ("+reset+")")
		server.Exec(t, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
		s.requireRewritten(t, s.launch(t, ""), "binlogs were reset ("+reset+")")
	})
}

// untilNextSecond lets a MariaDB's clock go on to the next second: it says no more than the second in which a file was begun.
func untilNextSecond(server *testenv.Server) {
	if server.Flavor == "mariadb" {
		now := time.Now()
		time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now))
	}
}

// TestServerThatLostTransactions: the server comes back from a crash without its last transactions, as with sync_binlog=0, and then gives
// their numbers to others.
func TestServerThatLostTransactions(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY AUTO_INCREMENT)")
		write := func(n int) { server.Exec(t, "USE "+db, strings.Repeat("INSERT INTO a VALUES ();", n)) }
		s := newSettings(t, server, db+".*")
		d := s.daemon(t, "")
		write(5)
		awaitCaughtUp(t, server, s.Checkpoint)
		// What is on the disk when the power fails later.
		disk := t.TempDir() + "/disk"
		server.Pause()
		require.NoError(t, exec.Command("cp", "--archive", "--sparse=always", server.DataDir(), disk).Run())
		server.Resume()
		write(3)
		awaitCaughtUp(t, server, s.Checkpoint)
		server.Kill()
		require.NoError(t, os.RemoveAll(server.DataDir()))
		require.NoError(t, exec.Command("cp", "--archive", "--sparse=always", disk, server.DataDir()).Run())
		server.Start(t)
		s.requireRewritten(t, d, "has lost its last transactions", "it does not have", "sync_binlog=1")
		write(50)
		s.requireRewritten(t, s.launch(t, ""), "has lost its last transactions", "to other transactions since")
	})
}
