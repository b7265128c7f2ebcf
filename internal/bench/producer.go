package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

// produce sends the messages of a file through the Kafka client alone, configured as binlogd configures it. The messages are in memory
// before the clock starts.
func produce(s settings) (result, error) {
	messages, size, err := readMessages(s)
	if err != nil {
		return result{}, err
	}
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Producer.Compression = sarama.CompressionLZ4
	config.Producer.Return.Successes = true
	producer, err := sarama.NewAsyncProducer([]string{s.Kafka}, config)
	if err != nil {
		return result{}, fmt.Errorf("connect to Kafka: %w", err)
	}
	began := time.Now()
	go func() {
		for _, m := range messages {
			producer.Input() <- m
		}
	}()
	for range messages {
		select {
		case <-producer.Successes():
		case failed := <-producer.Errors():
			return result{}, failed
		}
	}
	seconds := time.Since(began).Seconds()
	return result{Seconds: seconds, Events: uint64(len(messages)), Bytes: size}, producer.Close()
}

func readMessages(s settings) (messages []*sarama.ProducerMessage, size uint64, err error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, 0, fmt.Errorf("read the messages: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		value := append([]byte(nil), lines.Bytes()...)
		var event struct{ ID, Type, Source, Time, PartitionKey string }
		if err := json.Unmarshal(value, &event); err != nil {
			return nil, 0, fmt.Errorf("read the messages: %w", err)
		}
		header := func(key, value string) sarama.RecordHeader {
			return sarama.RecordHeader{Key: []byte(key), Value: []byte(value)}
		}
		messages = append(messages, &sarama.ProducerMessage{
			Topic: s.Topic, Key: sarama.StringEncoder(event.PartitionKey), Value: sarama.ByteEncoder(value),
			Headers: []sarama.RecordHeader{
				header("ce_id", event.ID), header("ce_type", event.Type), header("ce_source", event.Source), header("ce_time", event.Time),
				header("ce_specversion", "1.0"), header("content-type", "application/cloudevents+json; charset=UTF-8"),
			},
		})
		size += uint64(len(value))
	}
	return messages, size, lines.Err()
}
