package publishtest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/binlogd/binlogd/mapping"
)

// Events returns n events for each topic, in turn over the topics, with the given number
// of keys in turn too. Payloads are JSON objects on one line of about size bytes.
func Events(topics []string, keys, n, size int) []mapping.Event {
	var events []mapping.Event
	for i := range n {
		for _, topic := range topics {
			events = append(events, Event(topic, fmt.Sprintf("key-%d", i%keys), i, size))
		}
	}
	return events
}

// Event returns the event number n of a topic.
func Event(topic, key string, n, size int) mapping.Event {
	at := time.Date(2026, 11, 29, 22, 36, 56, 557484000, time.UTC).Add(time.Duration(n) * time.Millisecond)
	e := mapping.Event{
		ID:         fmt.Sprintf("%s-%08d", idOf(topic), n),
		Type:       "order.created",
		Source:     "/shop/shop/orders",
		Topic:      topic,
		Key:        []byte(key),
		Time:       at.Format("2006-01-02T15:04:05.000000Z"),
		Sequence:   fmt.Sprintf("%020d", n),
		Table:      "shop.orders",
		GTID:       fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:%d", n+1),
		OccurredAt: at,
	}
	pad := max(0, size-len(e.ID)-len(key)-40)
	e.Payload = fmt.Appendf(nil, `{"id":%q,"key":%q,"n":%d,"pad":"%s"}`, e.ID, key, n, bytes.Repeat([]byte("x"), pad))
	return e
}

// idOf makes a part of an event id of a topic's name.
func idOf(topic string) string {
	id := []byte(topic)
	for i, c := range id {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			id[i] = '-'
		}
	}
	return string(id[max(0, len(id)-48):])
}

// CheckOnce checks that got holds the events of want, each once, in the order of each key.
func CheckOnce(t testing.TB, want []mapping.Event, got []Got) {
	t.Helper()
	if repeats := CheckAll(t, want, got); repeats > 0 {
		t.Errorf("%d events were published more than once", repeats)
	}
}

// CheckAll checks that got holds the events of want and no others, and that the first
// appearances of the events of each key are in order. It returns how many were repeated.
func CheckAll(t testing.TB, want []mapping.Event, got []Got) (repeats int) {
	t.Helper()
	place := make(map[string]int, len(want))
	for i := range want {
		place[want[i].ID] = i
	}
	seen := make(map[string]bool, len(want))
	last := make(map[string]int) // the last place of each key
	for _, g := range got {
		i, ok := place[g.ID]
		if !ok {
			t.Fatalf("event %s was never published", g.ID)
		}
		if !bytes.Equal(g.Payload, want[i].Payload) {
			t.Fatalf("event %s has payload %.200q, want %.200q", g.ID, g.Payload, want[i].Payload)
		}
		if seen[g.ID] {
			repeats++
			continue
		}
		seen[g.ID] = true
		key := string(want[i].Key)
		if before, ok := last[key]; ok && before > i {
			t.Fatalf("event %s comes after event %s of the same key %q", g.ID, want[before].ID, key)
		}
		last[key] = i
	}
	missing := 0
	for i := range want {
		if !seen[want[i].ID] {
			if missing++; missing == 1 {
				t.Errorf("event %s is missing", want[i].ID)
			}
		}
	}
	if missing > 0 {
		t.Fatalf("%d of %d events are missing", missing, len(want))
	}
	return repeats
}
