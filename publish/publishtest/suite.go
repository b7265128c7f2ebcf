package publishtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// mustPublish publishes events as one batch and checks that all are confirmed.
func mustPublish(t *testing.T, sink publish.Sink, events []mapping.Event) {
	t.Helper()
	b := publish.NewBatch(events)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(ctx, b))
	require.Zero(t, b.Pending(), "Publish returned nil with unconfirmed events")
}

// ofTopic returns the events for topic.
func ofTopic(events []mapping.Event, topic string) []mapping.Event {
	var of []mapping.Event
	for _, e := range events {
		if e.Topic == topic {
			of = append(of, e)
		}
	}
	return of
}

func testOrder(t *testing.T, h Harness) {
	sink := h.open(t)
	topics := []string{h.Topic(t), h.Topic(t), h.Topic(t)}
	events := Events(topics, 20, 700, 300)
	for from := 0; from < len(events); from += 150 {
		mustPublish(t, sink, events[from:min(from+150, len(events))])
	}
	for _, topic := range topics {
		CheckOnce(t, ofTopic(events, topic), h.Read(t, topic))
	}
}

func testBytes(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	random := make([]byte, 900_000) // does not compress
	noise := rand.NewChaCha8([32]byte{1})
	_, _ = noise.Read(random)

	events := []mapping.Event{
		Event(topic, "utf-8", 0, 0),
		Event(topic, "long", 1, 950_000),
		Event(topic, "", 2, 0),
	}
	events[0].Payload = fmt.Appendf(nil, `{"id":%q,"name":"Grüße, 世界 \u0000 🙂 \\ \""}`, events[0].ID)
	if !h.Lines {
		events = append(events, Event(topic, "binary", 3, 0), Event(topic, "empty", 4, 0), Event(topic, "lines", 5, 0), Event(topic, "noise", 6, 0))
		events[3].Payload = []byte("\x00\xff\xfe\r\n\x80\x00")
		events[3].Key = []byte("\x00\xff\n")
		events[4].Payload = []byte{}
		events[5].Payload = []byte("a\nb\r\nc\n")
		events[6].Payload = random
	}
	mustPublish(t, sink, events)
	got := h.Read(t, topic)
	CheckOnce(t, events, got)
	if h.Lines {
		return
	}
	for _, g := range got {
		for _, e := range events {
			if e.ID == g.ID && !bytes.Equal(e.Key, g.Key) {
				t.Errorf("event %s has key %q, want %q", e.ID, g.Key, e.Key)
			}
		}
	}
}

func testHeaders(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	e := Event(topic, "1001", 7, 0)
	e.Headers = []mapping.Header{{Key: "tenant", Value: []byte("north")}, {Key: "raw", Value: []byte("\x00\xff")}, {Key: "none", Value: []byte{}}}
	mustPublish(t, sink, []mapping.Event{e})
	got := h.Read(t, topic)
	require.Len(t, got, 1)
	want := Got{ID: e.ID, Payload: e.Payload}
	if !h.Lines {
		want = Got{
			ID: e.ID, Type: e.Type, Key: e.Key, Payload: e.Payload,
			Headers: map[string]string{"tenant": "north", "raw": "\x00\xff", "none": ""},
		}
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("the event differs (-want +got):\n%s", diff)
	}
}

func testManyTopics(t *testing.T, h Harness) {
	sink := h.open(t)
	var topics []string
	for range 40 {
		topics = append(topics, h.Topic(t))
	}
	events := Events(topics, 2, 3, 200)
	mustPublish(t, sink, events)
	for _, topic := range topics {
		CheckOnce(t, ofTopic(events, topic), h.Read(t, topic))
	}
}

func testBigBatch(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	events := Events([]string{topic}, 500, 50_000, 250)
	mustPublish(t, sink, events)
	CheckOnce(t, events, h.Read(t, topic))
}

func testConfirmed(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	events := Events([]string{topic}, 3, 100, 200)
	b := publish.NewBatch(events)
	var rest []mapping.Event
	for i := range events {
		if i%3 == 1 {
			b.Confirm(i)
		} else {
			rest = append(rest, events[i])
		}
	}
	require.NoError(t, sink.Publish(t.Context(), b))
	require.Zero(t, b.Pending())
	require.NoError(t, sink.Publish(t.Context(), b), "a batch that is confirmed")
	CheckOnce(t, rest, h.Read(t, topic))
}

func testReopen(t *testing.T, h Harness) {
	topic := h.Topic(t)
	events := Events([]string{topic}, 5, 300, 200)
	for from := 0; from < len(events); from += 100 {
		sink := h.Open(t)
		mustPublish(t, sink, events[from:from+100])
		require.NoError(t, sink.Close())
	}
	CheckOnce(t, events, h.Read(t, topic))
}

func testCancelled(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	events := Events([]string{topic}, 1, 10, 200)
	mustPublish(t, sink, events[:5])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := publish.NewBatch(events[5:])
	require.ErrorIs(t, sink.Publish(ctx, b), context.Canceled)
	require.Equal(t, 5, b.Pending())
	CheckOnce(t, events[:5], h.Read(t, topic))
	require.NoError(t, sink.Publish(t.Context(), b))
	CheckOnce(t, events, h.Read(t, topic))
}

// testCancel ends the context at several moments of a large batch, and then finishes the
// batch under another context.
func testCancel(t *testing.T, h Harness) {
	sink := h.open(t)
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond} {
		topic := h.Topic(t)
		events := Events([]string{topic}, 50, 10_000, 300)
		b := publish.NewBatch(events)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(after, cancel)
		err := sink.Publish(ctx, b)
		ended := time.Now()
		timer.Stop()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			require.Less(t, time.Since(ended), 2*time.Second)
		} else {
			require.Zero(t, b.Pending())
		}
		cancel()
		checkConfirmed(t, b, h.Read(t, topic))
		require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), b))
		require.Zero(t, b.Pending())
		CheckAll(t, events, h.Read(t, topic))
	}
}

// checkConfirmed checks that what b confirms is there.
func checkConfirmed(t *testing.T, b *publish.Batch, got []Got) {
	t.Helper()
	there := make(map[string]bool, len(got))
	for _, g := range got {
		there[g.ID] = true
	}
	for i := range b.Events {
		if b.Confirmed(i) && !there[b.Events[i].ID] {
			t.Fatalf("event %s is confirmed but not there", b.Events[i].ID)
		}
	}
}

func testRefused(t *testing.T, h Harness) {
	sink, topic, other := h.open(t), h.Topic(t), h.Topic(t)
	refused := h.Refused(t, topic)
	before, after := Event(topic, string(refused.Key), 1, 0), Event(refused.Topic, string(refused.Key), 3, 0)
	mustPublish(t, sink, []mapping.Event{Event(other, "x", 0, 0)})
	events := []mapping.Event{before, refused, after}
	b := publish.NewBatch(events)
	err := publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), b)
	var permanent *publish.PermanentError
	require.ErrorAs(t, err, &permanent)
	require.NotNil(t, permanent.Event, "the error does not say which event: %v", err)
	require.Equal(t, refused.ID, permanent.Event.ID)
	require.NotEmpty(t, permanent.Remedy)
	for _, part := range []string{refused.ID, "shop.orders", refused.GTID} {
		require.ErrorContains(t, err, part)
	}
	require.False(t, b.Confirmed(1), "the refused event is confirmed")
	require.False(t, b.Confirmed(2), "an event behind the refused one, of the same key, is confirmed")

	// The sink still works for others.
	more := Event(other, "x", 1, 0)
	mustPublish(t, sink, []mapping.Event{more})
	CheckOnce(t, []mapping.Event{Event(other, "x", 0, 0), more}, h.Read(t, other))
}

func testPing(t *testing.T, h Harness) {
	sink := h.open(t)
	require.NoError(t, sink.Ping(t.Context()))
	require.NoError(t, sink.Ping(t.Context()), "for the second time")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sink.Ping(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("ping under a context that has ended: %v", err)
	}
	topic := h.Topic(t)
	mustPublish(t, sink, Events([]string{topic}, 1, 1, 0))
}
