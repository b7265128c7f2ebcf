package checkpoint_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// forEachServer runs a test on each kind of server that checkpoints are kept on.
func forEachServer(t *testing.T, test func(t *testing.T, s server)) {
	t.Helper()
	for name, s := range map[string]func(t *testing.T) server{
		"mysql":   func(t *testing.T) server { return onMySQL(testenv.MySQL(t)) },
		"mariadb": func(t *testing.T) server { return onMySQL(testenv.MariaDB(t)) },
		"redis":   func(t *testing.T) server { return onRedis(testenv.Redis(t)) },
		"kafka":   func(t *testing.T) server { return onKafka(testenv.Kafka(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s(t))
		})
	}
}

// holder is a process that holds a checkpoint and saves to it in a loop.
type holder struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// hold starts one and waits until it has saved.
func (s server) hold(t *testing.T, place string) *holder {
	t.Helper()
	cmd := childCommand(t, "hold on a server", place)
	o := s.options(place)
	switch o.Store {
	case checkpoint.KindMySQL:
		cmd.Env = append(cmd.Env, "KIND=mysql", "ADDRESS="+o.MySQL.Address, "ACCOUNT="+o.MySQL.User, "SECRET="+o.MySQL.Password)
	case checkpoint.KindRedis:
		cmd.Env = append(cmd.Env, "KIND=redis", "ADDRESS="+o.Redis.Address)
	case checkpoint.KindKafka:
		cmd.Env = append(cmd.Env, "KIND=kafka", "ADDRESS="+o.Kafka.Brokers[0])
	}
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	h := &holder{cmd: cmd, lines: bufio.NewScanner(out)}
	require.True(t, h.lines.Scan(), "the child saved nothing")
	return h
}

// holdOnServer is such a process.
func holdOnServer(place string) error {
	address := os.Getenv("ADDRESS")
	var s server
	switch os.Getenv("KIND") {
	case "mysql":
		s = onMySQL(&testenv.Server{Addr: address, RootUser: os.Getenv("ACCOUNT"), RootPassword: os.Getenv("SECRET")})
	case "redis":
		s = onRedis(&testenv.RedisServer{Addr: address})
	default:
		s = onKafka(&testenv.KafkaCluster{Brokers: []string{address}})
	}
	store, err := s.open(place, "shop")
	if err != nil {
		return err
	}
	ctx := context.Background()
	n := uint64(0)
	if r, err := store.Load(ctx); err == nil {
		n = r.Counters.Transactions
	} else if !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	for {
		n++
		if err := store.Save(ctx, numbered(n)); err != nil {
			if checkpoint.Elsewhere(err) {
				fmt.Println("refused:", err)
				return nil
			}
			return err
		}
		fmt.Println(n)
		time.Sleep(2 * time.Millisecond)
	}
}

// TestPausedHolderIsFenced stops a process for longer than its lease. Another one takes over, and the first, when it wakes, is
// refused: what the second saved stays.
func TestPausedHolderIsFenced(t *testing.T) {
	t.Parallel()
	forEachServer(t, func(t *testing.T, s server) {
		place := s.place(t)
		h := s.hold(t, place)
		_, err := s.open(place, "shop")
		var locked *checkpoint.LockedError
		require.ErrorAs(t, err, &locked, "it lives")
		require.Equal(t, h.cmd.Process.Pid, locked.Holder.PID)

		require.NoError(t, h.cmd.Process.Signal(syscall.SIGSTOP))
		second, err := s.open(place, "shop") // waits until the lease has run out
		require.NoError(t, err)
		before, err := second.Load(t.Context())
		require.NoError(t, err)
		next := numbered(7_000_000)
		require.NoError(t, second.Save(t.Context(), next))

		require.NoError(t, h.cmd.Process.Signal(syscall.SIGCONT))
		refusal := ""
		for h.lines.Scan() {
			refusal = h.lines.Text()
		}
		require.NoError(t, h.cmd.Wait())
		require.Contains(t, refusal, "refused: checkpoint "+second.Place()+" was taken over by process")
		require.Contains(t, refusal, fmt.Sprintf("process %d on host", os.Getpid()))

		// The second one goes on, and nobody wrote between.
		require.NoError(t, second.Save(t.Context(), numbered(7_000_001)))
		history, err := second.History(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(7_000_001), history[0].Record.Counters.Transactions)
		require.Equal(t, uint64(7_000_000), history[1].Record.Counters.Transactions)
		require.Equal(t, before.Counters, history[2].Record.Counters)
		require.Equal(t, os.Getpid(), history[1].By.PID)
		require.Equal(t, h.cmd.Process.Pid, history[2].By.PID)
		require.NoError(t, second.Close())
	})
}

// TestKilledHolder kills a process while it saves, several times. What it had said to be saved is there, or the save after it, and
// the next one is let in once the lease has run out.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	forEachServer(t, func(t *testing.T, s server) {
		place := s.place(t)
		last := ""
		for range 3 {
			h := s.hold(t, place)
			killer := time.AfterFunc(100*time.Millisecond, func() { _ = h.cmd.Process.Kill() })
			last = h.lines.Text()
			for h.lines.Scan() {
				last = h.lines.Text()
			}
			require.Error(t, h.cmd.Wait(), "it was killed")
			killer.Stop()
			began := time.Now()
			store, err := s.open(place, "shop")
			require.NoError(t, err)
			t.Logf("let in after %s", time.Since(began))
			r, err := store.Load(t.Context())
			require.NoError(t, err)
			requireNumbered(t, r)
			history, err := store.History(t.Context())
			require.NoError(t, err)
			require.Equal(t, r.Position.Offset, history[0].Record.Position.Offset)
			id := history[0].ID
			if id != last {
				require.Equal(t, last, history[1].ID, "a save that had returned is missing")
			}
			require.NoError(t, store.Close())
			last = id
		}
	})
}

// TestLostWhileIdle: who saves nothing notices too.
func TestLostWhileIdle(t *testing.T) {
	t.Parallel()
	s := onRedis(testenv.Redis(t))
	place := s.place(t)
	store, err := s.open(place, "shop")
	require.NoError(t, err)
	saver := &checkpoint.Saver{Store: store, Tracker: checkpoint.NewTracker(*numbered(1)), Logger: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- saver.Run(t.Context()) }()
	require.Eventually(t, func() bool { _, saved := saver.Last(); return saved }, time.Minute, time.Millisecond)
	require.NoError(t, testenv.Redis(t).Client().Set(t.Context(), place+"{shop}:holder", "another", 0).Err())
	err = <-ended
	var fenced *checkpoint.FencedError
	require.ErrorAs(t, err, &fenced)
	require.NoError(t, store.Close())
}
