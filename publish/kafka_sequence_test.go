package publish

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
)

func TestAddSequence(t *testing.T) {
	for _, c := range []struct {
		from int32
		n    int
		want int32
	}{
		{0, 0, 0},
		{0, 5, 5},
		{math.MaxInt32 - 5, 5, math.MaxInt32},
		{math.MaxInt32 - 5, 6, 0},
		{math.MaxInt32, 1, 0},
		{math.MaxInt32, 10, 9},
	} {
		require.Equal(t, c.want, addSequence(c.from, c.n), "%d + %d", c.from, c.n)
	}
}

// sequenceSink returns a sink whose one partition of topic has taken a batch of events.
func sequenceSink(t *testing.T) (*testenv.KafkaCluster, *Kafka, *kafkaPartition) {
	t.Helper()
	server := testenv.Kafka(t)
	topic := server.Topic(t)
	server.CreateTopic(t, topic, 1, nil)
	sink, err := OpenKafka(KafkaOptions{Brokers: server.Brokers}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
	require.Eventually(t, func() bool { return sink.Ping(t.Context()) == nil }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, sink.Publish(t.Context(), NewBatch(nil)))
	events := sequenceEvents(topic, 0, 1)
	require.NoError(t, sink.Publish(t.Context(), NewBatch(events)))
	return server, sink, sink.topics[topic].partitions[0]
}

func sequenceEvents(topic string, from, n int) []mapping.Event {
	var events []mapping.Event
	for i := from; i < from+n; i++ {
		events = append(events, mapping.Event{
			ID: fmt.Sprint("event-", i), Topic: topic, Key: []byte("k"),
			Payload: make([]byte, 2000), OccurredAt: time.Unix(int64(i), 0),
		})
	}
	return events
}

// checkSequence checks that the topic holds the events 0 to n-1 in order, each once.
func checkSequence(t *testing.T, server *testenv.KafkaCluster, topic string, n int) {
	t.Helper()
	messages := server.Consume(t, topic)
	require.Len(t, messages, n)
	for i, m := range messages {
		require.Equal(t, fmt.Sprint("event-", i), m.Headers["ce_id"])
	}
}

// A broker agrees that 0 follows 2^31-1, between chunks and inside one.
func TestKafkaSequenceWraps(t *testing.T) {
	server, sink, p := sequenceSink(t)
	p.restart()
	p.next = math.MaxInt32 - 700 // a broker takes any first number of a producer
	sink.newest = producerID{}
	require.NoError(t, sink.Publish(t.Context(), NewBatch(sequenceEvents(p.topic.name, 1, 3000))))
	require.Less(t, p.next, int32(3000), "the numbers have not wrapped")
	require.NoError(t, sink.Publish(t.Context(), NewBatch(sequenceEvents(p.topic.name, 3001, 500))))
	checkSequence(t, server, p.topic.name, 3501)
}

// A broker that has lost count of a producer refuses its records; they are published
// under a new producer id, without the caller's noticing.
func TestKafkaSequenceBeginsAnew(t *testing.T) {
	server, sink, p := sequenceSink(t)
	before := p.producer
	p.next += 1000
	require.NoError(t, sink.Publish(t.Context(), NewBatch(sequenceEvents(p.topic.name, 1, 2000))))
	require.NotEqual(t, before, p.producer)
	require.Equal(t, int32(2000), p.next)
	checkSequence(t, server, p.topic.name, 2001)
}

// Chunks in doubt are sent as they were, so that a broker that has them does not take
// them again: here it has all of them, and the answers are lost.
func TestKafkaChunksInDoubt(t *testing.T) {
	server, sink, p := sequenceSink(t)
	events := sequenceEvents(p.topic.name, 1, 1000)
	b := NewBatch(events)
	require.NoError(t, sink.assign(t.Context(), b))
	var doubtful []*kafkaChunk
	for c := p.unsent(b, kafkaRequestSize); c != nil; c = p.unsent(b, kafkaRequestSize) {
		c.state = chunkDurable // so that the next one is cut
		doubtful = append(doubtful, &kafkaChunk{from: c.from, to: c.to, sequence: c.sequence, state: chunkDoubtful})
	}
	require.Greater(t, len(doubtful), 2)
	require.LessOrEqual(t, len(doubtful), kafkaMaxInFlight)
	for _, c := range p.chunks {
		c.state = chunkUnsent
	}
	_, err := sink.deliver(t.Context(), b, true)
	require.NoError(t, err)
	require.Zero(t, b.Pending())

	again := NewBatch(events)
	p.chunks, sink.batch = doubtful, again
	require.NoError(t, sink.Publish(t.Context(), again))
	require.Zero(t, again.Pending())
	checkSequence(t, server, p.topic.name, 1001)

	// Given up for another batch, they are published again, under a new producer id.
	p.chunks, sink.batch = []*kafkaChunk{{from: 0, to: 1000, sequence: 1, state: chunkDoubtful}}, again
	before := p.producer
	require.NoError(t, sink.Publish(t.Context(), NewBatch(sequenceEvents(p.topic.name, 1001, 10))))
	require.NotEqual(t, before, p.producer)
	checkSequence(t, server, p.topic.name, 1011)
}
