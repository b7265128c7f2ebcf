package publish_test

import (
	"testing"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

// TestKafkaTransactions runs the suite of all sinks in transactions, as consumers see it that
// read committed.
func TestKafkaTransactions(t *testing.T) {
	server := testenv.Kafka(t)
	h := kafkaHarness(server.Brokers)
	h.Open = func(t testing.TB) publish.Sink {
		return openKafka(t, publish.KafkaOptions{Brokers: server.Brokers, ExactlyOnce: true, TransactionalID: "binlogd-" + freshTopic(t)})
	}
	h.Read = func(t testing.TB, topic string) []publishtest.Got {
		var got []publishtest.Got
		for _, m := range server.Consume(t, topic) {
			g := publishtest.Got{ID: m.Headers["ce_id"], Type: m.Headers["ce_type"], Key: m.Key, Payload: m.Value, Headers: m.Headers}
			for _, name := range []string{"ce_id", "ce_type", "ce_source", "ce_time", "ce_specversion", "content-type"} {
				delete(g.Headers, name)
			}
			got = append(got, g)
		}
		return got
	}
	publishtest.Run(t, h)
}
