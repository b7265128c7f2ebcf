package publish_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

// flaky is a sink in memory that fails as it is told.
type flaky struct {
	publish.Null
	attempts int
	fail     func(attempt int, b *publish.Batch) error
}

func (f *flaky) Publish(ctx context.Context, b *publish.Batch) error {
	f.attempts++
	if err := f.fail(f.attempts, b); err != nil {
		return err
	}
	return f.Null.Publish(ctx, b)
}

func batchOf(n int) *publish.Batch {
	return publish.NewBatch(publishtest.Events([]string{"t"}, 1, n, 100))
}

func TestRetryUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &flaky{fail: func(attempt int, _ *publish.Batch) error {
			if attempt <= 12 {
				return errors.New("broker away")
			}
			return nil
		}}
		var waits []time.Duration
		var away time.Duration
		var log strings.Builder
		retrying := publish.WithRetry(sink, publish.RetryOptions{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnRetry: func(err error, attempt int, wait time.Duration) {
				require.EqualError(t, err, "broker away")
				waits = append(waits, wait)
				require.Len(t, waits, attempt)
			},
			OnRecovered: func(d time.Duration) { away = d },
		})
		began := time.Now()
		b := batchOf(3)
		require.NoError(t, retrying.Publish(t.Context(), b))
		require.Zero(t, b.Pending())
		require.Equal(t, time.Since(began), away)
		require.Len(t, waits, 12)
		expected := 100 * time.Millisecond
		for _, w := range waits {
			require.GreaterOrEqual(t, w, expected*3/4)
			require.LessOrEqual(t, w, min(expected*5/4, 5*time.Second))
			expected = min(2*expected, 5*time.Second)
		}
		require.Equal(t, 1, strings.Count(log.String(), "publishing failed"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "publishing works again"), log.String())
	})
}

func TestRetryLogsAnOutageEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		sink := &flaky{fail: func(int, *publish.Batch) error {
			if time.Since(began) < time.Hour {
				return errors.New("broker away")
			}
			return nil
		}}
		var log strings.Builder
		retrying := publish.WithRetry(sink, publish.RetryOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, retrying.Publish(t.Context(), batchOf(1)))
		still := strings.Count(log.String(), "publishing still fails")
		require.InDelta(t, 110, still, 15, "an hour has 120 half minutes")
	})
}

func TestRetryPassesRefusalsOn(t *testing.T) {
	refusal := &publish.PermanentError{Err: errors.New("too large")}
	for _, at := range []int{1, 3} {
		sink := &flaky{fail: func(attempt int, _ *publish.Batch) error {
			if attempt < at {
				return errors.New("broker away")
			}
			return fmt.Errorf("publish: %w", refusal)
		}}
		b := batchOf(1)
		err := publish.WithRetry(sink, publish.RetryOptions{Initial: time.Millisecond}).Publish(t.Context(), b)
		require.ErrorIs(t, err, error(refusal))
		require.Equal(t, at, sink.attempts)
		require.Equal(t, 1, b.Pending())
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("broker away")
		sink := &flaky{fail: func(int, *publish.Batch) error { return cause }}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began := time.Now()
		err := publish.WithRetry(sink, publish.RetryOptions{}).Publish(ctx, batchOf(1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
		require.Equal(t, 90*time.Second, time.Since(began))
	})
}

// A sink that takes some events each time is not one that is down: the waits stay short.
func TestRetryStartsOverWithProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &flaky{fail: func(attempt int, b *publish.Batch) error {
			b.Confirm(attempt - 1)
			if b.Pending() > 0 {
				return errors.New("slow")
			}
			return nil
		}}
		began := time.Now()
		require.NoError(t, publish.WithRetry(sink, publish.RetryOptions{}).Publish(t.Context(), batchOf(100)))
		require.Less(t, time.Since(began), 99*200*time.Millisecond)
	})
}
