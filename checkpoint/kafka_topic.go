package checkpoint

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// errNotCompacted says that the topic may throw checkpoints away.
var errNotCompacted = errors.New("the topic is not compacted, so that Kafka would delete checkpoints with age")

// How a created topic keeps what is in it: only the newest value of each key, and little
// beside, so that it is read fast.
const (
	topicSegmentBytes = 4 << 20
	topicDirtyRatio   = "0.1"
)

// create makes the topic where it is missing, and looks at one that is there.
func (b *kafkaBackend) create() error {
	client, err := b.connect()
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	replication := int16(b.options.ReplicationFactor)
	if replication == 0 {
		replication = -1
	}
	compact, segment, ratio := "compact", fmt.Sprint(topicSegmentBytes), topicDirtyRatio
	err = admin.CreateTopic(b.options.topic(), &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: replication, ConfigEntries: map[string]*string{
		"cleanup.policy": &compact, "segment.bytes": &segment, "min.cleanable.dirty.ratio": &ratio,
	}}, false)
	switch {
	case err == nil:
		return client.RefreshMetadata(b.options.topic())
	case !errors.Is(err, sarama.ErrTopicAlreadyExists) && !errors.Is(err, sarama.ErrTopicAuthorizationFailed) && !errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return fmt.Errorf("create topic %s: %w", b.options.topic(), err)
	}
	settings, err := b.settings(admin)
	if err != nil {
		return err
	}
	return compacted(settings)
}

func compacted(settings map[string]string) error {
	if policy, known := settings["cleanup.policy"]; known && policy != "compact" {
		return fmt.Errorf("%w (cleanup.policy=%s)", errNotCompacted, policy)
	}
	return nil
}

// inspect gives the settings of the topic and how many copies it has; nothing, and 0, where it
// is not there yet.
func (b *kafkaBackend) inspect() (settings map[string]string, copies int, err error) {
	client, err := b.connect()
	if err != nil {
		return nil, 0, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, 0, err
	}
	topics, err := admin.DescribeTopics([]string{b.options.topic()})
	if err != nil {
		return nil, 0, err
	}
	for _, t := range topics {
		if errors.Is(t.Err, sarama.ErrUnknownTopicOrPartition) {
			return nil, 0, nil
		}
		if !errors.Is(t.Err, sarama.ErrNoError) {
			return nil, 0, fmt.Errorf("look at topic %s: %w", b.options.topic(), t.Err)
		}
		if len(t.Partitions) > 0 {
			copies = len(t.Partitions[0].Replicas)
		}
	}
	if settings, err = b.settings(admin); err != nil {
		return nil, 0, err
	}
	return settings, copies, compacted(settings)
}

// settings are those of the topic; empty where the account may not see them.
func (b *kafkaBackend) settings(admin sarama.ClusterAdmin) (map[string]string, error) {
	results, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: b.options.topic()}}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at the settings of topic %s: %w", b.options.topic(), err)
	}
	settings := map[string]string{}
	for _, r := range results {
		switch r.ErrorCode {
		case sarama.ErrNoError:
		case sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed:
			return nil, nil
		default:
			return nil, fmt.Errorf("look at the settings of topic %s: %w", b.options.topic(), r.ErrorCode)
		}
		for _, e := range r.Configs {
			settings[e.Name] = e.Value
		}
	}
	return settings, nil
}
