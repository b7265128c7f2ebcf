package pipeline_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv"
)

// TestSourceRestartsUnderLoad: dump threads are killed, and the server is restarted cleanly and by a crash, while it is written to. The
// process lives on, so nothing is repeated.
func TestSourceRestartsUnderLoad(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		load := newLoad(t, server)
		s := newSettings(t, server, load.db+".*")
		s.once(t, server)
		l := s.run(t, nil)
		busiest := int64(0)
		load.during(t, func() {
			for _, harm := range []func(){
				func() { server.KillDumpThreads(t) },
				func() { server.Restart(t) },
				func() { server.KillDumpThreads(t) },
				func() { server.Kill(); server.Start(t) },
				func() { server.Kill(); server.Start(t) },
				func() { server.KillDumpThreads(t) },
			} {
				l.awaitMore(t)
				harm()
				busiest = max(busiest, l.Stats().Source.BytesInFlight)
			}
			l.awaitMore(t)
		})
		l.caughtUp(t, server)
		l.stop(t)
		require.LessOrEqual(t, busiest, int64(canal.DefaultMaxInFlight))
		require.GreaterOrEqual(t, l.Stats().Source.Reconnects, uint64(6))
		found := load.verify(t, s.to.read(t))
		require.Zero(t, found.repeats)
		t.Logf("%+v", found)
	})
}

// awaitMore waits until more events are published.
func (l *live) awaitMore(t *testing.T) {
	t.Helper()
	before := l.Stats().Events
	require.Eventually(t, func() bool { return l.Stats().Events > before+20 }, patience, 5*time.Millisecond, "no more events come")
}

// TestFailoverToAReplicaUnderLoad: the address answers with a replica that has the same GTIDs, while the process lives and after it was
// killed.
func TestFailoverToAReplicaUnderLoad(t *testing.T) {
	t.Parallel()
	old := testenv.StartMySQL(t, testenv.Options{})
	load := newLoad(t, old)
	promoted := testenv.StartReplica(t, old, testenv.Options{})
	proxy := testenv.NewProxy(t, old.Addr)
	s := newSettings(t, old, load.db+".*")
	s.Address = proxy.Addr
	s.once(t, old)
	l := s.run(t, nil)
	load.during(t, func() { l.awaitMore(t) })
	promoted.CatchUp(t, old)
	promoted.Exec(t, "STOP REPLICA")
	old.Kill()
	proxy.SetTarget(promoted.Addr)
	proxy.Cut()
	load.server = promoted
	load.during(t, func() { l.awaitMore(t) })
	l.caughtUp(t, promoted)
	l.stop(t)
	require.Zero(t, load.verify(t, s.to.read(t)).repeats)
}

// TestCaseBrokerAway: Kafka and Redis are down for longer than any timeout of a client while the database is written to, once stopped in
// order, once frozen. This is about the program as it is shipped: its memory and what it says.
func TestCaseBrokerAway(t *testing.T) {
	t.Parallel()
	const away = time.Minute
	kafka, redis := testenv.StartKafka(t, testenv.KafkaOptions{}), testenv.StartRedis(t, testenv.RedisOptions{})
	load := newLoad(t, testenv.MySQL(t))
	load.pause = 30 * time.Millisecond // enough to fill the budget many times over
	destinations := map[string]destination{
		"kafka": &kafkaDestination{cluster: kafka, topics: topicsOf(load.db)},
		"redis": &redisDestination{server: redis, streams: topicsOf(load.db)},
	}
	daemons := make(map[string]*binlogd)
	all := make(map[string]settings)
	for name, d := range destinations {
		all[name] = newSettings(t, load.server, load.db+".*").into(d)
		daemons[name] = all[name].daemon(t, "limits: {in_flight: 4MiB}\n")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := load.start(ctx)
	time.Sleep(2 * time.Second)

	kafka.Stop(t)
	redis.Stop(t)
	for _, d := range daemons {
		body := d.await(t, "/readyz", http.StatusServiceUnavailable)
		require.Contains(t, body, `"part": "sink"`)
	}
	time.Sleep(away)
	for _, d := range daemons {
		d.await(t, "/healthz", http.StatusOK) // a restart would not help
	}
	kafka.Start(t)
	redis.Start(t)
	for _, d := range daemons {
		d.await(t, "/readyz", http.StatusOK)
	}

	kafka.Pause()
	redis.Pause()
	for _, d := range daemons {
		d.await(t, "/readyz", http.StatusServiceUnavailable)
	}
	kafka.Resume()
	redis.Resume()
	cancel()
	wait()
	for name, d := range daemons {
		d.await(t, "/readyz", http.StatusOK)
		awaitCaughtUp(t, load.server, all[name].Checkpoint)
		peak := d.peak(t)
		d.stop(t)
		found := load.verify(t, all[name].to.read(t))
		t.Logf("%s: %+v, peak memory %d MiB", name, found, peak)
		require.LessOrEqual(t, peak, memoryLimit, name)
	}
}
