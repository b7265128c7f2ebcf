package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// kafkaSink reads the topics that binlogd publishes to.
type kafkaSink struct {
	brokers []string
	topics  []string
	client  sarama.Client
}

func openKafka(brokers, topics []string) (*kafkaSink, error) {
	config := sarama.NewConfig()
	config.ClientID = "binlogd-demo"
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Metadata.AllowAutoTopicCreation = false // creating topics is binlogd's work
	config.Metadata.Retry.Max = 0
	client, err := sarama.NewClient(brokers, config)
	if err != nil {
		return nil, fmt.Errorf("connect to Kafka at %s: %w", strings.Join(brokers, ","), err)
	}
	return &kafkaSink{brokers: brokers, topics: topics, client: client}, nil
}

func (s *kafkaSink) config() string {
	return fmt.Sprintf("kafka: {brokers: [%s]}", strings.Join(s.brokers, ", "))
}

func (s *kafkaSink) count(context.Context) (int, error) {
	ends, err := s.ends()
	n := 0
	for _, end := range ends {
		n += int(end.newest - end.oldest)
	}
	return n, err
}

// span is what one partition holds: offsets from oldest up to, not including, newest.
type span struct {
	topic          string
	partition      int32
	oldest, newest int64
}

func (s *kafkaSink) ends() ([]span, error) {
	// A topic that is not there yet is an error to the client, and to the demo a topic
	// without messages.
	known := map[string]bool{}
	if err := s.client.RefreshMetadata(); err != nil {
		return nil, fmt.Errorf("ask Kafka for its topics: %w", err)
	}
	names, err := s.client.Topics()
	if err != nil {
		return nil, fmt.Errorf("ask Kafka for its topics: %w", err)
	}
	for _, name := range names {
		known[name] = true
	}
	var ends []span
	for _, topic := range s.topics {
		if !known[topic] {
			continue
		}
		partitions, err := s.client.Partitions(topic)
		if err != nil {
			return nil, fmt.Errorf("ask Kafka for the partitions of %s: %w", topic, err)
		}
		for _, partition := range partitions {
			newest, err := s.client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return nil, fmt.Errorf("ask Kafka for the end of %s/%d: %w", topic, partition, err)
			}
			oldest, err := s.client.GetOffset(topic, partition, sarama.OffsetOldest)
			if err != nil {
				return nil, fmt.Errorf("ask Kafka for the start of %s/%d: %w", topic, partition, err)
			}
			ends = append(ends, span{topic, partition, oldest, newest})
		}
	}
	return ends, nil
}

func (s *kafkaSink) read(ctx context.Context) ([]*event, error) {
	ends, err := s.ends()
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(s.client)
	if err != nil {
		return nil, fmt.Errorf("consume from Kafka: %w", err)
	}
	defer consumer.Close()
	var events []*event
	for _, end := range ends {
		if events, err = readPartition(ctx, consumer, end, events); err != nil {
			return nil, fmt.Errorf("consume %s/%d: %w", end.topic, end.partition, err)
		}
	}
	return events, nil
}

// readPartition appends the events of one partition. What a consumer relies on besides
// the value, the key and the headers, must say the same as the value.
func readPartition(ctx context.Context, consumer sarama.Consumer, end span, events []*event) ([]*event, error) {
	if end.oldest == end.newest {
		return events, nil
	}
	partition, err := consumer.ConsumePartition(end.topic, end.partition, end.oldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	for {
		select {
		case message := <-partition.Messages():
			e, err := parseEvent(message.Value)
			if err != nil {
				return nil, err
			}
			if string(message.Key) != e.Key || header(message, "ce_id") != e.ID {
				return nil, fmt.Errorf("message at offset %d: key %q and ce_id %q are not those of event %s", message.Offset, message.Key, header(message, "ce_id"), e.ID)
			}
			events = append(events, e)
			if message.Offset == end.newest-1 {
				return events, nil
			}
		case <-time.After(30 * time.Second):
			return nil, errors.New("no message for 30 s before the partition's end")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func header(message *sarama.ConsumerMessage, name string) string {
	for _, h := range message.Headers {
		if string(h.Key) == name {
			return string(h.Value)
		}
	}
	return ""
}

func (s *kafkaSink) close() error { return s.client.Close() }
