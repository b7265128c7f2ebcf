package checkpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/internal/secure"
)

// DefaultTopic is the topic that checkpoints in Kafka are kept in.
const DefaultTopic = "binlogd-checkpoints"

// KafkaOptions say where in Kafka a checkpoint is kept. Kafka 2.5 or newer is needed.
type KafkaOptions struct {
	Brokers []string `yaml:"brokers"` // host:port of some of the brokers; the others are found
	// Topic is a compacted topic for checkpoints alone, which several pipelines may share;
	// DefaultTopic by default. It is created where it is missing.
	Topic string `yaml:"topic"`
	// ReplicationFactor is for a created topic; 0 means the brokers' default.
	ReplicationFactor int           `yaml:"replication_factor"`
	ClientID          string        `yaml:"client_id"` // binlogd by default
	Timeout           time.Duration `yaml:"timeout"`   // of an answer; 5 s by default
	TLS               *TLSOptions   `yaml:"tls"`
	SASL              *SASLOptions  `yaml:"sasl"`
	// TransactionalID is what the brokers know the pipeline's transactions by; made of the
	// topic and the pipeline's name where it is empty.
	TransactionalID string `yaml:"-"`
}

// TLSOptions are how connections are secured.
type TLSOptions = secure.TLSOptions

// SASLOptions are how binlogd shows the brokers who it is.
type SASLOptions = secure.SASLOptions

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *KafkaOptions) Validate() error {
	if len(o.Brokers) == 0 {
		return errors.New("checkpoint.kafka.brokers: is empty; write the address of at least one broker, for example [127.0.0.1:9092]")
	}
	for _, b := range o.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return fmt.Errorf("checkpoint.kafka.brokers: %q is not an address; write host:port, for example 127.0.0.1:9092", b)
		}
	}
	if o.ReplicationFactor < 0 || o.ReplicationFactor > 32767 {
		return fmt.Errorf("checkpoint.kafka.replication_factor: %d is out of range; write 1 or more, or leave it out for the brokers' default", o.ReplicationFactor)
	}
	if o.Timeout != 0 && o.Timeout < 100*time.Millisecond {
		return fmt.Errorf("checkpoint.kafka.timeout: %s is too short; write at least 100ms, for example 5s", o.Timeout)
	}
	if err := o.SASL.Validate("checkpoint.kafka.sasl"); err != nil {
		return err
	}
	_, err := o.TLS.Config("checkpoint.kafka.tls", "")
	return err
}

func (o *KafkaOptions) topic() string {
	if o.Topic == "" {
		return DefaultTopic
	}
	return o.Topic
}

func (o *KafkaOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

// transactionTimeout is how long the brokers wait for the end of a transaction whose
// producer died. Reading to the end takes as long after such a death.
const transactionTimeout = 10 * time.Second

// config returns how sarama is to behave: it repeats little by itself, since the callers
// of a Store do.
func (o *KafkaOptions) config(pipeline string) (*sarama.Config, error) {
	c := sarama.NewConfig()
	c.Version = sarama.V2_5_0_0
	c.ClientID = "binlogd"
	if o.ClientID != "" {
		c.ClientID = o.ClientID
	}
	c.Net.MaxOpenRequests = 1
	c.Net.DialTimeout, c.Net.WriteTimeout, c.Net.ReadTimeout = o.timeout(), o.timeout(), 2*o.timeout()
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = 3, 100*time.Millisecond
	c.Metadata.AllowAutoTopicCreation = false
	c.Admin.Timeout, c.Admin.Retry.Max = o.timeout(), 1

	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Timeout = o.timeout()
	c.Producer.Retry.Max, c.Producer.Retry.Backoff = 3, 100*time.Millisecond
	c.Producer.Return.Successes, c.Producer.Return.Errors = true, true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Transaction.ID = o.transactionalID(pipeline)
	c.Producer.Transaction.Timeout = transactionTimeout
	c.Producer.Transaction.Retry.Max, c.Producer.Transaction.Retry.Backoff = 50, 20*time.Millisecond

	secure, err := o.TLS.Config("checkpoint.kafka.tls", "")
	if err != nil {
		return nil, err
	}
	c.Net.TLS.Enable, c.Net.TLS.Config = secure != nil, secure
	if secure == nil {
		c.Net.TLS.Config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	o.SASL.Apply(c)
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checkpoint.kafka: %s", strings.TrimPrefix(err.Error(), "kafka: "))
	}
	return c, nil
}

// ChosenTopic is the topic that is used.
func (o *KafkaOptions) ChosenTopic() string { return o.topic() }

// transactionalID is what the brokers know the pipeline's transactions by.
func (o *KafkaOptions) transactionalID(pipeline string) string {
	if o.TransactionalID != "" {
		return o.TransactionalID
	}
	return o.topic() + "/" + pipeline
}
