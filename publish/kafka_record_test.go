package publish

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/mapping"
)

// TestKafkaRecordForms: the content type is that of the payload, and a tombstone has neither.
func TestKafkaRecordForms(t *testing.T) {
	t.Parallel()
	encoder := newKafkaEncoder(sarama.CompressionNone)
	for name, c := range map[string]struct {
		event       mapping.Event
		contentType string
	}{
		"structured": {mapping.Event{ID: "a-1", Payload: []byte("{}")}, "application/cloudevents+json; charset=UTF-8"},
		"binary": {
			mapping.Event{ID: "a-2", Payload: []byte("text"), ContentType: "text/plain; charset=utf-8", Headers: []mapping.Header{{Key: "ce_subject", Value: []byte("7")}}},
			"text/plain; charset=utf-8",
		},
		"empty":     {mapping.Event{ID: "a-3", Payload: []byte{}, ContentType: "application/octet-stream"}, "application/octet-stream"},
		"tombstone": {mapping.Event{ID: "a-4"}, ""},
	} {
		record := encoder.record(&c.event)
		headers := map[string]string{}
		for _, h := range record.Headers {
			headers[string(h.Key)] = string(h.Value)
		}
		require.Equal(t, c.contentType, headers["content-type"], name)
		require.Equal(t, c.event.ID, headers["ce_id"], name)
		require.Equal(t, c.event.Payload == nil, record.Value == nil, name)
		for _, h := range c.event.Headers {
			require.Equal(t, string(h.Value), headers[h.Key], name)
		}
	}
}
