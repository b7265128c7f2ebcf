package publish_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

func TestRedis(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	h := redisHarness(server)
	h.Break = func(t testing.TB) { server.Stop(t) }
	h.Mend = func(t testing.TB) { server.Start(t) }
	publishtest.Run(t, h)
}

// What Redis acknowledged survives its being killed only with appendfsync always: with
// everysec it puts off writing to its file while an earlier fsync is under way.
func TestRedisKilled(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{Args: []string{"--appendfsync", "always"}})
	h := redisHarness(server)
	h.Break = func(testing.TB) { server.Kill() }
	h.Mend = func(t testing.TB) { server.Start(t) }
	publishtest.RunFaults(t, h)
}

func redisHarness(server *testenv.RedisServer) publishtest.Harness {
	return publishtest.Harness{
		Open:  func(t testing.TB) publish.Sink { return openRedis(t, publish.RedisOptions{Address: server.Addr}) },
		Topic: freshTopic,
		Read: func(t testing.TB, topic string) []publishtest.Got {
			return readRedis(t, server.Client(), topic)
		},
		Refused: func(t testing.TB, topic string) mapping.Event {
			require.NoError(t, server.Client().Set(t.Context(), topic+".taken", "x", 0).Err())
			return publishtest.Event(topic+".taken", "k", 2, 0)
		},
	}
}

func openRedis(t testing.TB, o publish.RedisOptions) *publish.Redis {
	t.Helper()
	sink, err := publish.OpenRedis(o, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	return sink
}

func readRedis(t testing.TB, client *redis.Client, stream string) []publishtest.Got {
	t.Helper()
	var got []publishtest.Got
	for start := "-"; ; {
		entries, err := client.XRangeN(t.Context(), stream, start, "+", 1000).Result()
		require.NoError(t, err)
		for _, e := range entries {
			g := publishtest.Got{
				ID: e.Values["id"].(string), Type: e.Values["type"].(string),
				Key: []byte(e.Values["key"].(string)), Payload: []byte(e.Values["event"].(string)),
				Headers: make(map[string]string),
			}
			for field, value := range e.Values {
				if name, ok := strings.CutPrefix(field, "h:"); ok {
					g.Headers[name] = value.(string)
				}
			}
			got = append(got, g)
			start = "(" + e.ID
		}
		if len(entries) < 1000 {
			return got
		}
	}
}

// Connections that are cut in the middle of transactions neither lose nor reorder.
func TestRedisConnectionCut(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	sink, topic := openRedis(t, publish.RedisOptions{Address: server.Addr}), freshTopic(t)
	closeAfter(t, sink)
	events := publishtest.Events([]string{topic}, 20, 30_000, 300)
	retries := 0
	retrying := publish.WithRetry(sink, publish.RetryOptions{Initial: time.Millisecond, Max: 10 * time.Millisecond, OnRetry: func(error, int, time.Duration) { retries++ }})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for range 100 { // then it may finish, however slow the machine is
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				server.Client().ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
			}
		}
	}()
	for from := 0; from < len(events); from += 3000 {
		require.NoError(t, retrying.Publish(t.Context(), publish.NewBatch(events[from:from+3000])))
	}
	close(stop)
	<-stopped
	require.Positive(t, retries, "no connection was cut")
	repeats := publishtest.CheckAll(t, events, readRedis(t, server.Client(), topic))
	t.Logf("%d cuts, %d of %d events repeated", retries, repeats, len(events))
}

// A connection that was closed while nothing was published is not an outage.
func TestRedisIdle(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	sink, topic := openRedis(t, publish.RedisOptions{Address: server.Addr}), freshTopic(t)
	closeAfter(t, sink)
	events := publishtest.Events([]string{topic}, 3, 30, 100)
	for from := 0; from < len(events); from += 10 {
		require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[from:from+10])))
		require.NoError(t, server.Client().ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
		time.Sleep(50 * time.Millisecond)
	}
	publishtest.CheckOnce(t, events, readRedis(t, server.Client(), topic))
}

// States of the server that pass are waited for; none of them lets a later entry of a
// stream in before an earlier one.
func TestRedisStatesThatPass(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	admin := server.Client()
	master := testenv.StartRedis(t, testenv.RedisOptions{})
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	for _, c := range []struct {
		code         string
		break_, mend []any
	}{
		{"OOM", []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		{"NOREPLICAS", []any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		{"READONLY", []any{"REPLICAOF", host, port}, []any{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(c.code, func(t *testing.T) {
			sink, topic := openRedis(t, publish.RedisOptions{Address: server.Addr}), freshTopic(t)
			closeAfter(t, sink)
			require.NoError(t, admin.Do(t.Context(), c.break_...).Err())
			b := publish.NewBatch(publishtest.Events([]string{topic}, 3, 100, 200))
			err := sink.Publish(t.Context(), b)
			require.ErrorContains(t, err, c.code)
			var permanent *publish.PermanentError
			require.NotErrorAs(t, err, &permanent)
			require.Equal(t, 100, b.Pending())
			if c.code == "READONLY" {
				require.ErrorContains(t, sink.Ping(t.Context()), "read-only replica")
			}
			require.NoError(t, admin.Do(t.Context(), c.mend...).Err())
			require.NoError(t, sink.Publish(t.Context(), b))
			publishtest.CheckOnce(t, b.Events, readRedis(t, admin, topic))
		})
	}
}

func TestRedisRights(t *testing.T) {
	server := testenv.StartRedis(t, testenv.RedisOptions{})
	admin := server.Client()
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "writer", "on", ">secret", "+ping", "+multi", "+exec", "+xadd", "~shop.*").Err())
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "+@read", "+ping", "~*").Err())

	writer := openRedis(t, publish.RedisOptions{Address: server.Addr, Username: "writer", Password: "secret"})
	closeAfter(t, writer)
	require.NoError(t, writer.Ping(t.Context()), "the rights that the remedy names suffice")
	event := publishtest.Event("shop.orders", "k", 1, 0)
	require.NoError(t, writer.Publish(t.Context(), publish.NewBatch([]mapping.Event{event})))

	for _, c := range []struct {
		name    string
		options publish.RedisOptions
		topic   string
		want    []string
	}{
		{"stream", publish.RedisOptions{Username: "writer", Password: "secret"}, "other.orders", []string{"NOPERM", "ACL SETUSER"}},
		{"command", publish.RedisOptions{Username: "reader", Password: "secret"}, "shop.orders", []string{"NOPERM", "ACL SETUSER"}},
		{"password", publish.RedisOptions{Username: "writer", Password: "wrong"}, "shop.orders", []string{"WRONGPASS", "publish.redis.password"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Address = server.Addr
			sink := openRedis(t, c.options)
			closeAfter(t, sink)
			event := publishtest.Event(c.topic, "k", 1, 0)
			err := sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{event}))
			var permanent *publish.PermanentError
			require.ErrorAs(t, err, &permanent)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), c.options.Password)
		})
	}

	require.NoError(t, admin.Do(t.Context(), "CONFIG", "SET", "requirepass", "secret").Err())
	anonymous := openRedis(t, publish.RedisOptions{Address: server.Addr})
	closeAfter(t, anonymous)
	err := anonymous.Ping(t.Context())
	require.ErrorContains(t, err, "NOAUTH")
	require.ErrorContains(t, err, "publish.redis.password")
}

func TestRedisMaxLen(t *testing.T) {
	server := testenv.Redis(t)
	sink, topic := openRedis(t, publish.RedisOptions{Address: server.Addr, MaxLen: 1000}), freshTopic(t)
	closeAfter(t, sink)
	events := publishtest.Events([]string{topic}, 1, 5000, 100)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
	got := readRedis(t, server.Client(), topic)
	require.Less(t, len(got), 1500, "about 1000 entries are kept")
	require.GreaterOrEqual(t, len(got), 1000)
	publishtest.CheckOnce(t, events[len(events)-len(got):], got)
}

func TestRedisCloseLeavesNothing(t *testing.T) {
	server := testenv.Redis(t)
	before := append(testenv.LeakOptions(), goleak.IgnoreCurrent())
	sink := openRedis(t, publish.RedisOptions{Address: server.Addr})
	topic := freshTopic(t)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(publishtest.Events([]string{topic}, 1, 10, 100))))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	_ = sink.Publish(ctx, publish.NewBatch(publishtest.Events([]string{topic}, 1, 50_000, 100)))
	require.NoError(t, sink.Close())
	goleak.VerifyNone(t, before...)
}

func BenchmarkRedis(b *testing.B) {
	server := testenv.Redis(b)
	sink := openRedis(b, publish.RedisOptions{Address: server.Addr, MaxLen: 1000})
	defer sink.Close()
	const batch = 10_000
	events := publishtest.Events([]string{fmt.Sprint("bench.", time.Now().UnixNano())}, 1000, batch, 500)
	b.ReportAllocs()
	for b.Loop() {
		if err := sink.Publish(b.Context(), publish.NewBatch(events)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "events/s")
}
