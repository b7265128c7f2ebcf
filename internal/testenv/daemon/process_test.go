package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parentVariable makes the test program be the parent of a server, to be killed.
const parentVariable = "BINLOGD_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		p, err := Start(context.Background(), sleeper(dir))
		fmt.Println(p.PID(), err)
		select {}
	}
	os.Exit(m.Run())
}

// sleeper is a server that does nothing and is ready at once.
func sleeper(dir string) Spec {
	return Spec{
		Name: "sleeper", Command: []string{"sleep", "300"}, Dir: dir,
		Ready:      func(context.Context) error { return nil },
		StartLimit: 10 * time.Second, StopLimit: 10 * time.Second,
	}
}

func TestServersDieWithAKilledParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(line), " <nil>"))
	require.NoError(t, err, line)
	require.NoError(t, syscall.Kill(pid, 0), "runs")
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond)
}

// gone reports whether a process has ended; one that nobody has waited for counts.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestAServerThatExitsFailsAtOnceWithTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	spec := sleeper(t.TempDir())
	spec.Command = []string{"sh", "-c", "echo no room on the disk; exit 3"}
	spec.Ready = func(context.Context) error { return errors.New("connection refused") }
	_, err := Start(t.Context(), spec)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no room on the disk")
}

func TestAServerThatNeverGetsReadyIsNotLeftRunning(t *testing.T) {
	t.Parallel()
	spec := sleeper(t.TempDir())
	spec.Command = []string{"sh", "-c", "echo $$; exec sleep 300"}
	spec.Ready = func(context.Context) error { return errors.New("not yet") }
	spec.StartLimit = 300 * time.Millisecond
	_, err := Start(t.Context(), spec)
	require.ErrorContains(t, err, "not ready after 300ms: not yet")
	log, readErr := os.ReadFile(spec.LogFile())
	require.NoError(t, readErr)
	pid, readErr := strconv.Atoi(strings.TrimSpace(string(log)))
	require.NoError(t, readErr)
	require.True(t, gone(pid))
}

func TestStopReachesAPausedServer(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), sleeper(t.TempDir()))
	require.NoError(t, err)
	p.Pause()
	require.NoError(t, p.Stop())
	require.True(t, gone(p.PID()))
}

func TestReservedPortsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 50 {
		port, release, err := ReservePort()
		require.NoError(t, err)
		t.Cleanup(release)
		require.False(t, seen[port])
		seen[port] = true
		require.NoError(t, CheckPort(port))
	}
}
