package checkpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
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

// SASLOptions are how binlogd shows the brokers who it is.
type SASLOptions struct {
	Mechanism string `yaml:"mechanism"` // PLAIN (the default), SCRAM-SHA-256 or SCRAM-SHA-512
	User      string `yaml:"user"`
	Password  string `yaml:"password"`
}

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
	if o.SASL != nil {
		switch o.SASL.Mechanism {
		case "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		default:
			return fmt.Errorf("checkpoint.kafka.sasl.mechanism: %q is not offered; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", o.SASL.Mechanism)
		}
		if o.SASL.User == "" {
			return errors.New("checkpoint.kafka.sasl.user: is missing; write the user that the brokers know")
		}
	}
	_, err := o.TLS.config("checkpoint.kafka.tls", "")
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

	secure, err := o.TLS.config("checkpoint.kafka.tls", "")
	if err != nil {
		return nil, err
	}
	c.Net.TLS.Enable, c.Net.TLS.Config = secure != nil, secure
	if secure == nil {
		c.Net.TLS.Config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if o.SASL != nil {
		o.SASL.apply(c)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checkpoint.kafka: %s", strings.TrimPrefix(err.Error(), "kafka: "))
	}
	return c, nil
}

func (o *SASLOptions) apply(c *sarama.Config) {
	c.Net.SASL.Enable = true
	c.Net.SASL.User, c.Net.SASL.Password = o.User, o.Password
	switch o.Mechanism {
	case "SCRAM-SHA-256":
		c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA256
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case "SCRAM-SHA-512":
		c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	default:
		c.Net.SASL.Mechanism = sarama.SASLTypePlaintext
	}
}

// scramClient is one conversation of RFC 5802 in the shape that sarama asks for.
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (s *scramClient) Begin(user, password, authzID string) error {
	client, err := s.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	s.conversation = client.NewConversation()
	return nil
}

func (s *scramClient) Step(challenge string) (string, error) { return s.conversation.Step(challenge) }

func (s *scramClient) Done() bool { return s.conversation.Done() }

// ChosenTopic is the topic that is used.
func (o *KafkaOptions) ChosenTopic() string { return o.topic() }

// transactionalID is what the brokers know the pipeline's transactions by.
func (o *KafkaOptions) transactionalID(pipeline string) string {
	if o.TransactionalID != "" {
		return o.TransactionalID
	}
	return o.topic() + "/" + pipeline
}
