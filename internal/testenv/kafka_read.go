package testenv

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// Message is one Kafka message.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   map[string]string
}

// Consume returns all messages that the topic holds now and that a read_committed consumer
// would be given, partition by partition, in order of offset. A topic that does not
// exist holds none.
func (k *KafkaCluster) Consume(t testing.TB, topic string) []Message {
	t.Helper()
	client := k.client(t)
	defer client.Close()
	topics, err := client.Topics()
	if err != nil {
		t.Fatalf("testenv: list topics: %v", err)
	}
	if !slices.Contains(topics, topic) {
		return nil
	}
	partitions, err := client.Partitions(topic)
	if err != nil {
		t.Fatalf("testenv: list the partitions of %s: %v", topic, err)
	}
	slices.Sort(partitions)
	var messages []Message
	for _, partition := range partitions {
		more, err := readPartition(client, topic, partition)
		if err != nil {
			t.Fatalf("testenv: read %s: %v", topicPartition(topic, partition), err)
		}
		messages = append(messages, more...)
	}
	return messages
}

// readPartition fetches by hand, because a consumer cannot tell that it is at the end
// when what stands there are transaction markers, which it is not given.
func readPartition(client sarama.Client, topic string, partition int32) ([]Message, error) {
	offset, err := firstOffset(client, topic, partition)
	if err != nil {
		return nil, err
	}
	var messages []Message
	for {
		block, err := fetchBlock(client, topic, partition, offset)
		if err != nil {
			return nil, fmt.Errorf("fetch from offset %d: %w", offset, err)
		}
		more, next := committed(topic, partition, offset, block)
		messages = append(messages, more...)
		if next == offset {
			if offset < block.LastStableOffset {
				return nil, fmt.Errorf("fetch from offset %d: nothing came, though the log goes on to %d", offset, block.LastStableOffset)
			}
			return messages, nil
		}
		offset = next
	}
}

// firstOffset waits until the partition has a leader that knows it is.
func firstOffset(client sarama.Client, topic string, partition int32) (int64, error) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		offset, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
		if err == nil {
			return offset, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("find the first offset: %w", err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := client.RefreshMetadata(topic); err != nil {
			return 0, fmt.Errorf("find the leader: %w", err)
		}
	}
}

func fetchBlock(client sarama.Client, topic string, partition int32, offset int64) (*sarama.FetchResponseBlock, error) {
	leader, err := client.Leader(topic, partition)
	if err != nil {
		return nil, err
	}
	const limit = 64 << 20 // bytes; a single larger batch comes all the same
	request := &sarama.FetchRequest{
		Version: 4, Isolation: sarama.ReadCommitted,
		MaxWaitTime: 100, MinBytes: 1, MaxBytes: limit,
	}
	request.AddBlock(topic, partition, offset, limit, -1)
	response, err := leader.Fetch(request)
	if err != nil {
		return nil, err
	}
	block := response.GetBlock(topic, partition)
	if block == nil {
		return nil, errors.New("the answer lacks the partition")
	}
	if !errors.Is(block.Err, sarama.ErrNoError) {
		return nil, block.Err
	}
	return block, nil
}

// committed returns the messages of one answer, from an offset on, without those of aborted
// transactions, and the offset at which to go on. By the rules of KIP-98 the broker lists
// the aborted transactions of the stretch with their producers and first offsets; each
// ends at its producer's next marker.
func committed(topic string, partition int32, from int64, block *sarama.FetchResponseBlock) (messages []Message, next int64) {
	next = from
	pending := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(pending, func(a, b *sarama.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	aborted := map[int64]bool{} // producers inside an aborted transaction
	for _, records := range block.RecordsSet {
		batch := records.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		for len(pending) > 0 && pending[0].FirstOffset <= batch.LastOffset() {
			aborted[pending[0].ProducerID] = true
			pending = pending[1:]
		}
		next = max(next, batch.LastOffset()+1)
		switch {
		case batch.Control:
			delete(aborted, batch.ProducerID)
			continue
		case batch.IsTransactional && aborted[batch.ProducerID]:
			continue
		}
		for _, record := range batch.Records {
			message := Message{
				Topic: topic, Partition: partition, Offset: batch.FirstOffset + record.OffsetDelta,
				Key: record.Key, Value: record.Value, Headers: map[string]string{},
			}
			if message.Offset < from {
				continue // a batch comes whole, also when it begins before
			}
			for _, header := range record.Headers {
				message.Headers[string(header.Key)] = string(header.Value)
			}
			messages = append(messages, message)
		}
	}
	return messages, next
}
