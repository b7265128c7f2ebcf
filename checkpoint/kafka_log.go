package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// kafkaLog is what a pipeline's keys in the topic hold, as far as the topic was read. Reading
// goes on where it ended.
type kafkaLog struct {
	topic string
	name  string            // of the pipeline
	next  int64             // offset
	cells map[string][]byte // by key, of this pipeline alone
}

const (
	kafkaPartition  = 0
	kafkaFetchBytes = 8 << 20
	// kafkaMarkerPatience is how long a transaction that is about to end is waited for.
	kafkaMarkerPatience = 2 * time.Second
)

// mine reports whether a key belongs to the pipeline. Names hold no slash.
func (l *kafkaLog) mine(key string) bool {
	return key == l.name || strings.HasPrefix(key, l.name+"/")
}

// readToEnd reads what was committed until now.
func (l *kafkaLog) readToEnd(ctx context.Context, client sarama.Client) error {
	if l.cells == nil {
		oldest, err := client.GetOffset(l.topic, kafkaPartition, sarama.OffsetOldest)
		if err != nil {
			return fmt.Errorf("find the beginning of topic %s: %w", l.topic, err)
		}
		l.next, l.cells = oldest, map[string][]byte{}
	}
	end := int64(-1)
	var stuck time.Time // since when an unfinished transaction is in the way
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		block, err := l.fetch(client)
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			*l = kafkaLog{topic: l.topic, name: l.name}
			return l.readToEnd(ctx, client)
		}
		if err != nil {
			return fmt.Errorf("read topic %s from offset %d: %w", l.topic, l.next, err)
		}
		if end < 0 {
			end = block.HighWaterMarkOffset
		}
		before := l.next
		l.take(block)
		switch {
		case l.next >= end:
			return nil
		case l.next > before:
			stuck = time.Time{}
		case stuck.IsZero():
			stuck = time.Now()
		case time.Since(stuck) > kafkaMarkerPatience:
			return nil // its producer died; the next one ends it
		}
	}
}

func (l *kafkaLog) fetch(client sarama.Client) (*sarama.FetchResponseBlock, error) {
	leader, err := client.Leader(l.topic, kafkaPartition)
	if err != nil {
		return nil, err
	}
	request := &sarama.FetchRequest{
		Version: 4, Isolation: sarama.ReadCommitted,
		MaxWaitTime: 50, // ms
		MinBytes:    1, MaxBytes: kafkaFetchBytes,
	}
	request.AddBlock(l.topic, kafkaPartition, l.next, kafkaFetchBytes, -1)
	response, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close() // the client connects anew
		return nil, err
	}
	block := response.GetBlock(l.topic, kafkaPartition)
	if block == nil {
		return nil, errors.New("the answer lacks the partition")
	}
	if !errors.Is(block.Err, sarama.ErrNoError) {
		if errors.Is(block.Err, sarama.ErrNotLeaderForPartition) {
			_ = client.RefreshMetadata(l.topic) // for the next attempt
		}
		return nil, block.Err
	}
	return block, nil
}

// take applies the records of one answer, without those of aborted transactions. By the rules
// of KIP-98 the broker lists the aborted transactions of the stretch with their producers and
// first offsets; each ends at its producer's next marker.
func (l *kafkaLog) take(block *sarama.FetchResponseBlock) {
	pending := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(pending, func(a, b *sarama.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	aborted := map[int64]bool{} // producers inside an aborted transaction
	from := l.next
	for _, records := range block.RecordsSet {
		batch := records.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		for len(pending) > 0 && pending[0].FirstOffset <= batch.LastOffset() {
			aborted[pending[0].ProducerID] = true
			pending = pending[1:]
		}
		l.next = max(l.next, batch.LastOffset()+1)
		switch {
		case batch.Control:
			delete(aborted, batch.ProducerID)
			continue
		case batch.IsTransactional && aborted[batch.ProducerID]:
			continue
		}
		for _, record := range batch.Records {
			// A batch comes whole, also when it begins before.
			if key := string(record.Key); batch.FirstOffset+record.OffsetDelta >= from && l.mine(key) {
				l.set(key, record.Value)
			}
		}
	}
}

// set keeps a value; nil is a tombstone.
func (l *kafkaLog) set(key string, value []byte) {
	if value == nil {
		delete(l.cells, key)
		return
	}
	l.cells[key] = slices.Clone(value)
}
