package pipeline_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/publish"
)

// live is a pipeline that runs in the test's own process.
type live struct {
	*pipeline.Pipeline
	settings settings
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error // of Run, once ended is closed
}

// run runs a pipeline in this process, until stop or the end of the test.
func (s settings) run(t *testing.T, wrap wrapper) *live {
	t.Helper()
	p, closeAll, err := s.open(slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), wrap)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l := &live{Pipeline: p, settings: s, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		l.err = p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-l.ended
		require.NoError(t, closeAll())
	})
	return l
}

// stop ends it in order. It must not have ended by itself.
func (l *live) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	<-l.ended
	require.NoError(t, l.err)
}

// fails waits until it ends by itself, and says why it did.
func (l *live) fails(t *testing.T) error {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(patience):
		require.FailNow(t, "the pipeline goes on")
	}
	require.Error(t, l.err)
	return l.err
}

// caughtUp waits until the checkpoint covers all that the server has.
func (l *live) caughtUp(t *testing.T, server *testenv.Server) {
	t.Helper()
	awaitCaughtUp(t, server, l.settings.Checkpoint)
}

// once runs a pipeline until it has caught up, and ends it in order.
func (s settings) once(t *testing.T, server *testenv.Server) {
	t.Helper()
	p, closeAll, err := s.open(slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	awaitCaughtUp(t, server, s.Checkpoint)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, closeAll())
}

// observer sees what becomes durable and what is saved, in the order in which it does.
type observer struct {
	mu        sync.Mutex
	confirmed int                                            // events
	saved     func(confirmed int, record *checkpoint.Record) // called at each save, with the events that were durable before it
	slow      time.Duration                                  // pause before each batch
}

func (o *observer) wrap(sink publish.Sink, store checkpoint.Store) (publish.Sink, checkpoint.Store) {
	return &observedSink{sink, o}, &observedStore{store, o}
}

func (o *observer) events() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.confirmed
}

type observedSink struct {
	publish.Sink
	*observer
}

func (s *observedSink) Publish(ctx context.Context, b *publish.Batch) error {
	time.Sleep(s.slow)
	before := b.Pending()
	err := s.Sink.Publish(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed += before - b.Pending()
	return err
}

type observedStore struct {
	checkpoint.Store
	*observer
}

func (s *observedStore) Save(ctx context.Context, r *checkpoint.Record) error {
	if s.saved != nil {
		s.saved(s.events(), r)
	}
	return s.Store.Save(ctx, r)
}
