package publish

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/IBM/sarama"
)

// kafkaPartition is one partition that events go to, and its sequence of records.
type kafkaPartition struct {
	topic *kafkaTopic
	id    int32

	// The broker accepts a producer's batch of records only where its first sequence
	// number follows the last one that it has, and recognises the last five batches
	// when they are repeated.
	producer producerID
	retired  producerID // the id that was given up; never used here again
	next     int32      // sequence number of the next record that is cut into a chunk
	// known is when the broker last took records of producer. A broker that does not
	// know the producer takes any sequence number, so that the second chunk would pass
	// where the first is refused; until it knows it, chunks go one at a time.
	known time.Time

	events []int32       // indexes of the batch's events that go here, in order
	cut    int           // events[:cut] are in chunks
	chunks []*kafkaChunk // sent or to be sent again, and not confirmed, in order
	failed bool          // takes no more requests in this attempt
}

// kafkaProducerKept is how long a broker certainly remembers a producer that sends
// nothing. It is a day by default (producer.id.expiration.ms).
const kafkaProducerKept = 10 * time.Minute

// kafkaChunk is a run of a partition's events that is sent as one batch of records. It
// stays as it is until it is confirmed, so that the broker recognises it.
type kafkaChunk struct {
	from, to int // of partition.events
	sequence int32
	state    chunkState
}

type chunkState int

const (
	chunkUnsent   chunkState = iota // the broker certainly does not have it
	chunkInFlight                   // sent, not answered yet
	chunkDoubtful                   // sent, and the answer will never be known
	chunkDurable                    // acknowledged, but an earlier chunk is not
	chunkDropped                    // cut anew
)

// assign spreads the unconfirmed events of b over partitions. It also gives up what is
// left of an earlier batch or assignment.
func (k *Kafka) assign(ctx context.Context, b *Batch) error {
	for _, p := range k.used {
		p.clear()
	}
	k.used, k.batch = k.used[:0], nil
	if err := k.lookUp(ctx, b); err != nil {
		return err
	}
	var topic *kafkaTopic
	for i := range b.Events {
		if b.Confirmed(i) {
			continue
		}
		e := &b.Events[i]
		if topic == nil || topic.name != e.Topic {
			topic = k.topics[e.Topic]
			if len(k.used) == 0 || k.used[len(k.used)-1].topic != topic {
				if err := k.recount(topic); err != nil {
					return err
				}
			}
		}
		n, err := int32(0), error(nil) // where cells of the checkpoint go
		if e.ID != "" {
			n, err = k.partition(e.Key, topic.count)
		}
		if err != nil {
			return fmt.Errorf("choose a partition of topic %s: %w", topic.name, err)
		}
		p := topic.partitions[n]
		if len(p.events) == 0 {
			k.used = append(k.used, p)
		}
		p.events = append(p.events, int32(i))
	}
	k.batch = b
	return nil
}

// recount follows a number of partitions that has grown, unless events of this batch are
// assigned already: keys move only between batches.
func (k *Kafka) recount(t *kafkaTopic) error {
	for _, p := range t.partitions {
		if len(p.events) > 0 {
			return nil
		}
	}
	ids, err := k.client.Partitions(t.name)
	if err != nil {
		return kafkaError(fmt.Errorf("look up topic %s: %w", t.name, err), t.name)
	}
	t.setPartitions(len(ids))
	return nil
}

// partition returns the partition of a key, as the Java client's default partitioner
// does. Events without a key go to one partition, so that their order is kept too.
func (k *Kafka) partition(key []byte, n int) (int32, error) {
	k.encoder.key = key
	k.keyed.Key = &k.encoder.key
	return k.partitioner.Partition(&k.keyed, int32(n))
}

// kafkaKey is a key in the shape that sarama's partitioners take, by pointer so that
// asking costs no allocation.
type kafkaKey []byte

func (key *kafkaKey) Encode() ([]byte, error) { return *key, nil }

func (key *kafkaKey) Length() int { return len(*key) }

// clear forgets the events. Where the broker may have some that are not confirmed, the
// sequence is given up: the numbers cannot be used for other events.
func (p *kafkaPartition) clear() {
	for _, c := range p.chunks {
		if c.state == chunkDoubtful || c.state == chunkDurable {
			p.restart()
			break
		}
	}
	if len(p.chunks) > 0 && p.producer.known {
		p.next = p.chunks[0].sequence
	}
	p.chunks, p.events, p.cut, p.failed = p.chunks[:0], p.events[:0], 0, false
}

// restart gives up the producer id, so that what is not confirmed is cut and numbered anew.
func (p *kafkaPartition) restart() {
	p.recut(0)
	p.retired, p.producer, p.next, p.known = p.producer, producerID{}, 0, time.Time{}
}

// alone reports whether only one chunk may be in flight.
func (p *kafkaPartition) alone() bool { return time.Since(p.known) > kafkaProducerKept }

// recut drops the chunks from index i on, to be cut anew with the same sequence numbers.
func (p *kafkaPartition) recut(i int) {
	if i >= len(p.chunks) {
		return
	}
	p.cut, p.next = p.chunks[i].from, p.chunks[i].sequence
	for _, c := range p.chunks[i:] {
		c.state = chunkDropped
	}
	p.chunks = p.chunks[:i]
}

// unsent returns the first chunk that waits to be sent, cutting the next one where there
// is none, or nil where everything is sent. room is what the request has left, in bytes.
func (p *kafkaPartition) unsent(b *Batch, room int) *kafkaChunk {
	for _, c := range p.chunks {
		if c.state == chunkUnsent || c.state == chunkDoubtful {
			return c
		}
		if p.alone() {
			return nil
		}
	}
	if p.cut == len(p.events) {
		return nil
	}
	limit := min(p.topic.limit, room)
	c := &kafkaChunk{from: p.cut, to: p.cut, sequence: p.next}
	for size := 0; c.to < len(p.events); c.to++ {
		size += recordSize(&b.Events[p.events[c.to]])
		if size > limit && c.to > c.from {
			break
		}
	}
	p.cut, p.next = c.to, addSequence(p.next, c.to-c.from)
	p.chunks = append(p.chunks, c)
	return c
}

// confirm confirms the events of the chunks that are durable, as far as all before them are.
func (p *kafkaPartition) confirm(b *Batch) {
	n := 0
	for ; n < len(p.chunks) && p.chunks[n].state == chunkDurable; n++ {
		for _, i := range p.events[p.chunks[n].from:p.chunks[n].to] {
			b.Confirm(int(i))
		}
	}
	p.chunks = append(p.chunks[:0], p.chunks[n:]...)
}

// addSequence adds to a sequence number, which wraps to 0 after 2^31-1
// (org.apache.kafka.common.record.DefaultRecordBatch.incrementSequence).
func addSequence(sequence int32, n int) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}

// leader returns the broker that takes the partition's records, with a connection that is
// open or being opened.
func (k *Kafka) leader(p *kafkaPartition) (*sarama.Broker, error) {
	broker, err := k.client.Leader(p.topic.name, p.id)
	if err != nil {
		return nil, kafkaError(fmt.Errorf("find the leader of topic %s, partition %d: %w", p.topic.name, p.id, err), p.topic.name)
	}
	return broker, nil
}
