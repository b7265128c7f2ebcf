package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
)

// observer keeps, in the order in which it happens, what becomes durable and what is saved.
type observer struct {
	pause time.Duration // before each batch

	mu        sync.Mutex
	confirmed []string // ids
	saves     []save
}

// save is a checkpoint and how many events were durable before it.
type save struct {
	confirmed int
	record    checkpoint.Record
}

func (o *observer) wrap(sink publish.Sink, store checkpoint.Store) (publish.Sink, checkpoint.Store) {
	return &observedSink{sink, o}, &observedStore{store, o}
}

// durable is how many events are durable.
func (o *observer) durable() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.confirmed)
}

// requireBehind asserts that no checkpoint was ahead of an event.
func (o *observer) requireBehind(t *testing.T, events []event) {
	t.Helper()
	place := make(map[string]int)
	for i, id := range o.confirmed {
		place[id] = i
	}
	require.NotEmpty(t, o.saves)
	for _, s := range o.saves {
		executed := s.record.Position.GTIDs
		for _, e := range events {
			gtid, err := canal.ParseGTID(executed.Flavor(), e.GTID)
			require.NoError(t, err)
			if executed.Contains(gtid) {
				require.Lessf(t, place[e.ID], s.confirmed, "%s was saved before its event %s was durable", gtid, e.ID)
			}
		}
	}
}

type observedSink struct {
	publish.Sink
	*observer
}

func (s *observedSink) Publish(ctx context.Context, b *publish.Batch) error {
	time.Sleep(s.pause)
	before := make([]bool, len(b.Events))
	for i := range before {
		before[i] = b.Confirmed(i)
	}
	err := s.Sink.Publish(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range before {
		if !before[i] && b.Confirmed(i) {
			s.confirmed = append(s.confirmed, strings.Clone(b.Events[i].ID))
		}
	}
	return err
}

type observedStore struct {
	checkpoint.Store
	*observer
}

func (s *observedStore) Save(ctx context.Context, r *checkpoint.Record) error {
	s.mu.Lock()
	s.saves = append(s.saves, save{len(s.confirmed), *r})
	s.mu.Unlock()
	return s.Store.Save(ctx, r)
}

// TestCaseHalfTransaction: the connection is killed again and again while one transaction of 30 MB goes to a slow sink.
func TestCaseHalfTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		const rows = 100
		db := server.Database(t)
		server.Exec(t, "CREATE TABLE "+db+".big (id INT PRIMARY KEY, v LONGTEXT)")
		s := newSettings(t, server, db+".*")
		s.once(t, server)
		o := &observer{pause: 30 * time.Millisecond}
		l := s.run(t, o.wrap)

		var transaction strings.Builder
		transaction.WriteString("BEGIN;")
		for id := range rows {
			fmt.Fprintf(&transaction, "INSERT INTO %s.big VALUES (%d, REPEAT('%c', 300000));", db, id, 'a'+id%26)
		}
		server.Exec(t, transaction.String()+"COMMIT")
		kills := 0
		for next := 1; o.durable() < rows; time.Sleep(time.Millisecond) {
			if n := o.durable(); n >= next && n < rows {
				server.KillDumpThreads(t)
				kills++
				next = n + 15
			}
		}
		l.caughtUp(t, server)
		l.stop(t)

		require.GreaterOrEqual(t, kills, 3)
		require.NotZero(t, l.Stats().Source.Reconnects)
		events := s.events(t)
		require.Len(t, events, rows)
		requireDistinct(t, events)
		for id, e := range events {
			require.Equal(t, id, e.number(t, "id"))
			require.Equal(t, `"`+strings.Repeat(string(rune('a'+id%26)), 300000)+`"`, string(e.Data.Row["v"]))
		}
		o.requireBehind(t, events)
	})
}

// TestCaseAckOrder: the sink confirms out of order, and fails some events for a while. TestKilledWhileTheSinkHalts adds the kills.
func TestCaseAckOrder(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		load := newLoad(t, server)
		s := newSettings(t, server, load.db+".*")
		s.Halting = true
		s.once(t, server)
		o := &observer{}
		l := s.run(t, o.wrap)
		load.during(t, func() { time.Sleep(2 * time.Second) })
		l.caughtUp(t, server)
		l.stop(t)
		events := s.events(t)
		require.Zero(t, load.verify(t, lanes(events)).repeats)
		require.Greater(t, len(o.saves), 5)
		o.requireBehind(t, events)
	})
}

// TestCaseGTIDSet: a former replica has transactions of several servers in its binlog, some of them with gaps and out of order.
func TestCaseGTIDSet(t *testing.T) {
	t.Parallel()
	former := testenv.StartMySQL(t, testenv.Options{})
	load := newLoad(t, former)
	write := func(server *testenv.Server, gtid string, id int) {
		server.Exec(t, fmt.Sprintf("SET gtid_next='%s'; INSERT INTO %s.counted VALUES (%d, 0, ''); SET gtid_next='AUTOMATIC'", gtid, load.db, id))
	}
	const third = "3e11fa47-71ca-11e1-9e33-c80aa9429562:"
	write(former, "AUTOMATIC", 1)
	write(former, third+"2", 2)
	s := newSettings(t, former, load.db+".*") // all of it is before the start
	s.once(t, former)
	write(former, "AUTOMATIC", 3)
	write(former, third+"5", 4)
	s.once(t, former)

	promoted := testenv.StartReplica(t, former, testenv.Options{})
	promoted.Exec(t, "STOP REPLICA")
	former.Stop(t)
	s.Address = promoted.Addr
	write(promoted, "AUTOMATIC", 5)
	write(promoted, third+"4", 6)
	write(promoted, third+"1", 7)
	s.once(t, promoted)
	require.Equal(t, []string{"3", "4", "5", "6", "7"}, keys(s.events(t)))
	record, err := checkpoint.ReadFile(s.Checkpoint)
	require.NoError(t, err)
	require.Equal(t, promoted.GTIDExecuted(t), record.Position.GTIDs.String())
	require.Contains(t, record.Position.GTIDs.String(), third+"1-2:4-5")

	promoted.PurgeBinlogs(t)
	s.once(t, promoted)
	write(promoted, third+"3", 8)
	s.once(t, promoted)
	events := s.events(t)
	require.Equal(t, []string{"3", "4", "5", "6", "7", "8"}, keys(events))
	requireDistinct(t, events)
}

// keys are the events' partition keys.
func keys(events []event) []string {
	var keys []string
	for _, e := range events {
		keys = append(keys, e.PartitionKey)
	}
	return keys
}

func TestCaseTaggedGTIDs(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	db := server.Database(t)
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY)", "SET gtid_next='AUTOMATIC:blue'",
		"INSERT INTO "+db+".a VALUES (1)", "SET gtid_next='AUTOMATIC'", "INSERT INTO "+db+".a VALUES (2)")
	s.once(t, server)
	s.once(t, server)
	events := s.events(t)
	require.Equal(t, []string{"1", "2"}, keys(events))
	requireDistinct(t, events)
	require.Contains(t, events[0].GTID, ":blue:")
	record, err := checkpoint.ReadFile(s.Checkpoint)
	require.NoError(t, err)
	for _, e := range events {
		gtid, err := canal.ParseGTID(canal.MySQL, e.GTID)
		require.NoError(t, err)
		require.True(t, record.Position.GTIDs.Contains(gtid), e.GTID)
	}
}

// TestCaseStartOnAPurgedServer: the first start is on a server that has purged binlogs, the second comes before any event.
func TestCaseStartOnAPurgedServer(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY)", "INSERT INTO "+db+".a VALUES (1)")
		server.PurgeBinlogs(t)
		s := newSettings(t, server, db+".*")
		s.once(t, server)
		s.once(t, server)
		server.Exec(t, "INSERT INTO "+db+".a VALUES (2)")
		s.once(t, server)
		require.Equal(t, []string{"2"}, keys(s.events(t)))
	})
}

// TestCaseQuietTables: what is written is not captured, for so long that its binlogs are purged.
func TestCaseQuietTables(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		server.Exec(t, "USE "+db, "CREATE TABLE quiet (id INT PRIMARY KEY)", "CREATE TABLE busy (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO quiet VALUES (1)")
		s := newSettings(t, server, db+".quiet")
		l := s.run(t, nil)
		l.caughtUp(t, server)
		for range 5 {
			server.Exec(t, "USE "+db, strings.Repeat("INSERT INTO busy VALUES ();", 100), "FLUSH BINARY LOGS")
		}
		l.caughtUp(t, server)
		l.stop(t)
		server.PurgeBinlogs(t)
		s.once(t, server)
		server.Exec(t, "INSERT INTO "+db+".quiet VALUES (2)")
		s.once(t, server)
		require.Equal(t, []string{"2"}, keys(s.events(t)))
	})
}

// TestQuietServerWithoutGTIDs: nothing at all is written, but binlog files begin, and the old ones are purged.
func TestQuietServerWithoutGTIDs(t *testing.T) {
	t.Parallel()
	server := testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	db := server.Database(t)
	server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY)", "INSERT INTO "+db+".a VALUES (1)")
	s := newSettings(t, server, db+".*")
	l := s.run(t, nil)
	l.caughtUp(t, server)
	server.Exec(t, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
	l.caughtUp(t, server)
	require.Zero(t, l.Stats().Checkpoint.Counters.Transactions)
	l.stop(t)
	file, _ := server.BinlogPosition(t)
	server.Exec(t, "PURGE BINARY LOGS TO '"+file+"'")
	s.once(t, server)
	server.Exec(t, "INSERT INTO "+db+".a VALUES (2)")
	s.once(t, server)
	require.Equal(t, []string{"2"}, keys(s.events(t)))
}
