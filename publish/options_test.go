package publish_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

func TestOptionsThatAreWrong(t *testing.T) {
	kafka := func(change func(*publish.KafkaOptions)) publish.Options {
		o := publish.KafkaOptions{Brokers: []string{"127.0.0.1:9092"}}
		change(&o)
		return publish.Options{Kafka: &o}
	}
	redis := func(change func(*publish.RedisOptions)) publish.Options {
		o := publish.RedisOptions{Address: "127.0.0.1:6379"}
		change(&o)
		return publish.Options{Redis: &o}
	}
	for want, o := range map[string]publish.Options{
		"publish: no sink is configured; write exactly one of kafka, redis, file and stdout": {},
		"publish: file and stdout are configured together; keep exactly one":                 {File: &publish.FileOptions{Path: "x"}, Stdout: &publish.StdoutOptions{}},
		"publish.file.path: is missing":                                                      {File: &publish.FileOptions{}},
		"publish.kafka.brokers: is empty":                                                    {Kafka: &publish.KafkaOptions{}},
		`publish.kafka.brokers: "localhost"`:                                                 kafka(func(o *publish.KafkaOptions) { o.Brokers = []string{"localhost"} }),
		"publish.kafka.compression: \"brotli\"":                                              kafka(func(o *publish.KafkaOptions) { o.Compression = "brotli" }),
		"publish.kafka.partitions: -1":                                                       kafka(func(o *publish.KafkaOptions) { o.Partitions = -1 }),
		"publish.kafka.replication_factor: 40000":                                            kafka(func(o *publish.KafkaOptions) { o.ReplicationFactor = 40000 }),
		"publish.kafka.timeout: 1ms":                                                         kafka(func(o *publish.KafkaOptions) { o.Timeout = time.Millisecond }),
		"publish.kafka.transaction_events: belongs to exactly_once":                          kafka(func(o *publish.KafkaOptions) { o.TransactionEvents = 5 }),
		"publish.kafka.transaction_timeout: 1ms is too short":                                kafka(func(o *publish.KafkaOptions) { o.ExactlyOnce, o.TransactionTimeout = true, time.Millisecond }),
		"publish.kafka.transaction_linger: 1h0m0s is out of range":                           kafka(func(o *publish.KafkaOptions) { o.ExactlyOnce, o.TransactionLinger = true, time.Hour }),
		"publish.kafka.sasl.mechanism: \"GSSAPI\"":                                           kafka(func(o *publish.KafkaOptions) { o.SASL = &publish.SASLOptions{Mechanism: "GSSAPI", User: "u"} }),
		"publish.kafka.sasl.user: is missing":                                                kafka(func(o *publish.KafkaOptions) { o.SASL = &publish.SASLOptions{} }),
		"publish.kafka.tls.mode: \"tls\"":                                                    kafka(func(o *publish.KafkaOptions) { o.TLS = &publish.TLSOptions{Mode: "tls"} }),
		"publish.kafka.tls.ca: open":                                                         kafka(func(o *publish.KafkaOptions) { o.TLS = &publish.TLSOptions{CA: "missing.pem"} }),
		"publish.kafka.tls: cert and key":                                                    kafka(func(o *publish.KafkaOptions) { o.TLS = &publish.TLSOptions{Cert: "c.pem"} }),
		`publish.redis.address: ""`:                                                          {Redis: &publish.RedisOptions{}},
		"publish.redis.db: -1":                                                               redis(func(o *publish.RedisOptions) { o.DB = -1 }),
		"publish.redis.max_len: -1":                                                          redis(func(o *publish.RedisOptions) { o.MaxLen = -1 }),
		"publish.redis.timeout: 1ms":                                                         redis(func(o *publish.RedisOptions) { o.Timeout = time.Millisecond }),
		"publish.redis.password: is missing":                                                 redis(func(o *publish.RedisOptions) { o.Username = "u" }),
		"publish.redis.deduplicate: is of no use with exactly_once":                          redis(func(o *publish.RedisOptions) { o.ExactlyOnce, o.Deduplicate = true, time.Hour }),
		"publish.redis.max_age: excludes max_len":                                            redis(func(o *publish.RedisOptions) { o.MaxLen, o.MaxAge = 5, time.Hour }),
		"publish.redis.tls.mode: \"x\"":                                                      redis(func(o *publish.RedisOptions) { o.TLS = &publish.TLSOptions{Mode: "x"} }),
	} {
		t.Run(want, func(t *testing.T) {
			require.ErrorContains(t, o.Validate(), want)
			_, err := publish.Open(t.Context(), o, publish.Deps{})
			require.ErrorContains(t, err, want, "Open validates too")
		})
	}
}

func TestOpenEachSink(t *testing.T) {
	var out bytes.Buffer
	for want, o := range map[string]publish.Options{
		"kafka 127.0.0.1:9092,b:9093": {Kafka: &publish.KafkaOptions{Brokers: []string{"127.0.0.1:9092", "b:9093"}, SASL: &publish.SASLOptions{User: "u", Password: "secret"}}},
		"kafka c:9092":                {Kafka: &publish.KafkaOptions{Brokers: []string{"c:9092"}, SASL: &publish.SASLOptions{Mechanism: "SCRAM-SHA-512", User: "u", Password: "secret"}, TLS: &publish.TLSOptions{}}},
		"redis 127.0.0.1:6379/2":      {Redis: &publish.RedisOptions{Address: "127.0.0.1:6379", DB: 2, Username: "u", Password: "secret"}},
		"stdout":                      {Stdout: &publish.StdoutOptions{}},
	} {
		require.NoError(t, o.Validate(), want)
		require.Equal(t, want, o.Describe())
		sink, err := publish.Open(t.Context(), o, publish.Deps{Stdout: &out})
		require.NoError(t, err, want)
		require.NoError(t, sink.Close(), want)
	}
	o := publish.Options{File: &publish.FileOptions{Path: filepath.Join(t.TempDir(), "events.jsonl")}}
	require.Equal(t, "file "+o.File.Path, o.Describe())
	sink, err := publish.Open(t.Context(), o, publish.Deps{})
	require.NoError(t, err)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(publishtest.Events([]string{"t"}, 1, 1, 0))))
	require.NoError(t, sink.Close())
}

func TestNullCounts(t *testing.T) {
	var sink publish.Null
	b := batchOf(3)
	b.Confirm(1)
	require.NoError(t, sink.Publish(t.Context(), b))
	require.Zero(t, b.Pending())
	require.EqualValues(t, 2, sink.Events())
	require.EqualValues(t, len(b.Events[0].Payload)+len(b.Events[2].Payload), sink.Bytes())
}
