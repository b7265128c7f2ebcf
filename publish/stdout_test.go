package publish_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

func TestStdout(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	publishtest.Run(t, publishtest.Harness{
		Open: func(testing.TB) publish.Sink {
			return publish.NewStdout(writerFunc(func(p []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return out.Write(p) }))
		},
		Topic: freshTopic,
		Read: func(t testing.TB, topic string) []publishtest.Got {
			// A write that was under way when its context ended may end now.
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			return lines(t, out.Bytes(), topic)
		},
		Refused: refusedLine,
		Lines:   true,
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestStdoutReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	sink := publish.NewStdout(w)
	closeAfter(t, sink)
	b := publish.NewBatch(publishtest.Events([]string{"t"}, 1, 10, 100))
	err = sink.Publish(t.Context(), b)
	var permanent *publish.PermanentError
	require.ErrorAs(t, err, &permanent)
	require.ErrorIs(t, err, syscall.EPIPE)
	require.Equal(t, 10, b.Pending())
	require.NoError(t, w.Close())
}

func TestStdoutDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	sink := publish.NewStdout(full)
	closeAfter(t, sink)
	b := publish.NewBatch(publishtest.Events([]string{"t"}, 1, 10, 100))
	err = sink.Publish(t.Context(), b)
	require.ErrorIs(t, err, syscall.ENOSPC)
	var permanent *publish.PermanentError
	require.False(t, errors.As(err, &permanent))
	require.Equal(t, 10, b.Pending())
}

// A writer that takes a few bytes and fails, wherever that is in a line, gets whole lines,
// each once.
func TestStdoutPartialWrites(t *testing.T) {
	events := publishtest.Events([]string{"t"}, 2, 50, 80)
	for limit := 1; limit < 400; limit += 7 {
		var out bytes.Buffer
		failed := 0
		sink := publish.NewStdout(writerFunc(func(p []byte) (int, error) {
			if len(p) <= limit {
				return out.Write(p)
			}
			failed++
			n, _ := out.Write(p[:limit])
			return n, syscall.EAGAIN
		}))
		retrying := publish.WithRetry(sink, publish.RetryOptions{Initial: time.Nanosecond, Max: time.Nanosecond})
		for from := 0; from < len(events); from += 10 {
			require.NoError(t, retrying.Publish(t.Context(), publish.NewBatch(events[from:from+10])))
		}
		require.NoError(t, sink.Close())
		require.Positive(t, failed)
		publishtest.CheckOnce(t, events, lines(t, out.Bytes(), "t"))
	}
}

// A batch that is given up inside a line leaves a whole line behind.
func TestStdoutGivenUpInsideALine(t *testing.T) {
	var out bytes.Buffer
	limit := 10
	sink := publish.NewStdout(writerFunc(func(p []byte) (int, error) {
		if limit < len(p) {
			n, _ := out.Write(p[:limit])
			return n, syscall.EIO
		}
		return out.Write(p)
	}))
	closeAfter(t, sink)
	events := publishtest.Events([]string{"t"}, 2, 4, 80)
	require.ErrorIs(t, sink.Publish(t.Context(), publish.NewBatch(events[:2])), syscall.EIO)
	limit = 1 << 20
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[2:])))
	got := lines(t, out.Bytes(), "t")
	require.Len(t, got, 3)
	require.Equal(t, []string{events[0].ID, events[2].ID, events[3].ID}, []string{got[0].ID, got[1].ID, got[2].ID})
}

// Nobody reads the pipe: the end of the context is noticed, and nothing is lost once
// somebody reads.
func TestStdoutNobodyReads(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	r, w := io.Pipe()
	sink := publish.NewStdout(w)
	events := publishtest.Events([]string{"t"}, 2, 2000, 200)
	b := publish.NewBatch(events)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, sink.Publish(ctx, b), context.DeadlineExceeded)
	require.Equal(t, len(events), b.Pending())

	read := make(chan []byte)
	go func() {
		data, _ := io.ReadAll(r)
		read <- data
	}()
	require.NoError(t, sink.Publish(t.Context(), b))
	require.NoError(t, sink.Close())
	require.NoError(t, w.Close())
	publishtest.CheckOnce(t, events, lines(t, <-read, "t"))
	// What an earlier test's Kafka client still has to finish is not of this sink.
	goleak.VerifyNone(t, leaks, goleak.IgnoreAnyFunction("github.com/IBM/sarama.(*client).tryRefreshMetadata"))
}
