package pipeline_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// xaLoad writes XA transactions: some are committed at once, some rolled back, some wait prepared for a while, also across a restart of
// the server.
type xaLoad struct {
	load
	pending []string // prepared, oldest first
	number  int
}

// start writes until ctx ends; wait returns then, when all that was prepared is resolved.
func (l *xaLoad) start(ctx context.Context, t *testing.T) (wait func()) {
	var group sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	group.Go(func() {
		for ctx.Err() == nil {
			if err := l.prepare(context.WithoutCancel(ctx), random); err != nil {
				time.Sleep(20 * time.Millisecond)
			}
			for len(l.pending) > random.IntN(8) {
				l.resolve(context.WithoutCancel(ctx), random)
			}
			time.Sleep(l.pause)
		}
	})
	return func() {
		t.Helper()
		group.Wait()
		// The session that prepared the last ones may still be ending: then they are not known to others yet.
		require.Eventually(t, func() bool {
			rows := l.server.Query(t, "XA RECOVER")
			for _, row := range rows {
				_, _ = l.server.DB().ExecContext(t.Context(), "XA COMMIT '"+row["data"]+"'")
			}
			return len(rows) == 0
		}, patience, 20*time.Millisecond, "XA transactions stay prepared")
	}
}

// prepare writes one XA transaction on a connection of its own up to XA PREPARE. Its rows are those of no other one that is prepared.
func (l *xaLoad) prepare(ctx context.Context, random *rand.Rand) error {
	conn, err := l.server.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer conn.Raw(func(any) error { return driver.ErrBadConn }) // MariaDB lets another session end it only then
	l.number++
	xid := fmt.Sprintf("%s-%d", l.db, l.number)
	statements := []string{"XA START '" + xid + "'"}
	for range 1 + random.IntN(4) {
		statements = append(statements, l.change(1_000_000+l.number%30*10+random.IntN(10), random))
	}
	for _, statement := range append(statements, "XA END '"+xid+"'", "XA PREPARE '"+xid+"'") {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	l.pending = append(l.pending, xid)
	return nil
}

// resolve commits the oldest prepared one, or rolls it back. Where the server is away, that is for the end.
func (l *xaLoad) resolve(ctx context.Context, random *rand.Rand) {
	verb := "COMMIT"
	if random.IntN(4) == 0 {
		verb = "ROLLBACK"
	}
	_, _ = l.server.DB().ExecContext(ctx, fmt.Sprintf("XA %s '%s'", verb, l.pending[0]))
	l.pending = l.pending[1:]
}

// TestXAUnderLoadWithKills kills the pipeline while XA transactions are prepared and resolved, and restarts and crashes the server too.
func TestXAUnderLoadWithKills(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		plain := newLoad(t, server)
		xa := &xaLoad{load: plain}
		s := newSettings(t, server, plain.db+".*")
		s.once(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waitPlain, waitXA := plain.start(ctx), xa.start(ctx, t)
		for i := range 15 {
			cmd := s.start(t)
			time.Sleep(100*time.Millisecond + rand.N(500*time.Millisecond))
			switch i {
			case 5:
				server.Restart(t)
			case 10:
				server.Kill()
				server.Start(t)
			}
			require.NoError(t, cmd.Process.Kill())
			expectKilled(t, cmd)
		}
		cancel()
		waitPlain()
		waitXA()
		s.once(t, server)
		t.Logf("%d prepared: %+v", xa.number, plain.verify(t, s.to.read(t)))
	})
}
