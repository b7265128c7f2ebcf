package publish

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

// KafkaOptions are the options of the Kafka sink. Kafka 2.4 or newer is needed.
type KafkaOptions struct {
	Brokers  []string `yaml:"brokers"`   // host:port of some of the brokers; the others are found
	ClientID string   `yaml:"client_id"` // names binlogd in the brokers' logs and quotas; binlogd by default
	// Compression is none, gzip, snappy, lz4 (the default) or zstd.
	Compression string `yaml:"compression"`
	// CreateTopics says whether missing topics are created; true by default.
	CreateTopics *bool `yaml:"create_topics"`
	// Partitions and ReplicationFactor are for created topics; 0 means the brokers' defaults.
	Partitions        int `yaml:"partitions"`
	ReplicationFactor int `yaml:"replication_factor"`
	// Timeout is how long a broker may take to replicate and acknowledge; 10 s by default.
	Timeout time.Duration `yaml:"timeout"`
	TLS     *TLSOptions   `yaml:"tls"`
	SASL    *SASLOptions  `yaml:"sasl"`
	// ExactlyOnce publishes events together with the checkpoint, in Kafka's transactions.
	// The keys below belong to it; Kafka 2.5 or newer is needed.
	ExactlyOnce bool `yaml:"exactly_once"`
	// TransactionalIDPrefix stands before the pipeline's name in what the brokers know its
	// transactions by (transactional.id); the checkpoint's topic and a slash by default.
	TransactionalIDPrefix string `yaml:"transactional_id_prefix"`
	TransactionalID       string `yaml:"-"` // the whole; two processes that have it fence each other
	// TransactionTimeout is how long a transaction may stay open before the brokers abort
	// it; 60 s by default.
	TransactionTimeout time.Duration `yaml:"transaction_timeout"`
	// TransactionEvents and TransactionLinger close a transaction: this many events, 20,000
	// by default, or this long after its first one, 5 ms by default.
	TransactionEvents int           `yaml:"transaction_events"`
	TransactionLinger time.Duration `yaml:"transaction_linger"`
}

// TLSOptions are how connections are secured.
type TLSOptions = secure.TLSOptions

// SASLOptions are how binlogd shows the brokers who it is.
type SASLOptions = secure.SASLOptions

// kafkaDialTimeout is also how long Ping may take, whatever it waits for.
const kafkaDialTimeout = 5 * time.Second

var kafkaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *KafkaOptions) Validate() error {
	if len(o.Brokers) == 0 {
		return errors.New("publish.kafka.brokers: is empty; write the address of at least one broker, for example [127.0.0.1:9092]")
	}
	for _, b := range o.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return fmt.Errorf("publish.kafka.brokers: %q is not an address; write host:port, for example 127.0.0.1:9092", b)
		}
	}
	if _, ok := kafkaCodecs[o.Compression]; !ok {
		return fmt.Errorf("publish.kafka.compression: %q is not known; write none, gzip, snappy, lz4 or zstd", o.Compression)
	}
	if o.Partitions < 0 {
		return fmt.Errorf("publish.kafka.partitions: %d is negative; write 1 or more, or leave it out for the brokers' default", o.Partitions)
	}
	if o.ReplicationFactor < 0 || o.ReplicationFactor > 32767 {
		return fmt.Errorf("publish.kafka.replication_factor: %d is out of range; write 1 or more, or leave it out for the brokers' default", o.ReplicationFactor)
	}
	if o.Timeout != 0 && o.Timeout < 100*time.Millisecond {
		return fmt.Errorf("publish.kafka.timeout: %s is too short to replicate anything; write at least 100ms, for example 10s", o.Timeout)
	}
	if err := o.validateTransactions(); err != nil {
		return err
	}
	if err := o.SASL.Validate("publish.kafka.sasl"); err != nil {
		return err
	}
	_, err := o.TLS.Config("publish.kafka.tls", "")
	return err
}

// validateTransactions looks at the keys that belong to exactly_once.
func (o *KafkaOptions) validateTransactions() error {
	for key, set := range map[string]bool{
		"transactional_id_prefix": o.TransactionalIDPrefix != "", "transaction_timeout": o.TransactionTimeout != 0,
		"transaction_events": o.TransactionEvents != 0, "transaction_linger": o.TransactionLinger != 0,
	} {
		if set && !o.ExactlyOnce {
			return fmt.Errorf("publish.kafka.%s: belongs to exactly_once, which is not set; write exactly_once: true, or leave it out", key)
		}
	}
	switch {
	case len(o.TransactionalIDPrefix) > 200:
		return errors.New("publish.kafka.transactional_id_prefix: is too long; write at most 200 characters, or leave it out")
	case o.TransactionTimeout != 0 && o.TransactionTimeout < time.Second:
		return fmt.Errorf("publish.kafka.transaction_timeout: %s is too short; write at least 1s, for example 60s", o.TransactionTimeout)
	case o.TransactionEvents < 0:
		return fmt.Errorf("publish.kafka.transaction_events: %d is negative; write how many events end a transaction, or leave it out for %d", o.TransactionEvents, defaultTransactionEvents)
	case o.TransactionLinger < 0 || o.TransactionLinger > time.Minute:
		return fmt.Errorf("publish.kafka.transaction_linger: %s is out of range; write a time up to 1m, or leave it out for %s", o.TransactionLinger, defaultTransactionLinger)
	}
	return nil
}

const (
	defaultTransactionEvents  = 20_000
	defaultTransactionLinger  = 5 * time.Millisecond
	defaultTransactionTimeout = time.Minute
)

func (o *KafkaOptions) transactionTimeout() time.Duration {
	if o.TransactionTimeout == 0 {
		return defaultTransactionTimeout
	}
	return o.TransactionTimeout
}

// TransactionLimits say when a transaction is closed: after so many events, or so long
// after the first one.
func (o *KafkaOptions) TransactionLimits() (events int, linger time.Duration) {
	events, linger = o.TransactionEvents, o.TransactionLinger
	if events == 0 {
		events = defaultTransactionEvents
	}
	if linger == 0 {
		linger = defaultTransactionLinger
	}
	return events, linger
}

func (o *KafkaOptions) createTopics() bool { return o.CreateTopics == nil || *o.CreateTopics }

func (o *KafkaOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return 10 * time.Second
	}
	return o.Timeout
}

// config returns how sarama is to behave. Only its connections, metadata and requests are
// used, see Kafka, so nothing of its Producer section matters.
func (o *KafkaOptions) config(conns *connections) (*sarama.Config, error) {
	c := sarama.NewConfig()
	c.Version = sarama.V2_4_0_0 // enough for everything that is sent
	c.ClientID = "binlogd"
	if o.ClientID != "" {
		c.ClientID = o.ClientID
	}
	c.MetricRegistry = noMetrics{}

	c.Net.Proxy.Enable = true
	c.Net.Proxy.Dialer = conns
	c.Net.MaxOpenRequests = kafkaMaxInFlight
	c.Net.DialTimeout = kafkaDialTimeout
	c.Net.WriteTimeout = o.timeout()
	// The broker answers within the timeout; when it does not, the connection is dead.
	c.Net.ReadTimeout = o.timeout() + 5*time.Second

	// Retries belong to the decorator, so that one place waits and tells.
	c.Metadata.Retry.Max = 0
	c.Metadata.Full = false
	c.Metadata.AllowAutoTopicCreation = false

	tlsConfig, err := o.TLS.Config("publish.kafka.tls", "")
	if err != nil {
		return nil, err
	}
	c.Net.TLS.Enable, c.Net.TLS.Config = tlsConfig != nil, tlsConfig
	if tlsConfig == nil {
		c.Net.TLS.Config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	o.SASL.Apply(c)
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("publish.kafka: %s", strings.TrimPrefix(err.Error(), "kafka: "))
	}
	return c, nil
}
