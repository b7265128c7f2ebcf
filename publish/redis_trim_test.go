package publish_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

// Events that come again while their ids are remembered are not appended again.
func TestRedisDeduplicate(t *testing.T) {
	server := testenv.Redis(t)
	topic := freshTopic(t)
	events := publishtest.Events([]string{topic}, 7, 500, 200)
	for _, stretch := range [][2]int{{0, 300}, {200, 500}} {
		sink := openRedis(t, publish.RedisOptions{Address: server.Addr, Deduplicate: time.Hour})
		require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[stretch[0]:stretch[1]])))
		require.NoError(t, sink.Close())
	}
	publishtest.CheckOnce(t, events, readRedis(t, server.Client(), topic))
}

// A group that was not given entries before they were trimmed is warned of; one that was is not.
func TestRedisTrimmingOutrunsConsumers(t *testing.T) {
	for name, o := range map[string]publish.RedisOptions{"max_len": {MaxLen: 10}, "max_age": {MaxAge: time.Second}} {
		t.Run(name, func(t *testing.T) {
			server := testenv.Redis(t)
			topic := freshTopic(t)
			var log bytes.Buffer
			o.Address = server.Addr
			sink, err := publish.OpenRedis(o, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			closeAfter(t, sink)
			ctx, client := t.Context(), server.Client()
			require.NoError(t, client.XGroupCreateMkStream(ctx, topic, "slow", "0").Err())
			require.NoError(t, client.XGroupCreateMkStream(ctx, topic, "late", "$").Err())
			if o.MaxAge > 0 { // entries that are old by their ids
				for i := range 300 {
					require.NoError(t, client.Do(ctx, "XADD", topic, i+1, "id", "old").Err())
				}
			}
			events := publishtest.Events([]string{topic}, 1, 1000, 100)
			require.NoError(t, sink.Publish(ctx, publish.NewBatch(events)))
			require.Contains(t, log.String(), "trimming has outrun a consumer group")
			require.Contains(t, log.String(), "group=slow")
			require.Contains(t, log.String(), "stream="+topic)
		})
	}
}
