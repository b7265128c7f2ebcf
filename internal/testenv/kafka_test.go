package testenv_test

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestConsumeReadsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	k := testenv.Kafka(t)
	topic := k.Topic(t)
	require.Empty(t, k.Consume(t, topic), "a topic that does not exist")
	k.CreateTopic(t, topic, 2, map[string]string{"max.message.bytes": "2000000"})
	require.Empty(t, k.Consume(t, topic))

	producer := transactional(t, k, topic)
	inTransaction(t, producer, topic, "kept 1", producer.CommitTxn)
	inTransaction(t, producer, topic, "aborted", producer.AbortTxn)
	inTransaction(t, producer, topic, "kept 2", producer.CommitTxn)
	inTransaction(t, producer, topic, "aborted at the end", producer.AbortTxn)

	var values []string
	for _, m := range k.Consume(t, topic) {
		require.Equal(t, "key", string(m.Key))
		require.Equal(t, map[string]string{"ce_id": "1"}, m.Headers)
		values = append(values, string(m.Value))
	}
	require.Equal(t, []string{"kept 1", "kept 2"}, values)
}

func transactional(t *testing.T, k *testenv.KafkaCluster, id string) sarama.SyncProducer {
	t.Helper()
	config := k.ClientConfig()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Transaction.ID = id
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(k.Brokers, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	return producer
}

func inTransaction(t *testing.T, producer sarama.SyncProducer, topic, value string, end func() error) {
	t.Helper()
	require.NoError(t, producer.BeginTxn())
	_, _, err := producer.SendMessage(&sarama.ProducerMessage{
		Topic: topic, Key: sarama.StringEncoder("key"), Value: sarama.StringEncoder(value),
		Headers: []sarama.RecordHeader{{Key: []byte("ce_id"), Value: []byte("1")}},
	})
	require.NoError(t, err)
	require.NoError(t, end())
}

func TestAClusterOutlivesOneOfItsNodes(t *testing.T) {
	t.Parallel()
	k := testenv.StartKafka(t, testenv.KafkaOptions{Nodes: 3})
	topic := k.Topic(t)
	k.CreateTopic(t, topic, 1, nil)
	config := k.ClientConfig()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 300 // until the cluster has missed the node, 9 s
	producer, err := sarama.NewSyncProducer(k.Brokers, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	send := func() {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("value")})
		require.NoError(t, err)
	}
	send()
	k.Nodes[0].Kill()
	send()
	k.Nodes[0].Start(t)
	require.Len(t, k.Consume(t, topic), 2)
	k.Stop(t)
	k.Start(t)
	require.Len(t, k.Consume(t, topic), 2)
}
