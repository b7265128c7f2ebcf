package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const (
	// kafkaMaxInFlight is how many requests one broker has at a time. A broker
	// recognises repetitions of a producer's last five batches in a partition, so there
	// must not be more that are in doubt.
	kafkaMaxInFlight = 5
	// kafkaRequestSize is where a request is sent rather than filled further, in bytes
	// before compression: large enough to compress and to append well, small enough
	// that one is encoded while the broker works on another.
	kafkaRequestSize = 512 << 10
	// kafkaBatchLimit is what a partition's batch of records may have before
	// compression: a little less than max.message.bytes is by default.
	kafkaBatchLimit = 1_000_000
)

// kafkaLane is what goes to one broker.
type kafkaLane struct {
	broker     *sarama.Broker
	partitions []*kafkaPartition
	turn       int // the partition whose turn it is
	inFlight   int
}

// kafkaAnswer is the end of one request.
type kafkaAnswer struct {
	lane     *kafkaLane
	sent     []kafkaSent
	response *sarama.ProduceResponse
	err      error
}

type kafkaSent struct {
	partition *kafkaPartition
	chunk     *kafkaChunk
}

// kafkaFailures gathers what went wrong in one attempt.
type kafkaFailures struct {
	permanent error
	retryable error
	lasting   bool // some of it is not mended by trying again at once
}

func (f *kafkaFailures) add(err error, quick bool) {
	switch {
	case permanent(err):
		if f.permanent == nil {
			f.permanent = err
		}
	default:
		if f.retryable == nil || !quick && !f.lasting {
			f.retryable = err
		}
		f.lasting = f.lasting || !quick
	}
}

// deliver sends what is assigned and not confirmed, and returns when every request is
// answered. quick says that another attempt at once is worth it; first that this attempt
// is not such a one.
func (k *Kafka) deliver(ctx context.Context, b *Batch, first bool) (quick bool, err error) {
	var failures kafkaFailures
	lanes, err := k.lanes(&failures)
	if err != nil {
		return false, err
	}
	if need := len(lanes) * kafkaMaxInFlight; cap(k.answers) < need {
		k.answers = make(chan kafkaAnswer, need)
	}
	outstanding := 0
	for {
		for _, lane := range lanes {
			for lane.inFlight < kafkaMaxInFlight && ctx.Err() == nil && k.send(lane, b, &failures) {
				outstanding++
			}
		}
		if outstanding == 0 {
			break
		}
		k.settle(<-k.answers, b, first, &failures)
		outstanding--
	}
	switch {
	case failures.permanent != nil:
		return false, failures.permanent
	case failures.retryable != nil:
		return !failures.lasting, failures.retryable
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return false, nil
}

// lanes groups the partitions that have something to send by their leaders.
func (k *Kafka) lanes(failures *kafkaFailures) ([]*kafkaLane, error) {
	if err := k.refresh(); err != nil {
		return nil, err
	}
	var lanes []*kafkaLane
	byBroker := make(map[*sarama.Broker]*kafkaLane)
	for _, p := range k.used {
		p.failed = false
		if p.cut == len(p.events) && len(p.chunks) == 0 {
			continue
		}
		broker, err := k.leader(p)
		if err != nil {
			p.failed = true
			failures.add(err, false)
			continue
		}
		lane := byBroker[broker]
		if lane == nil {
			lane = &kafkaLane{broker: broker}
			byBroker[broker] = lane
			lanes = append(lanes, lane)
		}
		lane.partitions = append(lane.partitions, p)
	}
	return lanes, nil
}

// refresh asks for the leaders of partitions again where the previous attempt failed.
func (k *Kafka) refresh() error {
	var topics []string
	seen := make(map[*kafkaTopic]bool)
	for _, p := range k.used {
		if p.failed && !seen[p.topic] {
			seen[p.topic] = true
			topics = append(topics, p.topic.name)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	err := k.client.RefreshMetadata(topics...)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		for t := range seen {
			t.missing = true // looked up one by one
		}
	}
	if err != nil {
		return kafkaError(fmt.Errorf("find the leaders of topics: %w", err), "")
	}
	return nil
}

// send sends one request with at most one chunk of each of the lane's partitions, and
// reports whether there was anything to send.
func (k *Kafka) send(lane *kafkaLane, b *Batch, failures *kafkaFailures) bool {
	request := &sarama.ProduceRequest{
		Version:      8,
		RequiredAcks: sarama.WaitForAll,
		Timeout:      int32(k.options.timeout().Milliseconds()),
	}
	if k.transaction != nil {
		request.TransactionalID = &k.transaction.id
	}
	var sent []kafkaSent
	k.encoder.reset()
	room := kafkaRequestSize
	for range lane.partitions {
		if room < kafkaRequestSize/16 {
			break // rather than cut a chunk for what little room is left
		}
		p := lane.partitions[lane.turn%len(lane.partitions)]
		lane.turn++
		if p.failed {
			continue
		}
		if !p.producer.known {
			producer, err := k.producer(p.retired)
			if err != nil {
				p.failed = true
				failures.add(err, false)
				continue
			}
			p.producer = producer
		}
		c := p.unsent(b, room)
		if c == nil {
			continue
		}
		c.state = chunkInFlight
		indexes := p.events[c.from:c.to]
		request.AddBatch(p.topic.name, p.id, k.encoder.batch(b.Events, indexes, p.producer, c.sequence))
		sent = append(sent, kafkaSent{p, c})
		for _, i := range indexes {
			room -= recordSize(&b.Events[i])
		}
	}
	if len(sent) == 0 {
		return false
	}
	lane.inFlight++
	// The answer's callback runs in the goroutine that reads the connection; answers
	// has room for all of them, so it is never held up.
	answers, answer := k.answers, kafkaAnswer{lane: lane, sent: sent}
	err := lane.broker.AsyncProduce(request, func(response *sarama.ProduceResponse, err error) {
		answer.response, answer.err = response, err
		answers <- answer
	})
	if err != nil {
		answer.err = err
		answers <- answer
	}
	return true
}

// settle takes in the end of a request.
func (k *Kafka) settle(a kafkaAnswer, b *Batch, first bool, failures *kafkaFailures) {
	a.lane.inFlight--
	if a.err != nil {
		k.lost(a, b, first, failures)
		return
	}
	for _, s := range a.sent {
		block := a.response.GetBlock(s.partition.topic.name, s.partition.id)
		switch {
		case s.chunk.state == chunkDropped:
		case block == nil:
			s.chunk.state = chunkDoubtful
			s.partition.failed = true
			failures.add(fmt.Errorf("publish to topic %s: %s did not answer for partition %d", s.partition.topic.name, a.lane.broker.Addr(), s.partition.id), false)
		case block.Err == sarama.ErrNoError, block.Err == sarama.ErrDuplicateSequenceNumber:
			s.chunk.state = chunkDurable
			s.partition.known = time.Now()
			s.partition.confirm(b)
		default:
			s.chunk.state = chunkUnsent
			s.partition.failed = true
			s.refused(block, b, k.transaction != nil, failures)
		}
	}
}

// lost takes in a request that has no answer, because the connection broke or the request
// could not be encoded.
func (k *Kafka) lost(a kafkaAnswer, b *Batch, first bool, failures *kafkaFailures) {
	var encoding sarama.PacketEncodingError
	unencodable := errors.As(a.err, &encoding)
	for _, s := range a.sent {
		s.partition.failed = true
		switch {
		case s.chunk.state == chunkDropped:
		case unencodable:
			s.chunk.state = chunkUnsent
			failures.add(s.tooLarge(b, a.err), true)
		default:
			s.chunk.state = chunkDoubtful
		}
	}
	if unencodable {
		return
	}
	_ = a.lane.broker.Close() // so that the next attempt connects anew; an error means that it is closed
	for _, p := range a.lane.partitions {
		p.failed = true
	}
	// Brokers close idle connections, after ten minutes by default, which shows only now.
	// A broker that does not answer, on the other hand, will not at once.
	closed := !errors.Is(a.err, os.ErrDeadlineExceeded)
	failures.add(kafkaError(fmt.Errorf("publish to Kafka at %s: %w", a.lane.broker.Addr(), a.err), ""), first && closed)
}

// refused takes in that the leader did not take a chunk.
func (s kafkaSent) refused(block *sarama.ProduceResponseBlock, b *Batch, transactional bool, failures *kafkaFailures) {
	p := s.partition
	err := fmt.Errorf("publish to topic %s, partition %d: %w", p.topic.name, p.id, block.Err)
	if block.ErrorMessage != nil && *block.ErrorMessage != "" {
		err = fmt.Errorf("publish to topic %s, partition %d: %s: %w", p.topic.name, p.id, *block.ErrorMessage, block.Err)
	}
	switch block.Err {
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge:
		failures.add(s.tooLarge(b, err), true)
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch,
		sarama.ErrInvalidProducerIDMapping, sarama.ErrProducerFenced:
		if transactional { // all of the transaction is to be published again, under another epoch
			failures.add(err, false)
			break
		}
		// Where an earlier chunk is missing, this follows from it. Otherwise the broker
		// has forgotten the producer, or lost records: begin a new sequence.
		if p.chunks[0] == s.chunk {
			p.restart()
		}
		failures.add(err, true)
	case sarama.ErrNotLeaderForPartition, sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch:
		failures.add(err, true)
	case sarama.ErrUnknownTopicOrPartition:
		p.topic.missing, p.known = true, time.Time{}
		failures.add(err, true)
	case sarama.ErrNotEnoughReplicasAfterAppend, sarama.ErrRequestTimedOut:
		s.chunk.state = chunkDoubtful // appended, and perhaps about to be replicated
		failures.add(err, false)
	default:
		at := s.chunk.from
		if len(block.RecordErrors) > 0 { // the broker says which record it is about
			at += int(block.RecordErrors[0].BatchIndex)
		}
		failures.add(kafkaEventError(err, p.topic.name, &b.Events[p.events[min(at, s.chunk.to-1)]]), false)
	}
}

// tooLarge cuts what was too large into halves, or refuses the event that cannot be cut.
func (s kafkaSent) tooLarge(b *Batch, err error) error {
	p, events := s.partition, s.partition.events[s.chunk.from:s.chunk.to]
	if len(events) == 1 {
		e := &b.Events[events[0]]
		return &PermanentError{Event: e, Err: fmt.Errorf("%w: the record has %d bytes before compression", err, recordSize(e)), Remedy: kafkaSizeRemedy(p.topic.name, recordSize(e))}
	}
	size := 0
	for _, i := range events {
		size += recordSize(&b.Events[i])
	}
	p.topic.limit = min(p.topic.limit, size/2)
	for i, c := range p.chunks {
		if c == s.chunk {
			p.recut(i)
			break
		}
	}
	return err
}
