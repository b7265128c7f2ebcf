package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/mapping"
)

// kafkaTopic is what is known about a topic that events go to.
type kafkaTopic struct {
	name       string
	partitions []*kafkaPartition // by partition number; may hold more than count
	count      int               // how many partitions the topic has
	missing    bool              // to be looked up, and created where it does not exist
	// limit is the size of a batch of records that its partitions are known to accept,
	// in bytes before compression.
	limit int
}

// kafkaTopicWait is how long a topic that was just created may take to get leaders.
const kafkaTopicWait = 5 * time.Second

// lookUp makes sure that the topics of b's unconfirmed events exist and are known.
func (k *Kafka) lookUp(ctx context.Context, b *Batch) error {
	wanted := make(map[string]*mapping.Event)
	last := ""
	for i := range b.Events {
		e := &b.Events[i]
		if b.Confirmed(i) || e.Topic == last {
			continue
		}
		last = e.Topic
		if t := k.topics[e.Topic]; (t == nil || t.missing) && wanted[e.Topic] == nil {
			wanted[e.Topic] = e
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(wanted))
	if err := k.find(ctx, names, wanted); err != nil {
		return err
	}
	for _, name := range names {
		if err := k.learn(name); err != nil {
			return err
		}
	}
	return nil
}

// learn takes a topic's partitions from the client.
func (k *Kafka) learn(name string) error {
	ids, err := k.client.Partitions(name)
	if err != nil {
		return kafkaError(fmt.Errorf("look up topic %s: %w", name, err), name)
	}
	t := k.topics[name]
	if t == nil {
		t = &kafkaTopic{name: name, limit: kafkaBatchLimit}
		k.topics[name] = t
	}
	t.missing = false
	t.setPartitions(len(ids))
	return nil
}

func (t *kafkaTopic) setPartitions(n int) {
	for len(t.partitions) < n {
		t.partitions = append(t.partitions, &kafkaPartition{topic: t, id: int32(len(t.partitions))})
	}
	t.count = n
}

// find refreshes the client's view of topics until all of them have leaders, and creates
// those that do not exist.
func (k *Kafka) find(ctx context.Context, names []string, events map[string]*mapping.Event) error {
	deadline := time.Now().Add(kafkaTopicWait)
	created := false
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := k.client.RefreshMetadata(names...)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sarama.ErrUnknownTopicOrPartition) && !created:
			made, err := k.createMissing(names, events)
			if err != nil {
				return err
			}
			created = made
		case errors.Is(err, sarama.ErrLeaderNotAvailable) || created && errors.Is(err, sarama.ErrUnknownTopicOrPartition):
			if time.Now().After(deadline) {
				return fmt.Errorf("wait for leaders of topics: %w", err)
			}
		default:
			return k.lookUpError(err, events)
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// lookUpError names the event whose topic cannot be used.
func (k *Kafka) lookUpError(err error, events map[string]*mapping.Event) error {
	for name, e := range events {
		if !kafkaTopicName(name) {
			return &PermanentError{
				Event:  e,
				Err:    fmt.Errorf("topic %q: %w", name, sarama.ErrInvalidTopic),
				Remedy: "give the table a `topic:` of at most 249 letters, digits, dots, underscores and hyphens",
			}
		}
	}
	return kafkaError(fmt.Errorf("look up topics: %w", err), "")
}

// kafkaTopicName reports whether Kafka accepts name for a topic
// (org.apache.kafka.common.internals.Topic.validate).
func kafkaTopicName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return false
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// createMissing creates those of the topics that do not exist, and reports whether there
// were any.
func (k *Kafka) createMissing(names []string, events map[string]*mapping.Event) (bool, error) {
	controller, err := k.client.Controller()
	if err != nil {
		return false, kafkaError(fmt.Errorf("find the controller: %w", err), "")
	}
	meta, err := controller.GetMetadata(sarama.NewMetadataRequest(k.config.Version, names))
	if err != nil {
		_ = controller.Close()
		return false, kafkaError(fmt.Errorf("look up topics: %w", err), "")
	}
	details := make(map[string]*sarama.TopicDetail)
	for _, t := range meta.Topics {
		if t.Err == sarama.ErrUnknownTopicOrPartition {
			details[t.Name] = &sarama.TopicDetail{NumPartitions: orDefault(k.options.Partitions), ReplicationFactor: int16(orDefault(k.options.ReplicationFactor))}
		}
	}
	if len(details) == 0 {
		return false, nil
	}
	if !k.options.createTopics() {
		return false, k.missingTopic(slices.Sorted(maps.Keys(details))[0], events)
	}
	response, err := controller.CreateTopics(sarama.NewCreateTopicsRequest(k.config.Version, details, k.options.timeout(), false))
	if err != nil {
		_ = controller.Close()
		return false, kafkaError(fmt.Errorf("create topics: %w", err), "")
	}
	for name, e := range response.TopicErrors {
		if e.Err == sarama.ErrNoError || e.Err == sarama.ErrTopicAlreadyExists {
			continue
		}
		err := fmt.Errorf("create topic %s: %w", name, e.Err)
		if e.ErrMsg != nil {
			err = fmt.Errorf("create topic %s: %s: %w", name, *e.ErrMsg, e.Err)
		}
		return false, kafkaError(err, name)
	}
	k.logger.Info("created topics", "topics", slices.Sorted(maps.Keys(details)))
	return true, nil
}

// orDefault is n, or the number that asks for the brokers' default.
func orDefault(n int) int32 {
	if n == 0 {
		return -1
	}
	return int32(n)
}

func (k *Kafka) missingTopic(name string, events map[string]*mapping.Event) error {
	return &PermanentError{
		Event: events[name],
		Err:   fmt.Errorf("topic %s does not exist, and publish.kafka.create_topics is false", name),
		Remedy: fmt.Sprintf("create it: kafka-topics.sh --bootstrap-server %s --create --topic %s, or set publish.kafka.create_topics: true",
			k.options.Brokers[0], name),
	}
}
