package pipeline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// awaitCaughtUp waits until the checkpoint covers all that the server has in its binlog now.
func awaitCaughtUp(t *testing.T, server *testenv.Server, path string) {
	t.Helper()
	awaitCaughtUpOf(t, server, func() (*checkpoint.Record, error) { return checkpoint.ReadFile(path) }, nil)
}

// awaitCaughtUpOf is awaitCaughtUp wherever the checkpoint is read, and gives up when the reader ends.
func awaitCaughtUpOf(t *testing.T, server *testenv.Server, read func() (*checkpoint.Record, error), ended <-chan struct{}) {
	t.Helper()
	gtids := server.GTIDExecuted(t)
	file, offset := server.BinlogPosition(t)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		record, err := read()
		if err == nil && covers(t, record.Position, gtids, file, offset) {
			return
		}
		select {
		case <-ended:
			require.FailNow(t, "the pipeline ended before it caught up")
		default:
		}
		require.Lessf(t, time.Now(), deadline, "the checkpoint does not reach %s, %s:%d: %+v (%v)", gtids, file, offset, record, err)
	}
}

// covers reports whether a position is behind a GTID set, or where it has none, behind file and offset.
func covers(t *testing.T, p canal.Position, gtids, file string, offset uint64) bool {
	t.Helper()
	if p.GTIDs == nil {
		return p.File > file || p.File == file && p.Offset >= offset
	}
	set, err := canal.ParseGTIDSet(p.GTIDs.Flavor(), gtids)
	require.NoError(t, err)
	return p.GTIDs.ContainsSet(set)
}

func TestKilledAtEachPoint(t *testing.T) {
	const rounds = 6
	for _, point := range []crashPoint{inside, published, acknowledged, saving, saved} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			server := testenv.MySQL(t)
			l := newLoad(t, server)
			s := newSettings(t, server, l.db+".*")
			s.once(t, server) // the checkpoint is there before the first write
			l.during(t, func() {
				for range rounds {
					s.Crash, s.Countdown = point, rand.IntN(20)
					expectKilled(t, s.start(t))
				}
			})
			s.once(t, server)
			found := l.verify(t, s.to.read(t))
			t.Logf("%+v", found)
			if point == published || point == acknowledged {
				require.NotZero(t, found.repeats, "the crash came after events were published and before the checkpoint knew")
			}
		})
	}
}

func expectKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was to be killed, and ended with %v", err)
	}
}

// TestKilledAtRandom kills the process 200 times at any moment while the database is written to.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	killAtRandom(t, newLoad(t, server), 200, nil)
}

// TestKilledAtRandomIntoBrokers does the same with the sinks that answer over a network.
func TestKilledAtRandomIntoBrokers(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	for name, to := range map[string]func(db string) destination{
		"kafka": func(db string) destination {
			return &kafkaDestination{cluster: testenv.Kafka(t), topics: topicsOf(db)}
		},
		"redis": func(db string) destination {
			return &redisDestination{server: testenv.Redis(t), streams: topicsOf(db)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t, server)
			killAtRandom(t, l, 25, to(l.db))
		})
	}
}

// TestKilledAtRandomOnMariaDB does the same with MariaDB's GTIDs.
func TestKilledAtRandomOnMariaDB(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *testenv.Server{"10.11": testenv.MariaDB, "11.8": testenv.MariaDB118} {
		t.Run(name, func(t *testing.T) { killAtRandom(t, newLoad(t, start(t)), 25, nil) })
	}
}

// TestKilledAtRandomInCompressedTransactions does the same with binlog_transaction_compression.
func TestKilledAtRandomInCompressedTransactions(t *testing.T) {
	t.Parallel()
	l := newLoad(t, testenv.MySQL(t))
	l.session = "SET SESSION binlog_transaction_compression = ON"
	killAtRandom(t, l, 25, nil)
}

// TestKilledAtRandomWithoutGTIDs does the same by file and offset, while the server goes from file to file.
func TestKilledAtRandomWithoutGTIDs(t *testing.T) {
	t.Parallel()
	server := testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	l := newLoad(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	rotated := make(chan struct{})
	go func() {
		defer close(rotated)
		for ctx.Err() == nil {
			_, _ = server.DB().ExecContext(ctx, "FLUSH BINARY LOGS")
			time.Sleep(150 * time.Millisecond)
		}
	}()
	killAtRandom(t, l, 25, nil)
	cancel()
	<-rotated
	require.Greater(t, len(server.BinlogFiles(t)), 10)
}

// TestKilledAtRandomWithEachStore does the same with the checkpoint on a server. In MySQL it is on the source itself.
func TestKilledAtRandomWithEachStore(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	for kind, address := range map[string]func() string{
		checkpoint.KindMySQL: func() string { return server.Addr },
		checkpoint.KindRedis: func() string { return testenv.Redis(t).Addr },
		checkpoint.KindKafka: func() string { return testenv.Kafka(t).Brokers[0] },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLoad(t, server)
			s := newSettings(t, server, l.db+".*")
			s.Store, s.StoreAt, s.Checkpoint = kind, address(), testenv.UniqueName("checkpoint")
			if kind == checkpoint.KindMySQL {
				s.Checkpoint = server.Database(t)
			}
			s.killAtRandom(t, l, 12)
		})
	}
}

// killAtRandom kills a child at any moment of its life, again and again under load, and verifies what came out: into a file, unless
// another destination is given.
func killAtRandom(t *testing.T, l load, kills int, to destination) {
	t.Helper()
	s := newSettings(t, l.server, l.db+".*")
	if to != nil {
		s = s.into(to)
	}
	s.killAtRandom(t, l, kills)
}

func (s settings) killAtRandom(t *testing.T, l load, kills int) {
	t.Helper()
	began := time.Now()
	s.once(t, l.server)
	life := min(max(2*time.Since(began), 400*time.Millisecond), 1200*time.Millisecond) // on a busy machine all takes longer
	if s.Store != "" {
		life += 2 * time.Second // it first waits for the lease of the one that was killed
	}
	l.during(t, func() {
		for range kills {
			cmd := s.start(t)
			time.Sleep(rand.N(life))
			require.NoError(t, cmd.Process.Kill())
			expectKilled(t, cmd)
		}
	})
	s.once(t, l.server)
	t.Logf("%d kills: %+v", kills, l.verify(t, s.to.read(t)))
}

// TestKilledWhileTheSinkHalts kills it while the sink confirms out of order and fails for a while again and again.
func TestKilledWhileTheSinkHalts(t *testing.T) {
	t.Parallel()
	l := newLoad(t, testenv.MySQL(t))
	s := newSettings(t, l.server, l.db+".*")
	s.Halting = true
	s.once(t, l.server)
	l.during(t, func() {
		for range 20 {
			cmd := s.start(t)
			time.Sleep(rand.N(time.Second))
			require.NoError(t, cmd.Process.Kill())
			expectKilled(t, cmd)
		}
	})
	s.once(t, l.server)
	found := l.verify(t, lanes(s.events(t)))
	t.Logf("%+v", found)
	require.NotZero(t, found.repeats)
}
