package publish

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/redis/go-redis/v9"

	"github.com/binlogd/binlogd/mapping"
)

// Location is where a sink holds an event.
type Location struct {
	Topic string `json:"topic"` // or stream; the path of a file
	// Partition and Offset are Kafka's.
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	StreamID  string `json:"stream_id,omitempty"` // Redis'
	Line      int    `json:"line,omitempty"`      // of a file, from 1
}

func (l Location) String() string {
	switch {
	case l.Offset != nil:
		return fmt.Sprintf("topic %s, partition %d, offset %d", l.Topic, *l.Partition, *l.Offset)
	case l.StreamID != "":
		return fmt.Sprintf("stream %s, entry %s", l.Topic, l.StreamID)
	}
	return fmt.Sprintf("file %s, line %d", l.Topic, l.Line)
}

// ErrNotSearchable says that a sink keeps nothing that could be looked through.
var ErrNotSearchable = errors.New("this sink keeps nothing that can be looked through")

// searchPatience bounds how long a broker is waited for while nothing comes.
const searchPatience = 5 * time.Second

// Find looks for an event in the sink that o chooses, by its id, and gives the first place in each partition. Kafka and Redis are
// looked through from the event's time on; a file from its beginning. An event that the sink no longer holds is not found, which is no
// error.
func Find(ctx context.Context, o Options, e *mapping.Event) ([]Location, error) {
	switch {
	case o.Kafka != nil:
		return findInKafka(ctx, o.Kafka, e)
	case o.Redis != nil:
		return findInRedis(ctx, o.Redis, e)
	case o.File != nil:
		return findInFile(ctx, o.File.Path, e)
	}
	return nil, ErrNotSearchable
}

// findInKafka begins at the first record that is not older than the event: records have the event's time.
func findInKafka(ctx context.Context, o *KafkaOptions, e *mapping.Event) (found []Location, err error) {
	conns := newConnections(kafkaDialTimeout)
	config, err := o.config(conns)
	if err != nil {
		return nil, err
	}
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Return.Errors = true
	defer conns.watch(ctx)()
	client, err := sarama.NewClient(o.Brokers, config)
	if err != nil {
		return nil, fmt.Errorf("look for event %s in Kafka: %w", e.ID, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("look for event %s in Kafka: %w", e.ID, err)
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	partitions, err := client.Partitions(e.Topic)
	if err != nil {
		return nil, kafkaError(fmt.Errorf("look for event %s in topic %s: %w", e.ID, e.Topic, err), e.Topic)
	}
	for _, p := range partitions {
		offset, err := findInPartition(ctx, client, consumer, p, e)
		if err != nil {
			return found, fmt.Errorf("look for event %s in topic %s, partition %d: %w", e.ID, e.Topic, p, err)
		}
		if offset >= 0 {
			found = append(found, Location{Topic: e.Topic, Partition: &p, Offset: &offset})
		}
	}
	return found, nil
}

// findInPartition gives the offset of an event, −1 where the partition does not hold it.
func findInPartition(ctx context.Context, client sarama.Client, consumer sarama.Consumer, partition int32, e *mapping.Event) (int64, error) {
	end, err := client.GetOffset(e.Topic, partition, sarama.OffsetNewest)
	if err != nil {
		return -1, err
	}
	next, err := client.GetOffset(e.Topic, partition, e.OccurredAt.UnixMilli())
	if err != nil || next < 0 || next >= end {
		return -1, err
	}
	records, err := consumer.ConsumePartition(e.Topic, partition, next)
	if err != nil {
		return -1, err
	}
	defer records.AsyncClose()
	for next < end {
		select {
		case r := <-records.Messages():
			for _, h := range r.Headers {
				if string(h.Key) == "ce_id" && string(h.Value) == e.ID {
					return r.Offset, nil
				}
			}
			next = r.Offset + 1
		case err := <-records.Errors():
			return -1, err
		case <-time.After(searchPatience): // what is left are marks of transactions
			return -1, nil
		case <-ctx.Done():
			return -1, ctx.Err()
		}
	}
	return -1, nil
}

// findInRedis begins some minutes before the event's time: entries have the time of the Redis server.
func findInRedis(ctx context.Context, o *RedisOptions, e *mapping.Event) ([]Location, error) {
	const skew, page = 10 * time.Minute, 1000
	conns := newConnections(redisDialTimeout)
	client, err := o.client(conns)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it only reads
	defer conns.watch(ctx)()
	from := strconv.FormatInt(max(e.OccurredAt.Add(-skew).UnixMilli(), 0), 10)
	for {
		entries, err := client.XRangeN(ctx, e.Topic, from, "+", page).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("look for event %s in stream %s: %w", e.ID, e.Topic, err)
		}
		for _, entry := range entries {
			if entry.Values["id"] == e.ID {
				return []Location{{Topic: e.Topic, StreamID: entry.ID}}, nil
			}
		}
		if len(entries) < page {
			return nil, nil
		}
		from = "(" + entries[len(entries)-1].ID
	}
}

func findInFile(ctx context.Context, path string, e *mapping.Event) ([]Location, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("look for event %s: %w", e.ID, err)
	}
	defer file.Close()
	want := []byte(`"id":"` + e.ID + `"`)
	lines := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for event %s: %w", e.ID, err)
		}
		if bytes.Contains(line, want) {
			return []Location{{Topic: path, Line: number}}, nil
		}
		if number%1000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}
