package pipeline_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
)

// together makes a destination one that events go to exactly once.
type together struct{ destination }

func (d together) options() publish.Options {
	o := d.destination.options()
	if o.Kafka != nil {
		o.Kafka.ExactlyOnce = true
	}
	if o.Redis != nil {
		o.Redis.ExactlyOnce = true
	}
	return o
}

// name is one that no other test has: checkpoints on shared servers are kept under it.
func (s settings) name() string {
	return strings.ReplaceAll(filepath.Base(filepath.Dir(filepath.Dir(s.Checkpoint))), "/", "-") + "-" + strings.TrimRight(s.Tables, ".*")
}

// view shows the checkpoint that is kept where the events go.
func (s settings) view(t *testing.T) checkpoint.Reader {
	t.Helper()
	o := checkpoint.Options{}
	if k := s.Publish.Kafka; k != nil {
		o.Store, o.Kafka = checkpoint.KindKafka, &checkpoint.KafkaOptions{Brokers: k.Brokers}
	} else {
		o.Store, o.Redis = checkpoint.KindRedis, &checkpoint.RedisOptions{Address: s.Publish.Redis.Address}
	}
	reader, err := checkpoint.View(o, s.name())
	require.NoError(t, err)
	return reader
}

// awaitTogether waits until the checkpoint where the events are covers all that the server has in its binlog now.
func (s settings) awaitTogether(t *testing.T, server *testenv.Server, d *binlogd) {
	t.Helper()
	reader := s.view(t)
	defer reader.Close()
	gtids := server.GTIDExecuted(t)
	file, offset := server.BinlogPosition(t)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		record, err := reader.Load(t.Context())
		if err == nil && covers(t, record.Position, gtids, file, offset) {
			return
		}
		select {
		case <-d.ended:
			require.FailNow(t, "binlogd ended", d.stderr.String())
		default:
		}
		require.Lessf(t, time.Now(), deadline, "the checkpoint does not reach %s, %s:%d: %+v (%v)", gtids, file, offset, record, err)
	}
}

// finish lets binlogd publish what there is, and stops it.
func (s settings) finish(t *testing.T, server *testenv.Server) {
	t.Helper()
	d := s.daemon(t, "")
	s.awaitTogether(t, server, d)
	d.stop(t)
}

// togetherInto are a load and settings for a pipeline into each sink that publishes exactly once.
func togetherInto(t *testing.T, run func(t *testing.T, l load, s settings)) {
	for name, to := range map[string]func(db string) destination{
		"kafka": func(db string) destination {
			return &kafkaDestination{cluster: testenv.Kafka(t), topics: topicsOf(db)}
		},
		"redis": func(db string) destination {
			return &redisDestination{server: testenv.Redis(t), streams: topicsOf(db)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t, testenv.MySQL(t))
			run(t, l, newSettings(t, l.server, l.db+".*").into(together{to(l.db)}))
		})
	}
}

// verifyOnce is verify for events that must not come twice.
func (l load) verifyOnce(t *testing.T, s settings) tally {
	t.Helper()
	found := l.verify(t, s.to.read(t))
	require.Zero(t, found.repeats, "events that came twice")
	return found
}

// togetherKills is how often TestTogetherKilledAtRandom kills; BINLOGD_KILLS overrides it.
const togetherKills = 8

// TestTogetherKilledAtRandom kills the program at any moment while the database is written to: every event is there once.
func TestTogetherKilledAtRandom(t *testing.T) {
	t.Parallel()
	togetherInto(t, func(t *testing.T, l load, s settings) {
		s.finish(t, l.server)
		l.during(t, func() {
			for range kills(t, togetherKills) {
				d := s.launch(t, "")
				time.Sleep(rand.N(1500 * time.Millisecond))
				d.kill()
			}
		})
		s.finish(t, l.server)
		t.Logf("%+v", l.verifyOnce(t, s))
	})
}

// TestTogetherSuspended: a process that was suspended for longer than its lease finds that another has taken over. It ends with exit
// code 6, and what it had under way is not there.
func TestTogetherSuspended(t *testing.T) {
	t.Parallel()
	togetherInto(t, func(t *testing.T, l load, s settings) {
		s.finish(t, l.server)
		l.during(t, func() {
			for range 2 {
				first := s.daemon(t, "")
				time.Sleep(rand.N(100 * time.Millisecond)) // at any moment of what it does
				require.NoError(t, first.cmd.Process.Signal(syscall.SIGSTOP))
				second := s.daemon(t, "") // it waits for the lease, then publishes
				require.NoError(t, first.cmd.Process.Signal(syscall.SIGCONT))
				code, message := first.wait(t)
				require.Equal(t, 6, code, message)
				second.stop(t)
			}
		})
		s.finish(t, l.server)
		t.Logf("%+v", l.verifyOnce(t, s))
	})
}

// TestTogetherTwice: a second process of one name is refused while the first lives.
func TestTogetherTwice(t *testing.T) {
	t.Parallel()
	togetherInto(t, func(t *testing.T, l load, s settings) {
		first := s.daemon(t, "")
		code, message := s.launch(t, "").wait(t)
		require.Equal(t, 6, code, message)
		l.during(t, func() {
			require.Eventually(t, func() bool { return len(l.server.Query(t, "SELECT id FROM "+l.db+".counted LIMIT 1")) > 0 }, patience, 10*time.Millisecond)
		})
		s.awaitTogether(t, l.server, first)
		first.stop(t)
		t.Logf("%+v", l.verifyOnce(t, s))
	})
}

// TestTogetherCarriesOver: the checkpoint's file of the time before exactly_once becomes the first checkpoint in the sink.
func TestTogetherCarriesOver(t *testing.T) {
	t.Parallel()
	l := newLoad(t, testenv.MySQL(t))
	to := &redisDestination{server: testenv.Redis(t), streams: topicsOf(l.db)}
	before := newSettings(t, l.server, l.db+".*").into(to)
	after := newSettings(t, l.server, l.db+".*").into(together{to})
	l.publishFor(t, before.daemon(t, ""), func() { awaitCaughtUp(t, l.server, before.Checkpoint) })

	record, err := checkpoint.ReadFile(before.Checkpoint)
	require.NoError(t, err)
	record.Name = after.name()
	path := filepath.Join(filepath.Dir(after.Checkpoint), after.name()+".checkpoint")
	file, err := checkpoint.OpenFile(path, after.name())
	require.NoError(t, err)
	require.NoError(t, file.Save(t.Context(), record))
	require.NoError(t, file.Close())
	l.during(t, func() { time.Sleep(100 * time.Millisecond) }) // while nobody reads

	d := after.daemon(t, "")
	after.awaitTogether(t, l.server, d)
	d.stop(t)
	require.Contains(t, d.stderr.String(), "carried over")
	require.NoFileExists(t, path)
	after.finish(t, l.server)
	l.verifyOnce(t, after)
}

// publishFor writes while d runs, waits until it is published, and stops d.
func (l load) publishFor(t *testing.T, d *binlogd, published func()) {
	t.Helper()
	l.during(t, func() { time.Sleep(200 * time.Millisecond) })
	published()
	d.stop(t)
}
