package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// kafkaBackend keeps checkpoints in a compacted topic, under keys of the pipeline's name:
//
//	NAME              the record, as encode makes it
//	NAME/lease        the lease, as JSON
//	NAME/history/17   a part of the history
//	NAME/schema/3     a part of the schema history
//
// What is written at once is one transaction. Its producer, which has a transactional id for
// the pipeline, is fenced by the brokers as soon as another process begins to write under that
// id (KIP-98). Who may begin is up to the lease in the topic: a process that was fenced looks
// whether the lease is still its own, and only then begins anew.
type kafkaBackend struct {
	options  KafkaOptions
	name     string
	config   *sarama.Config
	client   sarama.Client // nil until something is asked
	producer kafkaProducer // nil until something is written, and after each error
	writer   KafkaWriter   // whom producers are of; nil for ones of its own
	base     []byte        // the record that was read or written last
	log      kafkaLog
	lease    lease // that was claimed
}

func newKafka(o KafkaOptions, name string) (*kafkaBackend, error) {
	config, err := o.config(name)
	if err != nil {
		return nil, err
	}
	return &kafkaBackend{options: o, name: name, config: config, log: kafkaLog{topic: o.topic(), name: name}}, nil
}

func (b *kafkaBackend) place() string {
	return fmt.Sprintf("kafka://%s/%s/%s", b.options.Brokers[0], b.options.topic(), b.name)
}

func (b *kafkaBackend) leaseKey() string { return b.name + "/lease" }

func (b *kafkaBackend) partKey(s shelf, number uint64) string {
	return fmt.Sprintf("%s/%s/%d", b.name, s, number)
}

// connect gives the client, for which nothing needs to be there.
func (b *kafkaBackend) connect() (sarama.Client, error) {
	if b.client == nil {
		client, err := sarama.NewClient(b.options.Brokers, b.config)
		if err != nil {
			return nil, err
		}
		b.client = client
	}
	return b.client, nil
}

// read brings the log up to date. A topic that is not there is empty.
func (b *kafkaBackend) read(ctx context.Context) error {
	client, err := b.connect()
	if err != nil {
		return err
	}
	err = b.log.readToEnd(ctx, client)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		b.log.next, b.log.cells = 0, nil
		return nil
	}
	if err != nil {
		b.disconnect() // the next attempt begins with fresh connections
	}
	return err
}

func (b *kafkaBackend) record(ctx context.Context) ([]byte, error) {
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	b.base = b.log.cells[b.name]
	return b.base, nil
}

func (b *kafkaBackend) parts(ctx context.Context, s shelf) ([]part, error) {
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	var parts []part
	for key, value := range b.log.cells {
		digits, found := strings.CutPrefix(key, b.name+"/"+string(s)+"/")
		if !found {
			continue
		}
		number, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("topic %s has a key %q, which ends with no number", b.options.topic(), key)
		}
		parts = append(parts, part{Key: number, Data: value})
	}
	return parts, nil
}

// holder is the lease that is in the topic; nil where there is none.
func (b *kafkaBackend) holder(ctx context.Context) (*lease, error) {
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	content := b.log.cells[b.leaseKey()]
	if content == nil {
		return nil, nil //nolint:nilnil // nobody holds it
	}
	l := &lease{}
	if err := json.Unmarshal(content, l); err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	return l, nil
}

// claim goes by no clock: a lease has run out once it was not renewed while this process
// waited for as long.
func (b *kafkaBackend) claim(ctx context.Context, mine lease, waited bool) (theirs *lease, err error) {
	if err := b.create(); err != nil {
		return nil, err
	}
	b.lease = mine
	before, err := b.holder(ctx)
	if err != nil || before != nil && before.Token != mine.Token && !waited {
		return before, err
	}
	// From here on, whoever else writes is fenced, or will fence this process.
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	now, err := b.holder(ctx)
	if err != nil {
		return nil, err
	}
	if now != nil && now.Token != mine.Token && (before == nil || *now != *before) {
		b.end()
		return now, nil
	}
	err = b.renew(ctx)
	if fenced, ok := errors.AsType[*FencedError](err); ok { // another process was a moment faster
		if theirs, err = b.holder(ctx); err == nil && theirs == nil {
			return &lease{Holder: fenced.Holder, Length: mine.Length}, nil
		}
		return theirs, err
	}
	return nil, err
}

func (b *kafkaBackend) renew(ctx context.Context) error {
	b.lease.Renewals++
	content, err := json.Marshal(b.lease)
	if err != nil {
		return err
	}
	claiming := b.lease.Renewals == 1
	return b.write(ctx, claiming, map[string][]byte{b.leaseKey(): content})
}

func (b *kafkaBackend) release(ctx context.Context) error {
	err := b.write(ctx, false, map[string][]byte{b.leaseKey(): nil})
	if Elsewhere(err) {
		return nil
	}
	return err
}

func (b *kafkaBackend) commit(ctx context.Context, w batch) error {
	cells := map[string][]byte{}
	if w.record != nil {
		cells[b.name] = w.record
	}
	for s, c := range map[shelf]change{historyShelf: w.history, schemaShelf: w.schema} {
		for _, number := range c.Drop {
			cells[b.partKey(s, number)] = nil
		}
		for _, p := range c.Put {
			cells[b.partKey(s, p.Key)] = p.Data
		}
	}
	return b.write(ctx, false, cells)
}

// write writes cells in one transaction; nil is a tombstone. Without a producer, which errors
// take away, it first makes sure that the lease is still its own, and once more when no other
// can write any more. While it claims, the lease is not yet its own.
func (b *kafkaBackend) write(ctx context.Context, claiming bool, cells map[string][]byte) error {
	record, saves := cells[b.name]
	for attempt := 1; ; attempt++ {
		if b.producer == nil {
			if err := b.resume(ctx, claiming); err != nil {
				return err
			}
			if saves && !bytes.Equal(b.log.cells[b.name], b.base) {
				b.end()
				return errMovedOn
			}
		}
		err := b.producer.transact(ctx, cells, saves)
		if err == nil {
			if saves {
				b.base = record
			}
			for key, value := range cells {
				if b.log.cells != nil {
					b.log.set(key, value)
				}
			}
			return nil
		}
		b.end()
		if !producerFenced(err) || attempt == 2 {
			return err
		}
	}
}

func (b *kafkaBackend) resume(ctx context.Context, claiming bool) error {
	for _, step := range []func(context.Context) error{func(context.Context) error { return nil }, b.begin} {
		if err := step(ctx); err != nil {
			return err
		}
		theirs, err := b.holder(ctx)
		if err != nil {
			return err
		}
		if theirs == nil && claiming {
			continue
		}
		if theirs == nil || theirs.Token != b.lease.Token {
			b.end()
			fenced := &FencedError{}
			if theirs != nil {
				fenced.Holder = theirs.Holder
			}
			return fenced
		}
	}
	return nil
}

// begin fences whoever wrote before, and ends what that one left unfinished.
func (b *kafkaBackend) begin(ctx context.Context) error {
	b.end()
	if b.writer != nil {
		if err := b.writer.Begin(ctx); err != nil {
			return err
		}
		b.producer = &togetherProducer{writer: b.writer, topic: b.options.topic()}
		return nil
	}
	client, err := b.connect()
	if err != nil {
		return err
	}
	own, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return fmt.Errorf("begin to write under the transactional id %s: %w", b.config.Producer.Transaction.ID, err)
	}
	b.producer = &ownProducer{sync: own, topic: b.options.topic()}
	return nil
}

// end gives the producer up.
func (b *kafkaBackend) end() {
	if b.producer != nil {
		b.producer.end() // what it had under way is ended by the next one
		b.producer = nil
	}
}

// kafkaProducer writes cells in transactions, until it is fenced or fails.
type kafkaProducer interface {
	// transact writes cells in one transaction; nil is a tombstone. saves says that the
	// record is among them.
	transact(ctx context.Context, cells map[string][]byte, saves bool) error
	end()
}

// ownProducer is one for checkpoints alone.
type ownProducer struct {
	sync  sarama.SyncProducer
	topic string
}

func (p *ownProducer) end() { _ = p.sync.Close() }

func (p *ownProducer) transact(_ context.Context, cells map[string][]byte, _ bool) error {
	if err := p.sync.BeginTxn(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	messages := make([]*sarama.ProducerMessage, 0, len(cells))
	for key, value := range cells {
		m := &sarama.ProducerMessage{Topic: p.topic, Partition: kafkaPartition, Key: sarama.StringEncoder(key)}
		if value != nil {
			m.Value = sarama.ByteEncoder(value)
		}
		messages = append(messages, m)
	}
	if err := p.sync.SendMessages(messages); err != nil {
		if failed, ok := errors.AsType[sarama.ProducerErrors](err); ok && len(failed) > 0 {
			err = failed[0].Err
		}
		return fmt.Errorf("write: %w", err)
	}
	if err := p.sync.CommitTxn(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func producerFenced(err error) bool {
	return errors.Is(err, sarama.ErrInvalidProducerEpoch) || errors.Is(err, sarama.ErrProducerFenced) ||
		errors.Is(err, sarama.ErrInvalidProducerIDMapping) || strings.Contains(err.Error(), "fenced")
}

func (b *kafkaBackend) disconnect() {
	b.end()
	if b.client != nil {
		_ = b.client.Close() // its connections are given up either way
		b.client = nil
	}
}

func (b *kafkaBackend) close() error {
	b.disconnect()
	return nil
}

func (b *kafkaBackend) remedy(err error) string {
	switch {
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed), errors.Is(err, sarama.ErrTransactionalIDAuthorizationFailed), errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return fmt.Sprintf("allow the user of checkpoint.kafka.sasl to Read, Write, Describe, DescribeConfigs and Create topic %s, and to Write and Describe the transactional id %s",
			b.options.topic(), b.config.Producer.Transaction.ID)
	case errors.Is(err, errNotCompacted):
		return fmt.Sprintf("run kafka-configs --alter --entity-type topics --entity-name %s --add-config cleanup.policy=compact, or name another in checkpoint.kafka.topic", b.options.topic())
	}
	return "check that the brokers of checkpoint.kafka.brokers run and let this machine in; the checkpoint there is as it was"
}
