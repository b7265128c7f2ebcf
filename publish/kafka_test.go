package publish_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

func TestKafka(t *testing.T) {
	server := testenv.StartKafka(t, testenv.KafkaOptions{})
	h := kafkaHarness(server.Brokers)
	h.Break = func(testing.TB) { server.Kill() }
	h.Mend = func(t testing.TB) { server.Start(t) }
	publishtest.Run(t, h)
}

func openKafka(t testing.TB, o publish.KafkaOptions) *publish.Kafka {
	t.Helper()
	sink, err := publish.OpenKafka(o, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	return sink
}

func kafkaHarness(brokers []string) publishtest.Harness {
	return publishtest.Harness{
		Open:  func(t testing.TB) publish.Sink { return openKafka(t, publish.KafkaOptions{Brokers: brokers}) },
		Topic: freshTopic,
		Read: func(t testing.TB, topic string) []publishtest.Got {
			var got []publishtest.Got
			for _, m := range readKafka(t, brokers, topic) {
				got = append(got, kafkaGot(t, m))
			}
			return got
		},
		Refused: func(_ testing.TB, topic string) mapping.Event {
			e := publishtest.Event(topic, "big", 2, 0)
			e.Payload = make([]byte, 2<<20)
			_, _ = rand.NewChaCha8([32]byte{2}).Read(e.Payload)
			return e
		},
	}
}

// freshTopic returns a name that was not used before.
func freshTopic(testing.TB) string {
	return fmt.Sprintf("test.topic_%x", rand.Uint64())
}

// kafkaGot checks the headers that every event has and takes them off.
func kafkaGot(t testing.TB, m *sarama.ConsumerMessage) publishtest.Got {
	t.Helper()
	got := publishtest.Got{Key: m.Key, Payload: m.Value, Headers: make(map[string]string)}
	for _, h := range m.Headers {
		got.Headers[string(h.Key)] = string(h.Value)
	}
	got.ID, got.Type = got.Headers["ce_id"], got.Headers["ce_type"]
	require.Equal(t, "/shop/shop/orders", got.Headers["ce_source"])
	require.Equal(t, "1.0", got.Headers["ce_specversion"])
	require.Equal(t, "application/cloudevents+json; charset=UTF-8", got.Headers["content-type"])
	at, err := time.Parse(time.RFC3339, got.Headers["ce_time"])
	require.NoError(t, err)
	require.Equal(t, at.Truncate(time.Millisecond), m.Timestamp.UTC(), "the record's timestamp is the commit's")
	for _, h := range []string{"ce_id", "ce_type", "ce_source", "ce_time", "ce_specversion", "content-type"} {
		delete(got.Headers, h)
	}
	return got
}

// readKafka reads all partitions of a topic to their ends, one after the other. A topic
// that does not exist holds nothing.
func readKafka(t testing.TB, brokers []string, topic string) []*sarama.ConsumerMessage {
	t.Helper()
	config := sarama.NewConfig()
	config.Version = sarama.V2_4_0_0
	config.Metadata.AllowAutoTopicCreation = false
	client, err := sarama.NewClient(brokers, config)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	topics, err := client.Topics()
	require.NoError(t, err)
	if !slices.Contains(topics, topic) {
		return nil
	}
	partitions, err := client.Partitions(topic)
	require.NoError(t, err)
	consumer, err := sarama.NewConsumerFromClient(client)
	require.NoError(t, err)
	defer func() { require.NoError(t, consumer.Close()) }()

	var messages []*sarama.ConsumerMessage
	for _, p := range partitions {
		end, err := client.GetOffset(topic, p, sarama.OffsetNewest)
		require.NoError(t, err)
		if end == 0 {
			continue
		}
		reader, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
		require.NoError(t, err)
		for m := range reader.Messages() {
			messages = append(messages, m)
			if m.Offset == end-1 {
				break
			}
		}
		require.NoError(t, reader.Close())
	}
	return messages
}
