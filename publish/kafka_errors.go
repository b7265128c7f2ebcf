package publish

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/mapping"
)

// kafkaRemedies are the refusals that a repetition does not mend, with what to do.
var kafkaRemedies = []struct {
	err    sarama.KError
	remedy string
}{
	{sarama.ErrTopicAuthorizationFailed, "let the user of publish.kafka.sasl (or of the client certificate) write to, describe and, unless publish.kafka.create_topics is false, create the topic: kafka-acls.sh --add --allow-principal User:NAME --producer --topic TOPIC"},
	{sarama.ErrClusterAuthorizationFailed, "let the user create topics (or set publish.kafka.create_topics: false) and, before Kafka 2.8, write idempotently: kafka-acls.sh --add --allow-principal User:NAME --operation IdempotentWrite --cluster"},
	{sarama.ErrTransactionalIDAuthorizationFailed, "let the user publish in transactions: kafka-acls.sh --add --allow-principal User:NAME --operation Write --operation Describe --transactional-id ID; ID begins with publish.kafka.transactional_id_prefix"},
	{sarama.ErrInvalidTransactionTimeout, "lower publish.kafka.transaction_timeout to what transaction.max.timeout.ms of the brokers allows, or raise that"},
	{sarama.ErrSASLAuthenticationFailed, "check publish.kafka.sasl: mechanism, user and password"},
	{sarama.ErrUnsupportedSASLMechanism, "write a mechanism that the broker has enabled in publish.kafka.sasl.mechanism"},
	{sarama.ErrIllegalSASLState, "check that the listener at publish.kafka.brokers is one with SASL"},
	{sarama.ErrInvalidTopic, "give the table a `topic:` of at most 249 letters, digits, dots, underscores and hyphens"},
	{sarama.ErrInvalidTimestamp, "the clock of the MySQL server or of the broker is wrong, or the topic's message.timestamp.before.max.ms or message.timestamp.after.max.ms is too strict"},
	{sarama.ErrInvalidRecord, "the topic's settings refuse the record; a compacted topic, for example, needs a key: give the table a `key:`"},
	{sarama.ErrUnsupportedCompressionType, "choose another publish.kafka.compression"},
	{sarama.ErrUnsupportedForMessageFormat, "raise the topic's message format to that of Kafka 0.11 or newer"},
	{sarama.ErrUnsupportedVersion, "Kafka 2.4 or newer is needed"},
	{sarama.ErrPolicyViolation, "the brokers' create.topic.policy.class.name refuses the topic: set publish.kafka.partitions and publish.kafka.replication_factor to what it allows, or create the topic by hand"},
	{sarama.ErrInvalidPartitions, "correct publish.kafka.partitions"},
	{sarama.ErrInvalidConfig, "correct the brokers' defaults for topics, or create the topic by hand"},
}

// kafkaError marks errors that repetition does not mend and adds the remedy. topic may be
// empty. A nil error stays nil.
func kafkaError(err error, topic string) error {
	if err == nil || permanent(err) {
		return err
	}
	for _, r := range kafkaRemedies {
		if errors.Is(err, r.err) {
			return &PermanentError{Err: err, Remedy: r.remedy}
		}
	}
	if errors.Is(err, sarama.ErrInvalidReplicationFactor) {
		// Brokers that are away now may come back, so it is worth waiting.
		return fmt.Errorf("%w; publish.kafka.replication_factor (or default.replication.factor of the brokers) is more than the brokers that run: lower it, or start more, or create topic %s by hand", err, topic)
	}
	if _, ok := errors.AsType[sarama.ConfigurationError](err); ok {
		return &PermanentError{Err: err, Remedy: "correct publish.kafka"}
	}
	return err
}

// kafkaEventError is kafkaError for the answer to a chunk that begins with e.
func kafkaEventError(err error, topic string, e *mapping.Event) error {
	err = kafkaError(err, topic)
	if p := (*PermanentError)(nil); errors.As(err, &p) {
		p.Event = e
	}
	return err
}

func kafkaSizeRemedy(topic string, size int) string {
	return fmt.Sprintf("let the topic take it: kafka-configs.sh --alter --topic %s --add-config max.message.bytes=%d (and the consumers' fetch sizes, and replica.fetch.max.bytes of the brokers), or raise message.max.bytes of the brokers", topic, size+size/16+1024)
}
