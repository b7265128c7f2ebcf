package publishtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/publish"
)

// promptly is the longest that a sink may take to notice what it is told at once: a
// refused connection, the end of a context.
const promptly = 6 * time.Second

// testAway publishes, takes the server away, and publishes on when it is back.
func testAway(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	events := Events([]string{topic}, 7, 3000, 300)
	mustPublish(t, sink, events[:1000])

	h.Break(t)
	b := publish.NewBatch(events[1000:2000])
	for range 3 {
		began := time.Now()
		err := sink.Publish(t.Context(), b)
		require.Error(t, err)
		require.Less(t, time.Since(began), promptly)
		var permanent *publish.PermanentError
		require.False(t, errors.As(err, &permanent), "the outage is taken for a refusal: %v", err)
		require.Equal(t, 1000, b.Pending())
	}
	began := time.Now()
	require.ErrorContains(t, sink.Ping(t.Context()), "check publish.")
	require.Less(t, time.Since(began), promptly)

	h.Mend(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(ctx, b))
	// A server may take events before it has finished starting.
	require.Eventually(t, func() bool { return sink.Ping(t.Context()) == nil }, 30*time.Second, 50*time.Millisecond)
	mustPublish(t, sink, events[2000:])
	CheckOnce(t, events, h.Read(t, topic))
}

// testAwayCancel ends the context of a Publish that waits for the server.
func testAwayCancel(t *testing.T, h Harness) {
	sink, topic := h.open(t), h.Topic(t)
	events := Events([]string{topic}, 7, 200, 300)
	mustPublish(t, sink, events[:100])
	h.Break(t)
	b := publish.NewBatch(events[100:])
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(ctx, b), context.DeadlineExceeded)
	require.Less(t, time.Since(began), promptly)
	require.Equal(t, 100, b.Pending())

	h.Mend(t)
	mustPublish(t, sink, events[100:])
	CheckOnce(t, events, h.Read(t, topic))
}

// testBreak takes the server away several times while batches are being published.
func testBreak(t *testing.T, h Harness) {
	sink, topics := h.open(t), []string{h.Topic(t), h.Topic(t)}
	events := Events(topics, 50, 25_000, 300)
	var retries atomic.Int64
	retrying := publish.WithRetry(sink, publish.RetryOptions{Max: 500 * time.Millisecond, OnRetry: func(error, int, time.Duration) { retries.Add(1) }})

	// The first batch goes through so that the outages meet a sink at work.
	mustPublish(t, sink, events[:1000])
	progress := make(chan int, 1)
	done := make(chan error, 1)
	go func() {
		for from := 1000; from < len(events); from += 500 {
			b := publish.NewBatch(events[from : from+500])
			if err := retrying.Publish(t.Context(), b); err != nil {
				done <- err
				return
			}
			select {
			case progress <- from:
			default:
			}
			time.Sleep(5 * time.Millisecond) // leave something for the outages
		}
		done <- nil
	}()
	for range 2 {
		select {
		case <-progress:
		case err := <-done:
			t.Fatalf("publishing ended before the outage: %v", err)
		}
		h.Break(t)
		before := retries.Load()
		require.Eventually(t, func() bool { return retries.Load() >= before+2 }, 30*time.Second, 10*time.Millisecond,
			"publishing goes on without the server")
		h.Mend(t)
		for len(progress) > 0 {
			<-progress
		}
	}
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("publishing has not finished two minutes after the last outage")
	}
	for _, topic := range topics {
		repeats := CheckAll(t, ofTopic(events, topic), h.Read(t, topic))
		t.Logf("%d of %d events were repeated", repeats, len(events)/len(topics))
	}
}
