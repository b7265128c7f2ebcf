package publish_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

// closeAfter closes the sink when the test ends.
func closeAfter(t testing.TB, sink publish.Sink) {
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
}

// sharedKafka returns the shared server once it takes events: after its start it refuses
// producers for a moment.
func sharedKafka(t testing.TB) *testenv.KafkaCluster {
	t.Helper()
	server := testenv.Kafka(t)
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	defer func() { require.NoError(t, sink.Close()) }()
	require.Eventually(t, func() bool { return sink.Ping(t.Context()) == nil }, 30*time.Second, 50*time.Millisecond)
	return server
}

func gotOf(t testing.TB, brokers []string, topic string) []publishtest.Got {
	t.Helper()
	return kafkaHarness(brokers).Read(t, topic)
}

// The numbers are murmur2 hashes from Kafka's own UtilsTest.testMurmur2.
func TestKafkaPartitionsLikeTheJavaClient(t *testing.T) {
	server := sharedKafka(t)
	topic := server.Topic(t)
	server.CreateTopic(t, topic, 7, nil)
	hashes := map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	}
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	closeAfter(t, sink)
	var events []mapping.Event
	for key := range hashes {
		events = append(events, publishtest.Event(topic, key, len(events), 0))
	}
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
	messages := readKafka(t, server.Brokers, topic)
	require.Len(t, messages, len(hashes))
	for _, m := range messages {
		require.Equal(t, (hashes[string(m.Key)]&0x7fffffff)%7, m.Partition, "key %s", m.Key)
	}
}

// TestKafkaForms: an event in binary mode, and the tombstone behind a deletion, as a consumer finds them.
func TestKafkaForms(t *testing.T) {
	server := sharedKafka(t)
	topic := server.Topic(t)
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Partitions: 1})
	closeAfter(t, sink)
	binary, tombstone := publishtest.Event(topic, "7", 0, 0), publishtest.Event(topic, "7", 1, 0)
	binary.Payload, binary.ContentType = []byte(`{"row":{"id":7}}`), "application/json"
	binary.Headers = []mapping.Header{{Key: "ce_subject", Value: []byte("7")}}
	tombstone.Payload = nil
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{binary, tombstone})))
	messages := server.Consume(t, topic)
	require.Len(t, messages, 2)
	require.Equal(t, `{"row":{"id":7}}`, string(messages[0].Value))
	require.Equal(t, "application/json", messages[0].Headers["content-type"])
	require.Equal(t, "7", messages[0].Headers["ce_subject"])
	require.Equal(t, binary.ID, messages[0].Headers["ce_id"])
	require.Nil(t, messages[1].Value, "a tombstone is null, not empty")
	require.Equal(t, "7", string(messages[1].Key))
	require.Equal(t, tombstone.ID, messages[1].Headers["ce_id"])
	require.NotContains(t, messages[1].Headers, "content-type")
}

func TestKafkaCompression(t *testing.T) {
	server := sharedKafka(t)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			topic := server.Topic(t)
			sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Compression: codec, Partitions: 2})
			closeAfter(t, sink)
			events := publishtest.Events([]string{topic}, 10, 2000, 500)
			require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
			publishtest.CheckOnce(t, events, gotOf(t, server.Brokers, topic))
			require.Equal(t, 2, partitionsOf(t, server, topic))
		})
	}
}

func partitionsOf(t testing.TB, server *testenv.KafkaCluster, topic string) int {
	t.Helper()
	meta, err := server.Admin(t).DescribeTopics([]string{topic})
	require.NoError(t, err)
	return len(meta[0].Partitions)
}

func TestKafkaTopicThatMayNotBeCreated(t *testing.T) {
	server := sharedKafka(t)
	no := false
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, CreateTopics: &no})
	closeAfter(t, sink)
	topic := server.Topic(t)
	event := publishtest.Event(topic, "k", 1, 0)
	b := publish.NewBatch([]mapping.Event{event})
	err := sink.Publish(t.Context(), b)
	var permanent *publish.PermanentError
	require.ErrorAs(t, err, &permanent)
	require.Equal(t, event.ID, permanent.Event.ID)
	require.ErrorContains(t, err, "topic "+topic+" does not exist")
	require.ErrorContains(t, err, "kafka-topics.sh --bootstrap-server "+server.Brokers[0]+" --create --topic "+topic)

	// The remedy works.
	server.CreateTopic(t, topic, 1, nil)
	require.NoError(t, sink.Publish(t.Context(), b))
	publishtest.CheckOnce(t, b.Events, gotOf(t, server.Brokers, topic))
}

func TestKafkaTopicNameThatCannotBe(t *testing.T) {
	server := sharedKafka(t)
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	closeAfter(t, sink)
	for _, topic := range []string{"shop.größen", "a/b", strings.Repeat("x", 250)} {
		event := publishtest.Event(topic, "k", 1, 0)
		err := sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{event}))
		var permanent *publish.PermanentError
		require.ErrorAs(t, err, &permanent, topic)
		require.Equal(t, event.ID, permanent.Event.ID)
		require.ErrorContains(t, err, "`topic:`")
	}
}

// A topic that takes less than the default limit is found out by its refusals: batches
// are cut until they fit, and only an event that is too large by itself is an error.
func TestKafkaSmallLimit(t *testing.T) {
	server := sharedKafka(t)
	topic := server.Topic(t)
	server.CreateTopic(t, topic, 1, map[string]string{"max.message.bytes": "20000"})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Compression: "none"})
	closeAfter(t, sink)
	events := publishtest.Events([]string{topic}, 10, 5000, 700)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events)))
	publishtest.CheckOnce(t, events, gotOf(t, server.Brokers, topic))

	large := publishtest.Event(topic, "key-0", 9000, 30000)
	batch := publish.NewBatch([]mapping.Event{publishtest.Event(topic, "key-0", 8999, 0), large, publishtest.Event(topic, "key-0", 9001, 0)})
	err := sink.Publish(t.Context(), batch)
	var permanent *publish.PermanentError
	require.ErrorAs(t, err, &permanent)
	require.Equal(t, large.ID, permanent.Event.ID)
	require.ErrorContains(t, err, "--add-config max.message.bytes=")
	require.True(t, batch.Confirmed(0), "the event before the refused one can be published")
	publishtest.CheckOnce(t, append(events, batch.Events[0]), gotOf(t, server.Brokers, topic))
}

// A topic that is deleted and made again with another number of partitions.
func TestKafkaTopicDeleted(t *testing.T) {
	server := sharedKafka(t)
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Partitions: 4})
	closeAfter(t, sink)
	topic := server.Topic(t)
	events := publishtest.Events([]string{topic}, 10, 300, 200)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[:100])))
	require.NoError(t, server.Admin(t).DeleteTopic(topic))
	awaitDeleted(t, server, topic)
	server.CreateTopic(t, topic, 2, nil)

	retrying := publish.WithRetry(sink, publish.RetryOptions{})
	require.NoError(t, retrying.Publish(t.Context(), publish.NewBatch(events[100:200])))
	publishtest.CheckOnce(t, events[100:200], gotOf(t, server.Brokers, topic))

	// Deleted once more, it is created again by the sink.
	require.NoError(t, server.Admin(t).DeleteTopic(topic))
	awaitDeleted(t, server, topic)
	require.NoError(t, retrying.Publish(t.Context(), publish.NewBatch(events[200:])))
	publishtest.CheckOnce(t, events[200:], gotOf(t, server.Brokers, topic))
	require.Equal(t, 4, partitionsOf(t, server, topic))
}

// awaitDeleted waits until the broker does not name the topic any more. It only asks for the names: whoever asks for more of a topic that
// is being deleted may wait for long.
func awaitDeleted(t *testing.T, server *testenv.KafkaCluster, topic string) {
	t.Helper()
	admin := server.Admin(t)
	require.Eventually(t, func() bool {
		topics, err := admin.ListTopics()
		_, there := topics[topic]
		return err == nil && !there
	}, 60*time.Second, 50*time.Millisecond, "the topic is still there")
}

// A broker that is silent for longer than any timeout has perhaps taken what it did not
// acknowledge. It must not take it twice.
func TestKafkaSilentBroker(t *testing.T) {
	server := testenv.StartKafka(t, testenv.KafkaOptions{})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Timeout: time.Second})
	closeAfter(t, sink)
	topic := server.Topic(t)
	events := publishtest.Events([]string{topic}, 10, 4000, 300)
	require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), publish.NewBatch(events[:1000])))

	server.Pause()
	b := publish.NewBatch(events[1000:])
	began := time.Now()
	err := sink.Publish(t.Context(), b)
	require.Error(t, err)
	require.Less(t, time.Since(began), 15*time.Second)
	require.Equal(t, 3000, b.Pending())

	began = time.Now()
	require.ErrorContains(t, sink.Ping(t.Context()), "no answer within 5 s")
	require.Less(t, time.Since(began), 6*time.Second)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began = time.Now()
	require.ErrorIs(t, sink.Publish(ctx, b), context.Canceled)
	require.Less(t, time.Since(began), 2*time.Second)

	server.Resume()
	require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), b))
	publishtest.CheckOnce(t, events, gotOf(t, server.Brokers, topic))
}

// Connections that the broker closed because they were idle are not an outage.
func TestKafkaIdle(t *testing.T) {
	server := testenv.StartKafka(t, testenv.KafkaOptions{Properties: map[string]string{"connections.max.idle.ms": "500"}})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	closeAfter(t, sink)
	topic := server.Topic(t)
	events := publishtest.Events([]string{topic}, 3, 30, 100)
	require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), publish.NewBatch(events[:10])))
	for from := 10; from < len(events); from += 10 {
		time.Sleep(2 * time.Second)
		require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[from:from+10])))
	}
	publishtest.CheckOnce(t, events, gotOf(t, server.Brokers, topic))
}

// A compacted topic refuses the one record without a key, and the error names it.
func TestKafkaRecordRefused(t *testing.T) {
	server := sharedKafka(t)
	topic := server.Topic(t)
	server.CreateTopic(t, topic, 1, map[string]string{"cleanup.policy": "compact"})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	closeAfter(t, sink)
	events := publishtest.Events([]string{topic}, 1, 5, 100)
	events[3].Key = nil
	err := sink.Publish(t.Context(), publish.NewBatch(events))
	var permanent *publish.PermanentError
	require.ErrorAs(t, err, &permanent)
	require.Equal(t, events[3].ID, permanent.Event.ID)
	require.ErrorContains(t, err, "give the table a `key:`")
}

// Three brokers, of which two must have a write: leaders are killed under load, then too
// few are left, then all come back.
func TestKafkaElections(t *testing.T) {
	server := testenv.StartKafka(t, testenv.KafkaOptions{Nodes: 3})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, Timeout: 2 * time.Second})
	closeAfter(t, sink)
	topic := server.Topic(t)
	server.CreateTopic(t, topic, 6, map[string]string{"min.insync.replicas": "2"})
	events := publishtest.Events([]string{topic}, 50, 40_000, 300)
	failures := make(chan error, 1)
	retrying := publish.WithRetry(sink, publish.RetryOptions{Max: time.Second, OnRetry: func(err error, _ int, _ time.Duration) {
		select {
		case failures <- err:
		default:
		}
	}})
	done := make(chan error, 1)
	go func() {
		for from := 0; from < len(events); from += 500 {
			if err := retrying.Publish(t.Context(), publish.NewBatch(events[from:from+500])); err != nil {
				done <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		done <- nil
	}()
	restart := func(nodes ...*testenv.KafkaNode) {
		for _, n := range nodes {
			n.Kill()
		}
		<-failures // the sink has met it
		for _, n := range nodes {
			n.Start(t)
		}
		for len(failures) > 0 {
			<-failures
		}
	}
	restart(server.Nodes[0])
	restart(server.Nodes[1], server.Nodes[2])
	require.NoError(t, <-done)
	publishtest.CheckOnce(t, events, gotOf(t, server.Brokers, topic))
}

// An address that a broker names and nobody reaches is explained.
func TestKafkaAdvertisedAddress(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nowhere := closed.Addr().String()
	require.NoError(t, closed.Close())
	server := testenv.StartKafka(t, testenv.KafkaOptions{Properties: map[string]string{"advertised.listeners": "PLAINTEXT://" + nowhere}})
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	closeAfter(t, sink)
	err = sink.Ping(t.Context())
	require.ErrorContains(t, err, "advertised.listeners")
	require.ErrorContains(t, err, nowhere)
}

func TestKafkaUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nowhere := closed.Addr().String()
	require.NoError(t, closed.Close())
	sink := openKafka(t, publish.KafkaOptions{Brokers: []string{nowhere}})
	closeAfter(t, sink)
	err = sink.Ping(t.Context())
	require.ErrorContains(t, err, nowhere)
	require.ErrorContains(t, err, "check publish.kafka.brokers")
	err = sink.Publish(t.Context(), publish.NewBatch([]mapping.Event{publishtest.Event("t", "k", 1, 0)}))
	require.ErrorContains(t, err, nowhere)
}

// Closing leaves no goroutine behind, whatever state the sink was in.
func TestKafkaCloseLeavesNothing(t *testing.T) {
	server := sharedKafka(t)
	topic := server.Topic(t)
	before := append(testenv.LeakOptions(), goleak.IgnoreCurrent())
	sink := openKafka(t, publish.KafkaOptions{Brokers: server.Brokers})
	require.NoError(t, sink.Ping(t.Context()))
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(publishtest.Events([]string{topic}, 1, 10, 100))))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	_ = sink.Publish(ctx, publish.NewBatch(publishtest.Events([]string{topic}, 1, 10_000, 100)))
	require.NoError(t, sink.Close())
	goleak.VerifyNone(t, before...)
}

// BenchmarkKafka compares the sink with a bare loop around sarama's AsyncProducer, with
// the same messages, idempotence, acknowledgements and compression.
func BenchmarkKafka(b *testing.B) {
	server := sharedKafka(b)
	const batch = 10_000
	b.Run("sink", func(b *testing.B) {
		topic := server.Topic(b)
		server.CreateTopic(b, topic, 6, nil)
		sink := openKafka(b, publish.KafkaOptions{Brokers: server.Brokers})
		defer sink.Close()
		events := publishtest.Events([]string{topic}, 1000, batch, 500)
		b.ReportAllocs()
		for b.Loop() {
			if err := sink.Publish(b.Context(), publish.NewBatch(events)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("bare", func(b *testing.B) {
		topic := server.Topic(b)
		server.CreateTopic(b, topic, 6, nil)
		events := publishtest.Events([]string{topic}, 1000, batch, 500)
		config := sarama.NewConfig()
		config.Version = sarama.V2_4_0_0
		config.Producer.Idempotent, config.Producer.RequiredAcks, config.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
		config.Producer.Compression = sarama.CompressionLZ4
		config.Producer.Partitioner = sarama.NewMurmur2Partitioner
		config.Producer.Return.Successes = true
		producer, err := sarama.NewAsyncProducer(server.Brokers, config)
		require.NoError(b, err)
		defer producer.Close()
		b.ReportAllocs()
		for b.Loop() {
			go func() {
				for i := range events {
					e := &events[i]
					producer.Input() <- &sarama.ProducerMessage{
						Topic: topic, Key: sarama.ByteEncoder(e.Key), Value: sarama.ByteEncoder(e.Payload), Timestamp: e.OccurredAt,
						Headers: []sarama.RecordHeader{
							{Key: []byte("ce_id"), Value: []byte(e.ID)},
							{Key: []byte("ce_type"), Value: []byte(e.Type)},
							{Key: []byte("ce_source"), Value: []byte(e.Source)},
							{Key: []byte("ce_time"), Value: []byte(e.Time)},
							{Key: []byte("ce_specversion"), Value: []byte("1.0")},
							{Key: []byte("content-type"), Value: []byte("application/cloudevents+json; charset=UTF-8")},
						},
					}
				}
			}()
			for range events {
				select {
				case <-producer.Successes():
				case err := <-producer.Errors():
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "events/s")
	})
}
