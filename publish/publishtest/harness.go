// Package publishtest is the conformance suite of publish.Sink: what every sink owes,
// checked on the real thing behind it.
package publishtest

import (
	"testing"

	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// Harness connects the suite with one sink.
type Harness struct {
	// Open opens the sink; each call on the same server or file. The suite closes it.
	Open func(t testing.TB) publish.Sink
	// Topic returns a name that nothing was published to before. A topic whose name was
	// never published to does not exist.
	Topic func(t testing.TB) string
	// Read returns everything that was published to a topic, oldest first as far as the
	// sink keeps an order, which is at least the order of events with equal keys.
	Read func(t testing.TB, topic string) []Got
	// Refused returns an event that the sink refuses for good, for topic unless it is the
	// topic that is refused.
	Refused func(t testing.TB, topic string) mapping.Event
	// Break takes the server away, in the middle of what it does; Mend brings it back.
	// Both are nil for a sink without a server.
	Break, Mend func(t testing.TB)
	// Lines says that the sink writes payloads only, one a line.
	Lines bool
}

// Got is one event as a consumer sees it. Sinks that write lines fill ID and Payload.
type Got struct {
	ID      string
	Type    string
	Key     []byte
	Headers map[string]string
	Payload []byte
}

// Run checks everything that a sink owes.
func Run(t *testing.T, h Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"order of each key, every event once", testOrder},
		{"bytes stay as they are", testBytes},
		{"attributes and headers", testHeaders},
		{"many topics in one batch", testManyTopics},
		{"a batch of 50,000 events", testBigBatch},
		{"confirmed events are not published again", testConfirmed},
		{"close and open again", testReopen},
		{"a context that has ended", testCancelled},
		{"a context that ends meanwhile", testCancel},
		{"a refusal for good", testRefused},
		{"ping", testPing},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
	if h.Break != nil {
		RunFaults(t, h)
	}
}

// RunFaults checks what a sink owes while its server goes away and comes back.
func RunFaults(t *testing.T, h Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"server away", testAway},
		{"server away, context ends", testAwayCancel},
		{"server breaks while publishing", testBreak},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
}

func (h Harness) open(t *testing.T) publish.Sink {
	t.Helper()
	sink := h.Open(t)
	t.Cleanup(func() {
		if err := sink.Close(); err != nil {
			t.Errorf("close the sink: %v", err)
		}
	})
	return sink
}
