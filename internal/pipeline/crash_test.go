package pipeline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// finish runs a child that does not crash until the checkpoint holds all that the server has executed, and ends it in order.
func finish(t *testing.T, server *testenv.Server, s settings) {
	t.Helper()
	s.Crash = nowhere
	cmd := s.start(t)
	awaitCaughtUp(t, server, s.Checkpoint)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// awaitCaughtUp waits until the checkpoint covers the server's executed set.
func awaitCaughtUp(t *testing.T, server *testenv.Server, path string) {
	t.Helper()
	want := server.GTIDExecuted(t)
	require.Eventually(t, func() bool {
		record, err := checkpoint.ReadFile(path)
		if err != nil {
			return false
		}
		executed := record.Position.GTIDs
		set, err := parseSet(executed.Flavor(), want)
		return err == nil && executed.ContainsSet(set)
	}, 90*time.Second, 20*time.Millisecond, "the checkpoint does not reach %s", want)
}

func TestKilledAtEachPoint(t *testing.T) {
	const rounds = 6
	for _, point := range []crashPoint{inside, published, acknowledged, saving, saved} {
		t.Run(string(point), func(t *testing.T) {
			server := testenv.MySQL(t)
			db := server.Database(t)
			server.Exec(t, "USE "+db, modelSchema)
			s := newSettings(t, server, db+".*")
			finish(t, server, s) // the checkpoint is there before the first write
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait := writeLoad(ctx, t, server, db, 2, 2*time.Millisecond)
			for range rounds {
				s.Crash, s.Countdown = point, rand.IntN(20)
				expectKilled(t, s.start(t))
			}
			cancel()
			wait()
			finish(t, server, s)
			found := verify(t, server, db, readEvents(t, s.Events))
			t.Logf("%+v", found)
			if point == published || point == acknowledged {
				require.NotZero(t, found.repeats, "the crash came after events were published and before the checkpoint knew")
			}
		})
	}
}

func expectKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was to be killed, and ended with %v", err)
	}
}

// TestKilledAtRandom kills the process 200 times at any moment while the database is written to.
func TestKilledAtRandom(t *testing.T) {
	const kills = 200
	server := testenv.MySQL(t)
	db := server.Database(t)
	server.Exec(t, "USE "+db, modelSchema)
	s := newSettings(t, server, db+".*")
	finish(t, server, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := writeLoad(ctx, t, server, db, 2, 5*time.Millisecond)
	for range kills {
		cmd := s.start(t)
		time.Sleep(rand.N(600 * time.Millisecond))
		require.NoError(t, cmd.Process.Kill())
		expectKilled(t, cmd)
	}
	cancel()
	wait()
	finish(t, server, s)
	found := verify(t, server, db, readEvents(t, s.Events))
	t.Logf("%d kills: %+v", kills, found)
	require.NotZero(t, found.distinct)
}
