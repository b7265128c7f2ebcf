package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// redisSink reads the streams that binlogd publishes to.
type redisSink struct {
	address string
	streams []string
	client  *redis.Client
}

func openRedis(address string, streams []string) *redisSink {
	return &redisSink{address: address, streams: streams, client: redis.NewClient(&redis.Options{Addr: address})}
}

func (s *redisSink) config() string { return fmt.Sprintf("redis: {address: %q}", s.address) }

func (s *redisSink) count(ctx context.Context) (int, error) {
	n := 0
	for _, stream := range s.streams {
		length, err := s.client.XLen(ctx, stream).Result()
		if err != nil {
			return 0, fmt.Errorf("count stream %s: %w", stream, err)
		}
		n += int(length)
	}
	return n, nil
}

func (s *redisSink) read(ctx context.Context) ([]*event, error) {
	var events []*event
	for _, stream := range s.streams {
		entries, err := s.client.XRange(ctx, stream, "-", "+").Result()
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", stream, err)
		}
		for _, entry := range entries {
			text, _ := entry.Values["event"].(string)
			e, err := parseEvent([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("entry %s of stream %s: %w", entry.ID, stream, err)
			}
			if entry.Values["id"] != e.ID || entry.Values["key"] != e.Key {
				return nil, fmt.Errorf("entry %s of stream %s: fields id %v and key %v are not those of event %s", entry.ID, stream, entry.Values["id"], entry.Values["key"], e.ID)
			}
			events = append(events, e)
		}
	}
	return events, nil
}

func (s *redisSink) close() error { return s.client.Close() }
