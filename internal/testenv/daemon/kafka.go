package daemon

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// KafkaNode is one node of a Kafka cluster on this machine: broker and controller in
// one process, without ZooKeeper.
type KafkaNode struct {
	ID         int // from 1
	Port       int // for clients
	Controller int // port for the other nodes' controllers
	Dir        string
}

// NewKafka prepares the folders of a new cluster of nodes. Properties are further lines of
// every node's server.properties and override the defaults.
func NewKafka(ctx context.Context, kafka fetch.Kafka, nodes []KafkaNode, properties map[string]string) error {
	var voters []string
	for _, node := range nodes {
		voters = append(voters, fmt.Sprintf("%d@%s", node.ID, Address(node.Controller)))
	}
	cluster := kafkaUUID()
	for _, node := range nodes {
		if err := os.MkdirAll(node.Dir, 0o755); err != nil {
			return fmt.Errorf("make the folder of a Kafka node: %w", err)
		}
		file := filepath.Join(node.Dir, "server.properties")
		text := serverProperties(node, strings.Join(voters, ","), min(len(nodes), 3), properties)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the configuration of a Kafka node: %w", err)
		}
		logs := filepath.Join(node.Dir, "logs")
		if err := run(ctx, "cp", "--archive", kafka.Template, logs); err != nil {
			return fmt.Errorf("copy the log folder template: %w", err)
		}
		meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", cluster, node.ID, kafkaUUID())
		if err := os.WriteFile(filepath.Join(logs, "meta.properties"), []byte(meta), 0o644); err != nil {
			return fmt.Errorf("write the identity of a Kafka node: %w", err)
		}
	}
	return nil
}

// kafkaUUID returns a random id in Kafka's spelling, 22 characters.
func kafkaUUID() string {
	id := make([]byte, 16)
	rand.Read(id)
	id[0] &= 0x7f // a leading '-' would be taken for an option
	return base64.RawURLEncoding.EncodeToString(id)
}

func serverProperties(node KafkaNode, voters string, replicas int, more map[string]string) string {
	copies := strconv.Itoa(replicas)
	quorum := strconv.Itoa(replicas/2 + 1) // of the copies, for a write to count
	properties := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(node.ID),
		"controller.quorum.voters":       voters,
		"listeners":                      "PLAINTEXT://" + Address(node.Port) + ",CONTROLLER://" + Address(node.Controller),
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names":      "CONTROLLER",
		"log.dirs":                       filepath.Join(node.Dir, "logs"),

		"default.replication.factor":               copies,
		"min.insync.replicas":                      quorum,
		"offsets.topic.replication.factor":         copies,
		"transaction.state.log.replication.factor": copies,
		"transaction.state.log.min.isr":            quorum,

		// Made on first use: few partitions are made faster.
		"offsets.topic.num.partitions":         "4",
		"transaction.state.log.num.partitions": "4",
		"group.initial.rebalance.delay.ms":     "0",
	}
	maps.Copy(properties, more)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&text, "%s=%s\n", key, properties[key])
	}
	return text.String()
}

// Kafka is the Spec of one node of a cluster of count nodes, which NewKafka prepared.
func Kafka(kafka fetch.Kafka, node KafkaNode, count int) Spec {
	heap := "-Xmx1g"
	if count > 1 {
		heap = "-Xmx512m"
	}
	words := kafka.Command([]string{
		heap, "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	},
		"kafka.Kafka", filepath.Join(node.Dir, "server.properties"))
	return Spec{
		Name:       fmt.Sprintf("kafka node %d on port %d", node.ID, node.Port),
		Command:    words,
		Dir:        node.Dir,
		Ready:      func(context.Context) error { return pingKafka(node) },
		StartLimit: 2 * time.Minute,
		StopLimit:  time.Minute,
	}
}

// pingKafka returns nil once a node knows itself as a part of a cluster with a controller.
func pingKafka(node KafkaNode) error {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 0
	config.Net.DialTimeout = time.Second
	config.Net.ReadTimeout = 2 * time.Second
	client, err := sarama.NewClient([]string{Address(node.Port)}, config)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Controller(); err != nil {
		return err
	}
	for _, broker := range client.Brokers() {
		if broker.ID() == int32(node.ID) {
			return nil
		}
	}
	return errors.New("the cluster does not count the node in yet")
}
