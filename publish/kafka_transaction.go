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

// kafkaTransaction is the state of a sink that publishes in Kafka's transactions
// (KIP-98): consumers that read committed see all of one or nothing. There is at most one
// at a time, and what makes it up is kept until it is over, so that after any failure all
// of it is published again in a new one.
//
// An attempt that fails is not ended here. Who wants to go on calls Begin: the coordinator
// then ends the transaction that is open, and raises the producer's epoch, so that nothing
// that is still on its way can be taken any more.
type kafkaTransaction struct {
	id       string // transactional.id
	producer producerID
	open     bool // partitions were added and the end is not acknowledged
	added    map[kafkaTopicPartition]bool
	carried  *Batch          // goes along with the next save of the checkpoint
	events   []mapping.Event // of the transaction being written: those of the batch, then the cells
}

type kafkaTopicPartition struct {
	topic     string
	partition int32
}

const (
	// kafkaBusyPause is how soon a coordinator is asked again that is still writing the
	// markers of the transaction before; it grows to kafkaBusyPauseMax.
	kafkaBusyPause    = time.Millisecond
	kafkaBusyPauseMax = 50 * time.Millisecond
)

// kafkaCoordinatorAttempts is how often a coordinator that does not answer, or has moved,
// is looked for before the caller is told.
const kafkaCoordinatorAttempts = 4

// Begin takes the transactional id. Whoever published under it before is fenced by the
// brokers from now on, and what that one left unfinished is over when Begin returns:
// committed if its commit was asked for, aborted otherwise.
func (k *Kafka) Begin(ctx context.Context) error {
	defer k.conns.watch(ctx)()
	t := k.transaction
	t.producer = producerID{}
	timeout := k.options.transactionTimeout()
	err := k.coordinate(ctx, "begin", func(b *sarama.Broker) error {
		response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 2, TransactionalID: &t.id, TransactionTimeout: timeout})
		if err != nil {
			return err
		}
		if response.Err != sarama.ErrNoError {
			return response.Err
		}
		t.producer = producerID{response.ProducerID, response.ProducerEpoch, true}
		return nil
	})
	if err != nil {
		return err
	}
	t.open, t.added = false, nil
	k.forget()
	return nil
}

// forget gives up what partitions have of an unfinished transaction: the next record of
// each is the first of the producer's new epoch.
func (k *Kafka) forget() {
	for _, t := range k.topics {
		for _, p := range t.partitions {
			*p = kafkaPartition{topic: p.topic, id: p.id, events: p.events[:0], chunks: p.chunks[:0]}
		}
	}
	k.used, k.batch = k.used[:0], nil
}

// Carry implements pipeline.Carrier: the events of b go along with the next save of the
// checkpoint, in one transaction.
func (k *Kafka) Carry(b *Batch) { k.transaction.carried = b }

// Save implements checkpoint.KafkaWriter.
func (k *Kafka) Save(ctx context.Context, topic string, cells map[string][]byte, saves bool) error {
	if saves {
		return k.Commit(ctx, k.transaction.carried, topic, cells)
	}
	return k.Commit(ctx, nil, topic, cells)
}

// Commit makes the unconfirmed events of b, which may be nil, and cells, by their keys, durable in one
// transaction. Cells go to the first partition of topic as they are; nil is a tombstone.
// The events are confirmed when it returns nil, and not before. On an error nothing is
// visible to consumers that read committed, unless the error came while the commit was
// asked for: then Begin settles it, and what is in the topic tells how.
func (k *Kafka) Commit(ctx context.Context, b *Batch, topic string, cells map[string][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b == nil {
		b = NewBatch(nil)
	}
	defer k.conns.watch(ctx)()
	all := k.gather(b, topic, cells)
	err := k.transact(ctx, all)
	if refusal, ok := errors.AsType[*PermanentError](err); ok && refusal.Event != nil {
		refused := *refusal.Event
		refusal.Event = &refused
	}
	clear(k.transaction.events) // nothing of the events is held any longer
	if err != nil {
		if ctx.Err() != nil && !permanent(err) {
			return fmt.Errorf("publish to Kafka: %w", context.Cause(ctx))
		}
		return err
	}
	for i := range b.Events {
		b.Confirm(i)
	}
	return nil
}

// publishTransaction publishes b in a transaction of its own, without a checkpoint. Where
// the end of it is in doubt, the events may come again in the next one.
func (k *Kafka) publishTransaction(ctx context.Context, b *Batch) error {
	if !k.transaction.producer.known {
		if err := k.Begin(ctx); err != nil {
			return err
		}
	}
	err := k.Commit(ctx, b, "", nil)
	if err != nil {
		k.transaction.producer = producerID{} // the next attempt begins anew
	}
	return err
}

// gather makes one batch of the events of b and of cells. A cell is an event without an id.
func (k *Kafka) gather(b *Batch, topic string, cells map[string][]byte) *Batch {
	t := k.transaction
	t.events = t.events[:0]
	for i := range b.Events {
		if !b.Confirmed(i) {
			t.events = append(t.events, b.Events[i])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(cells)) {
		t.events = append(t.events, mapping.Event{Topic: topic, Key: []byte(key), Payload: cells[key]})
	}
	return NewBatch(t.events)
}

func (k *Kafka) transact(ctx context.Context, b *Batch) error {
	if !k.transaction.producer.known {
		return errors.New("publish to Kafka: the transactional id was not taken yet")
	}
	if len(b.Events) == 0 {
		return nil
	}
	if err := k.assign(ctx, b); err != nil {
		return err
	}
	if err := k.enlist(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		quick, err := k.deliver(ctx, b, attempt == 1)
		if err == nil {
			break
		}
		if !quick || attempt == kafkaQuickAttempts || ctx.Err() != nil || k.stale() {
			return err
		}
	}
	k.batch = nil
	return k.end(ctx, true)
}

// enlist adds the partitions that the batch goes to to the transaction. The coordinator
// refuses that while it writes the markers of the one before, which takes milliseconds.
func (k *Kafka) enlist(ctx context.Context) error {
	t := k.transaction
	partitions := make(map[string][]int32)
	for _, p := range k.used {
		if !t.added[kafkaTopicPartition{p.topic.name, p.id}] {
			partitions[p.topic.name] = append(partitions[p.topic.name], p.id)
		}
	}
	t.open = true // also where the answer does not come
	err := k.coordinate(ctx, "add partitions", func(b *sarama.Broker) error {
		response, err := b.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			Version: 1, TransactionalID: t.id, ProducerID: t.producer.id, ProducerEpoch: t.producer.epoch, TopicPartitions: partitions,
		})
		if err != nil {
			return err
		}
		return addPartitionsError(response)
	})
	if err != nil {
		return err
	}
	t.added = make(map[kafkaTopicPartition]bool, len(k.used))
	for _, p := range k.used {
		t.added[kafkaTopicPartition{p.topic.name, p.id}] = true
	}
	return nil
}

// addPartitionsError is the answer's error that says most: where one partition is refused,
// the others are "not attempted".
func addPartitionsError(response *sarama.AddPartitionsToTxnResponse) error {
	var first error
	for topic, partitions := range response.Errors {
		for _, p := range partitions {
			switch p.Err {
			case sarama.ErrNoError:
			case sarama.ErrOperationNotAttempted:
				if first == nil {
					first = p.Err
				}
			case sarama.ErrTopicAuthorizationFailed, sarama.ErrUnknownTopicOrPartition:
				return fmt.Errorf("topic %s, partition %d: %w", topic, p.Partition, p.Err)
			default:
				return p.Err
			}
		}
	}
	return first
}

// end commits or aborts the transaction. A commit is asked for until the answer is known
// or the coordinator is out of reach: asking twice does no harm.
func (k *Kafka) end(ctx context.Context, commit bool) error {
	t := k.transaction
	err := k.coordinate(ctx, "end", func(b *sarama.Broker) error {
		response, err := b.EndTxn(&sarama.EndTxnRequest{
			Version: 1, TransactionalID: t.id, ProducerID: t.producer.id, ProducerEpoch: t.producer.epoch, TransactionResult: commit,
		})
		if err != nil {
			return err
		}
		if response.Err != sarama.ErrNoError {
			return response.Err
		}
		return nil
	})
	if err == nil {
		t.open, t.added = false, nil
	}
	return err
}

// coordinate asks the coordinator of the transactional id, wherever it is, and waits while
// it is busy with what was asked before.
func (k *Kafka) coordinate(ctx context.Context, what string, ask func(*sarama.Broker) error) error {
	busySince, pause := time.Time{}, kafkaBusyPause
	for attempt := 1; ; {
		coordinator, err := k.client.TransactionCoordinator(k.transaction.id)
		at := "its coordinator"
		if err == nil {
			at = coordinator.Addr()
			err = ask(coordinator)
		}
		if err == nil {
			return nil
		}
		failed := kafkaError(fmt.Errorf("%s a transaction of %s at %s: %w", what, k.transaction.id, at, err), "")
		kafkaErr, answered := errors.AsType[sarama.KError](err)
		switch {
		case kafkaErr == sarama.ErrConcurrentTransactions || kafkaErr == sarama.ErrOffsetsLoadInProgress:
			if busySince.IsZero() {
				busySince = time.Now()
			} else if time.Since(busySince) > k.options.transactionTimeout() {
				return failed
			}
			if wait(ctx, pause) != nil {
				return context.Cause(ctx)
			}
			pause = min(2*pause, kafkaBusyPauseMax)
			continue
		case answered && kafkaErr != sarama.ErrNotCoordinatorForConsumer && kafkaErr != sarama.ErrConsumerCoordinatorNotAvailable,
			permanent(failed), attempt == kafkaCoordinatorAttempts, ctx.Err() != nil:
			return failed
		}
		if coordinator != nil && !answered {
			_ = coordinator.Close() // so that it is connected to anew; an error means that it is closed
		}
		attempt++
		if wait(ctx, time.Duration(attempt)*kafkaBusyPauseMax) != nil {
			return context.Cause(ctx)
		}
		_ = k.client.RefreshTransactionCoordinator(k.transaction.id) // where it fails, the next attempt does
	}
}

// abort ends a transaction that is open when the sink is closed, so that consumers need not
// wait until it has timed out.
func (k *Kafka) abort() {
	if k.transaction == nil || !k.transaction.open || !k.transaction.producer.known {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), kafkaDialTimeout)
	defer cancel()
	defer k.conns.watch(ctx)()
	if err := k.end(ctx, false); err != nil {
		k.logger.Warn("a transaction was not aborted and times out by itself", "transactional_id", k.transaction.id, "in", k.options.transactionTimeout(), "error", err)
	}
}
