package testenv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// KafkaOptions say how an own Kafka cluster differs from the shared one.
type KafkaOptions struct {
	// Nodes is the number of nodes, 1 by default. With 3, topics have three copies of
	// which two must have a write.
	Nodes int
	// Properties are further broker settings; they override the defaults.
	Properties map[string]string
}

// KafkaCluster is a Kafka cluster on this machine, usually of one node.
type KafkaCluster struct {
	Brokers []string // 127.0.0.1:port of each node
	// Nodes can be stopped and started one by one.
	Nodes []*KafkaNode

	mu    sync.Mutex
	admin sarama.ClusterAdmin // nil until first used
}

// KafkaNode is one node of a cluster.
type KafkaNode struct {
	ID   int32
	Addr string
	instance
}

// Kafka returns the Kafka of one node that the process's tests share. Tests keep to topics
// of their own.
func Kafka(t testing.TB) *KafkaCluster {
	t.Helper()
	return share(t, "kafka", func(ctx context.Context) (*KafkaCluster, error) {
		return startKafka(ctx, KafkaOptions{})
	})
}

// StartKafka starts a Kafka cluster that is the test's own and ends with it.
func StartKafka(t testing.TB, o KafkaOptions) *KafkaCluster {
	t.Helper()
	k, err := startKafka(t.Context(), o)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	destroyAfter(t, k)
	return k
}

func startKafka(ctx context.Context, o KafkaOptions) (*KafkaCluster, error) {
	software, err := fetch.KafkaServer(ctx)
	if err != nil {
		return nil, err
	}
	k := &KafkaCluster{}
	var nodes []daemon.KafkaNode
	for id := range max(o.Nodes, 1) {
		node := daemon.KafkaNode{ID: id + 1}
		if node.Dir, err = env.newDir("kafka"); err != nil {
			return nil, err
		}
		var releases [2]func()
		if node.Port, releases[0], err = daemon.ReservePort(); err != nil {
			return nil, err
		}
		if node.Controller, releases[1], err = daemon.ReservePort(); err != nil {
			return nil, err
		}
		n := &KafkaNode{ID: int32(node.ID), Addr: daemon.Address(node.Port)}
		n.spec = daemon.Kafka(software, node, max(o.Nodes, 1))
		n.release = func() { releases[0](); releases[1]() }
		nodes = append(nodes, node)
		k.Nodes = append(k.Nodes, n)
		k.Brokers = append(k.Brokers, n.Addr)
	}
	if err := daemon.NewKafka(ctx, software, nodes, o.Properties); err != nil {
		return nil, err
	}
	if err := env.add(k); err != nil {
		return nil, err
	}
	if err := k.start(ctx); err != nil {
		env.remove(k)
		k.destroy()
		return nil, err
	}
	return k, nil
}

// start starts all nodes at once: none is ready before most of them are.
func (k *KafkaCluster) start(ctx context.Context) error {
	var group errgroup.Group
	for _, node := range k.Nodes {
		group.Go(func() error { return node.start(ctx) })
	}
	return group.Wait()
}

// Start starts all nodes that are stopped, on the same data and ports.
func (k *KafkaCluster) Start(t testing.TB) {
	t.Helper()
	if err := k.start(t.Context()); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

// Stop shuts all nodes down cleanly.
func (k *KafkaCluster) Stop(t testing.TB) {
	t.Helper()
	var group errgroup.Group
	for _, node := range k.Nodes {
		group.Go(node.stop)
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

// Kill ends all nodes as a crash would.
func (k *KafkaCluster) Kill() {
	for _, node := range k.Nodes {
		node.Kill()
	}
}

// Pause freezes all nodes: their connections stay open and are silent.
func (k *KafkaCluster) Pause() {
	for _, node := range k.Nodes {
		node.Pause()
	}
}

// Resume lets paused nodes go on.
func (k *KafkaCluster) Resume() {
	for _, node := range k.Nodes {
		node.Resume()
	}
}

func (k *KafkaCluster) destroy() {
	k.mu.Lock()
	if k.admin != nil {
		k.admin.Close()
	}
	k.mu.Unlock()
	for _, node := range k.Nodes {
		node.destroy()
	}
}

// ClientConfig is a sarama configuration that fits the cluster.
func (k *KafkaCluster) ClientConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.ClientID = "binlogd-testenv"
	return config
}

// Admin is a client for administration; it is closed with the cluster.
func (k *KafkaCluster) Admin(t testing.TB) sarama.ClusterAdmin {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.admin == nil {
		admin, err := sarama.NewClusterAdmin(k.Brokers, k.ClientConfig())
		if err != nil {
			t.Fatalf("testenv: connect to Kafka: %v", err)
		}
		k.admin = admin
	}
	return k.admin
}

// Topic returns a name that no other test has. The topic is not made.
func (k *KafkaCluster) Topic(testing.TB) string { return unique("topic") }

// CreateTopic makes a topic with as many copies as the cluster's nodes allow, at most 3, and
// waits until it can be written to.
func (k *KafkaCluster) CreateTopic(t testing.TB, name string, partitions int32, config map[string]string) {
	t.Helper()
	detail := &sarama.TopicDetail{
		NumPartitions:     partitions,
		ReplicationFactor: int16(min(len(k.Nodes), 3)),
		ConfigEntries:     map[string]*string{},
	}
	for key, value := range config {
		detail.ConfigEntries[key] = &value
	}
	if err := k.Admin(t).CreateTopic(name, detail, false); err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		t.Fatalf("testenv: create topic %s: %v", name, err)
	}
	client := k.client(t)
	defer client.Close()
	for partition := range partitions {
		if _, err := firstOffset(client, name, partition); err != nil {
			t.Fatalf("testenv: wait for %s: %v", topicPartition(name, partition), err)
		}
	}
}

func (k *KafkaCluster) client(t testing.TB) sarama.Client {
	t.Helper()
	config := k.ClientConfig()
	config.Metadata.Retry.Max = 100
	client, err := sarama.NewClient(k.Brokers, config)
	if err != nil {
		t.Fatalf("testenv: connect to Kafka: %v", err)
	}
	return client
}

func topicPartition(topic string, partition int32) string {
	return fmt.Sprintf("%s/%d", topic, partition)
}
