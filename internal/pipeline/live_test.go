package pipeline_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/internal/testenv"
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
		l.err = errors.Join(p.Run(ctx), closeAll())
	}()
	t.Cleanup(func() {
		cancel()
		<-l.ended
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
	defer func() {
		if t.Failed() {
			l.cancel()
			<-l.ended
			t.Logf("the pipeline ended: %v", l.err)
		}
	}()
	awaitCaughtUpOf(t, server, l.settings.record, l.ended)
}

// once runs a pipeline until it has caught up with the server, to which it is connected then, and ends it in order.
func (s settings) once(t *testing.T, server *testenv.Server) {
	t.Helper()
	l := s.run(t, nil)
	require.Eventually(t, func() bool { return l.Stats().Source.Connected }, patience, 5*time.Millisecond, "the source does not get connected")
	l.caughtUp(t, server)
	l.stop(t)
}

// TestStoppedWhileStarting: to be told to stop is no failure, also while the server does not answer yet.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	s := newSettings(t, server, "no_such.*")
	s.once(t, server)
	proxy := testenv.NewProxy(t, server.Addr)
	proxy.Blackhole(true)
	for _, start := range []string{"with a checkpoint", "without"} {
		s.Address = proxy.Addr
		l := s.run(t, nil)
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		l.stop(t)
		require.Less(t, time.Since(began), 3*time.Second, start)
		s = newSettings(t, server, "no_such.*")
	}
}

// TestStartedBeforeTheServer: a start that has a checkpoint waits for a server that does not answer yet.
func TestStartedBeforeTheServer(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	db := server.Database(t)
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	proxy := testenv.NewProxy(t, server.Addr)
	proxy.Refuse(t, true)
	s.Address = proxy.Addr
	l := s.run(t, nil)
	server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY)", "INSERT INTO "+db+".a VALUES (1)")
	time.Sleep(200 * time.Millisecond)
	proxy.Refuse(t, false)
	l.caughtUp(t, server)
	l.stop(t)
	require.Equal(t, []string{"1"}, keys(s.events(t)))
}
