package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"
)

// Kafka publishes into Kafka topics. Durable means acknowledged by all in-sync replicas
// (acks=all). A record has the event's key, its payload as value, the CloudEvents
// attributes as headers and the time of the commit as timestamp. Keys choose partitions
// as the Java client's default partitioner does.
//
// It sends its own produce requests over sarama's connections, instead of using sarama's
// AsyncProducer, for what that one does not offer: after an outage of any length a
// request is repeated with the sequence numbers that it had at first, so that the broker
// recognises what it has already (AsyncProducer gives up after a number of attempts and
// begins a new sequence, which doubles records); the end of a context breaks off what is
// under way; and a record costs neither channels nor allocations of its own. Sequence
// numbers are those of the idempotent producer, KIP-98.
type Kafka struct {
	options KafkaOptions
	logger  *slog.Logger
	conns   *connections
	config  *sarama.Config
	client  sarama.Client

	topics      map[string]*kafkaTopic
	newest      producerID // of the partitions that are used next
	partitioner sarama.Partitioner
	keyed       sarama.ProducerMessage // what partitioner is asked about
	encoder     kafkaEncoder
	answers     chan kafkaAnswer

	transaction *kafkaTransaction // nil unless publish.kafka.exactly_once is set

	batch *Batch            // what touched partitions hold events of; nil after a success
	used  []*kafkaPartition // partitions with events of batch, in order of appearance
}

// producerID is who a sequence of records comes from. The zero value is nobody.
type producerID struct {
	id    int64
	epoch int16
	known bool
}

// OpenKafka validates o and returns a sink that has not contacted any broker yet.
func OpenKafka(o KafkaOptions, logger *slog.Logger) (*Kafka, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	conns := newConnections(kafkaDialTimeout)
	config, err := o.config(conns)
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient(o.Brokers, config)
	if err != nil {
		return nil, fmt.Errorf("open Kafka client: %w", err)
	}
	k := &Kafka{
		options:     o,
		logger:      logger,
		conns:       conns,
		config:      config,
		client:      client,
		topics:      make(map[string]*kafkaTopic),
		partitioner: sarama.NewMurmur2Partitioner(""),
		encoder:     newKafkaEncoder(kafkaCodecs[o.Compression]),
	}
	if o.ExactlyOnce {
		k.transaction = &kafkaTransaction{id: o.TransactionalID}
		k.encoder.transactional = true
	}
	return k, nil
}

// Publish sends the unconfirmed events of b and returns when all are acknowledged; with
// publish.kafka.exactly_once, in one transaction that is committed. Called
// again with the same b after a failure, it repeats requests whose answers are missing
// exactly as they were; a broker that has them already says so and does not write them
// twice.
func (k *Kafka) Publish(ctx context.Context, b *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.transaction != nil {
		return k.publishTransaction(ctx, b)
	}
	defer k.conns.watch(ctx)()
	err := k.publish(ctx, b)
	if err != nil && ctx.Err() != nil && !permanent(err) {
		return fmt.Errorf("publish to Kafka: %w", context.Cause(ctx))
	}
	return err
}

// kafkaQuickAttempts is how often a batch is tried before the caller is told, where the
// cause is not an outage but something that the next attempt sees differently: a leader
// that has moved, a batch of records that has to be split, a sequence to be begun anew, a
// connection that the broker closed because it was idle.
const kafkaQuickAttempts = 8

func (k *Kafka) publish(ctx context.Context, b *Batch) error {
	for attempt := 1; ; attempt++ {
		if k.batch != b || k.stale() {
			if err := k.assign(ctx, b); err != nil {
				return err
			}
		}
		quick, err := k.deliver(ctx, b, attempt == 1)
		if err == nil {
			k.batch = nil
			return nil
		}
		if !quick || attempt == kafkaQuickAttempts || ctx.Err() != nil {
			return err
		}
	}
}

// stale reports whether a topic of the batch has disappeared since it was assigned.
func (k *Kafka) stale() bool {
	for _, p := range k.used {
		if p.topic.missing {
			return true
		}
	}
	return false
}

// kafkaLoadPause is how often a broker that has only just started is asked again.
const kafkaLoadPause = 100 * time.Millisecond

// Ping connects to a broker, asks for the others, and for the right to write. A broker that is still loading what it
// needs for that is waited for.
func (k *Kafka) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, kafkaDialTimeout, errors.New("no answer within 5 s"))
	defer cancel()
	defer k.conns.watch(ctx)()

	var failures error
	for _, address := range k.options.Brokers {
		err := k.ping(ctx, address)
		if err == nil || permanent(err) {
			return err
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		failures = errors.Join(failures, fmt.Errorf("%s: %w", address, err))
	}
	return fmt.Errorf("reach Kafka at %w; check publish.kafka.brokers, and that the broker runs and lets this machine in", failures)
}

func (k *Kafka) ping(ctx context.Context, address string) error {
	first := sarama.NewBroker(address)
	if err := connect(first, k.config); err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	request := sarama.NewMetadataRequest(k.config.Version, []string{"__consumer_offsets"})
	meta, err := first.GetMetadata(request)
	if err != nil {
		return kafkaError(fmt.Errorf("ask for the brokers: %w", err), "")
	}
	// The addresses that the brokers give are the ones that publishing uses.
	var unreachable error
	for _, b := range meta.Brokers {
		err := connect(b, k.config)
		if err == nil {
			defer func() { _ = b.Close() }()
			_, err := initProducerID(b)
			for errors.Is(err, sarama.ErrOffsetsLoadInProgress) && wait(ctx, kafkaLoadPause) == nil {
				_, err = initProducerID(b)
			}
			return err
		}
		unreachable = errors.Join(unreachable, fmt.Errorf("it names %s as the address of broker %d, which cannot be reached (set advertised.listeners of the broker to an address that this machine reaches): %w", b.Addr(), b.ID(), err))
	}
	return unreachable
}

// connect opens a connection to b and waits for it.
func connect(b *sarama.Broker, config *sarama.Config) error {
	if err := b.Open(config); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
		return err
	}
	connected, err := b.Connected()
	if err == nil && !connected {
		err = sarama.ErrNotConnected
	}
	return kafkaError(err, "")
}

// Close gives up the connections, and aborts a transaction that is open.
func (k *Kafka) Close() error {
	k.abort()
	for _, b := range k.client.Brokers() {
		_ = b.Close() // joins the goroutine that reads from it; an error means that it is closed
	}
	if err := k.client.Close(); err != nil {
		return fmt.Errorf("close Kafka client: %w", err)
	}
	return nil
}

// producer returns an id that a partition which gave up old has not used.
func (k *Kafka) producer(old producerID) (producerID, error) {
	if k.transaction != nil {
		return k.transaction.producer, nil
	}
	if k.newest.known && k.newest != old {
		return k.newest, nil
	}
	broker := k.client.LeastLoadedBroker()
	if broker == nil {
		return producerID{}, sarama.ErrOutOfBrokers
	}
	fresh, err := initProducerID(broker)
	if err != nil {
		return producerID{}, err
	}
	k.newest = fresh
	return fresh, nil
}

func initProducerID(b *sarama.Broker) (producerID, error) {
	response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 2, TransactionTimeout: time.Minute})
	if err == nil && response.Err != sarama.ErrNoError {
		err = response.Err
	}
	if err != nil {
		return producerID{}, kafkaError(fmt.Errorf("get a producer id from %s: %w", b.Addr(), err), "")
	}
	return producerID{response.ProducerID, response.ProducerEpoch, true}, nil
}
