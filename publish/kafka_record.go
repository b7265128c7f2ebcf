package publish

import (
	"encoding/binary"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlogd/binlogd/mapping"
)

// kafkaEncoder turns events into sarama's records. sarama encodes a request before it
// returns from sending it, so that one set of records serves all requests.
type kafkaEncoder struct {
	records  []sarama.Record
	headers  []sarama.RecordHeader
	pointers []*sarama.RecordHeader
	text     []byte // of header values
	key      kafkaKey

	id, kind, source, time   []byte // header keys
	media                    []byte
	specversion, contenttype sarama.RecordHeader
	codec                    sarama.CompressionCodec
	transactional            bool
	lists                    [][]*sarama.Record // one for each batch of records in a request
	usedLists                int
}

func newKafkaEncoder(codec sarama.CompressionCodec) kafkaEncoder {
	return kafkaEncoder{
		codec: codec,
		id:    []byte("ce_id"), kind: []byte("ce_type"), source: []byte("ce_source"), time: []byte("ce_time"), media: []byte("content-type"),
		specversion: sarama.RecordHeader{Key: []byte("ce_specversion"), Value: []byte("1.0")},
		contenttype: sarama.RecordHeader{Key: []byte("content-type"), Value: []byte("application/cloudevents+json; charset=UTF-8")},
	}
}

// recordOverhead is the most that a record takes beside its key, its value and the header
// values of the event: lengths, deltas, and the names of the headers.
const recordOverhead = 5*binary.MaxVarintLen32 + binary.MaxVarintLen64 + 1 +
	6*2*binary.MaxVarintLen32 + len("ce_id"+"ce_type"+"ce_source"+"ce_time"+"ce_specversion"+"content-type") +
	len("1.0"+"application/cloudevents+json; charset=UTF-8")

// recordSize is the most bytes that e takes in a batch of records, before compression.
func recordSize(e *mapping.Event) int {
	size := recordOverhead + len(e.Key) + len(e.Payload) + len(e.ID) + len(e.Type) + len(e.Source) + len(e.Time) + len(e.ContentType)
	for _, h := range e.Headers {
		size += len(h.Key) + len(h.Value) + 2*binary.MaxVarintLen32
	}
	return size
}

// reset makes the records of the previous request available again.
func (k *kafkaEncoder) reset() {
	k.records, k.headers, k.pointers, k.text = k.records[:0], k.headers[:0], k.pointers[:0], k.text[:0]
	k.usedLists = 0
}

// batch returns the events with the given indexes as one batch of records.
func (k *kafkaEncoder) batch(events []mapping.Event, indexes []int32, producer producerID, sequence int32) *sarama.RecordBatch {
	if k.usedLists == len(k.lists) {
		k.lists = append(k.lists, nil)
	}
	list := k.lists[k.usedLists][:0]
	first := occurredAt(&events[indexes[0]])
	latest := first
	for n, i := range indexes {
		at := occurredAt(&events[i])
		if at.After(latest) {
			latest = at
		}
		r := k.record(&events[i])
		r.OffsetDelta = int64(n)
		r.TimestampDelta = at.Sub(first)
		list = append(list, r)
	}
	k.lists[k.usedLists] = list
	k.usedLists++
	return &sarama.RecordBatch{
		Version:          2,
		Codec:            k.codec,
		CompressionLevel: sarama.CompressionLevelDefault,
		FirstTimestamp:   first,
		MaxTimestamp:     latest,
		LastOffsetDelta:  int32(len(indexes) - 1),
		ProducerID:       producer.id,
		ProducerEpoch:    producer.epoch,
		FirstSequence:    sequence,
		IsTransactional:  k.transactional,
		Records:          list,
	}
}

// occurredAt is the record's time in Kafka's precision; an event without one happened now.
func occurredAt(e *mapping.Event) time.Time {
	if e.OccurredAt.IsZero() {
		return time.Now().Truncate(time.Millisecond)
	}
	return e.OccurredAt.Truncate(time.Millisecond)
}

func (k *kafkaEncoder) record(e *mapping.Event) *sarama.Record {
	if e.ID == "" { // a cell of the checkpoint
		k.records = append(k.records, sarama.Record{Key: e.Key, Value: e.Payload})
		return &k.records[len(k.records)-1]
	}
	from := len(k.pointers)
	k.header(k.id, e.ID)
	k.header(k.kind, e.Type)
	k.header(k.source, e.Source)
	k.header(k.time, e.Time)
	k.pointers = append(k.pointers, &k.specversion)
	switch {
	case e.ContentType != "":
		k.header(k.media, e.ContentType)
	case e.Payload != nil: // a tombstone has no content
		k.pointers = append(k.pointers, &k.contenttype)
	}
	for _, h := range e.Headers {
		k.header([]byte(h.Key), "")
		k.headers[len(k.headers)-1].Value = h.Value
	}
	k.records = append(k.records, sarama.Record{Headers: k.pointers[from:], Key: e.Key, Value: e.Payload})
	return &k.records[len(k.records)-1]
}

// header appends a header. Where the slices grow, earlier records keep the old ones.
func (k *kafkaEncoder) header(key []byte, value string) {
	from := len(k.text)
	k.text = append(k.text, value...)
	k.headers = append(k.headers, sarama.RecordHeader{Key: key, Value: k.text[from:len(k.text):len(k.text)]})
	k.pointers = append(k.pointers, &k.headers[len(k.headers)-1])
}
