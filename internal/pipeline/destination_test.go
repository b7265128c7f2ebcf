package pipeline_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
)

// destination is where a pipeline under test publishes to, and how a test reads back what is there.
type destination interface {
	options() publish.Options
	// read gives all events, as runs each of which is in the order of publishing.
	read(t *testing.T) [][]event
}

// fileDestination is a file.
type fileDestination struct{ path string }

func (d *fileDestination) options() publish.Options {
	return publish.Options{File: &publish.FileOptions{Path: d.path}}
}

// read gives the whole lines: the last one may be cut off while its writer lives, or was killed.
func (d *fileDestination) read(t *testing.T) [][]event {
	t.Helper()
	f, err := os.Open(d.path)
	require.NoError(t, err)
	defer f.Close()
	var events []event
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return [][]event{events}
		}
		events = append(events, parseEvent(t, strings.TrimSuffix(line, "\n")))
	}
}

// kafkaDestination is a topic for each table, of three partitions: a run is what one partition holds.
type kafkaDestination struct {
	cluster *testenv.KafkaCluster
	topics  []string
}

func (d *kafkaDestination) options() publish.Options {
	return publish.Options{Kafka: &publish.KafkaOptions{Brokers: d.cluster.Brokers, Partitions: 3}}
}

func (d *kafkaDestination) read(t *testing.T) [][]event {
	t.Helper()
	var runs [][]event
	for _, topic := range d.topics {
		byPartition := make(map[int32][]event)
		for _, m := range d.cluster.Consume(t, topic) {
			e := parseEvent(t, string(m.Value))
			require.Equal(t, e.PartitionKey, string(m.Key))
			require.Equal(t, e.ID, m.Headers["ce_id"])
			byPartition[m.Partition] = append(byPartition[m.Partition], e)
		}
		for _, events := range byPartition {
			runs = append(runs, events)
		}
	}
	return runs
}

// redisDestination is a stream for each table: a run is what one stream holds.
type redisDestination struct {
	server  *testenv.RedisServer
	streams []string
}

func (d *redisDestination) options() publish.Options {
	return publish.Options{Redis: &publish.RedisOptions{Address: d.server.Addr}}
}

func (d *redisDestination) read(t *testing.T) [][]event {
	t.Helper()
	var runs [][]event
	for _, stream := range d.streams {
		entries, err := d.server.Client().XRange(t.Context(), stream, "-", "+").Result()
		require.NoError(t, err)
		var events []event
		for _, entry := range entries {
			text, ok := entry.Values["event"].(string)
			require.True(t, ok)
			e := parseEvent(t, text)
			require.Equal(t, e.ID, entry.Values["id"])
			require.Equal(t, e.PartitionKey, entry.Values["key"])
			events = append(events, e)
		}
		runs = append(runs, events)
	}
	return runs
}

// topicsOf are the topics of the tables that a load writes to.
func topicsOf(db string) []string { return []string{db + ".counted", db + ".other"} }
