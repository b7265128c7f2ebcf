package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// daemon is a running binlogd.
type daemon struct {
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	ended  chan struct{}
}

// buffer collects what a process writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func startDaemon(t *testing.T, dir string, args ...string) *daemon {
	t.Helper()
	d := &daemon{cmd: exec.CommandContext(t.Context(), os.Args[0], args...), ended: make(chan struct{})}
	d.cmd.Dir = dir
	d.cmd.Env = append(os.Environ(), runAsBinlogd+"=1")
	d.cmd.Stdout, d.cmd.Stderr = &d.stdout, &d.stderr
	require.NoError(t, d.cmd.Start())
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // the tests look at ProcessState
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		if t.Failed() {
			t.Logf("binlogd %s:\n%s", strings.Join(args, " "), d.stderr.String())
		}
	})
	return d
}

// await waits until the log holds words.
func (d *daemon) await(t *testing.T, words string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(d.stderr.String(), words) }, "the log to hold "+words)
}

// stop sends a signal and returns the exit code.
func (d *daemon) stop(t *testing.T, signal os.Signal) int {
	t.Helper()
	require.NoError(t, d.cmd.Process.Signal(signal))
	select {
	case <-d.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("binlogd does not end")
	}
	return d.cmd.ProcessState.ExitCode()
}

func eventually(t *testing.T, done func() bool, what string) {
	t.Helper()
	require.Eventually(t, done, 60*time.Second, 20*time.Millisecond, "waited for "+what)
}

// subjects are the subjects of the events in a text of one event a line.
func subjects(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(text) {
		var event struct{ Subject string }
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		found = append(found, event.Subject)
	}
	return found
}

func (s *setup) insert(t *testing.T, id int) {
	t.Helper()
	s.server.Exec(t, fmt.Sprintf("INSERT INTO `%s`.orders VALUES (%d, 'new')", s.database, id))
}

func TestRunPublishesStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.write(t)
		published := func() []string {
			text, err := os.ReadFile(filepath.Join(s.dir, "events.jsonl"))
			require.NoError(t, err)
			return subjects(t, string(text))
		}
		d := startDaemon(t, s.dir, "run")
		d.await(t, "reading the binlog")
		s.insert(t, 1)
		eventually(t, func() bool { return len(published()) == 1 }, "the first event")
		require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
		require.Contains(t, d.stderr.String(), "msg=stopped")
		require.Empty(t, d.stdout.String(), "only events and results go to standard output")

		s.insert(t, 2)
		d = startDaemon(t, s.dir, "run", "--log-format", "json")
		eventually(t, func() bool { return len(published()) == 2 }, "the second event")
		require.Equal(t, exitOK, d.stop(t, os.Interrupt))
		require.Equal(t, []string{"1", "2"}, published())
		for line := range strings.Lines(d.stderr.String()) {
			require.True(t, json.Valid([]byte(line)), line)
		}
	})
}

func TestAQuickLookLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.insert(t, 1)
	d := startDaemon(t, s.dir, "run", "--source", fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, s.server.Addr, s.database))
	d.await(t, "reading the binlog")
	s.insert(t, 2)
	eventually(t, func() bool { return len(subjects(t, d.stdout.String())) == 1 }, "the event")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
	require.Equal(t, []string{"2"}, subjects(t, d.stdout.String()), "it begins with what is new")
	require.NotContains(t, d.stderr.String(), s.password)
	left, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestARestartWaitsForTheSource(t *testing.T) {
	t.Parallel()
	server := testenv.StartMySQL(t, testenv.Options{})
	s := newSetup(t, server)
	s.write(t)
	d := startDaemon(t, s.dir, "run")
	d.await(t, "reading the binlog")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
	s.insert(t, 1)

	server.Stop(t)
	d = startDaemon(t, s.dir, "run")
	d.await(t, "cannot start again yet")
	server.Start(t)
	eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(s.dir, "events.jsonl"))
		return err == nil && len(subjects(t, string(text))) == 1
	}, "the event")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))

	server.Stop(t)
	d = startDaemon(t, s.dir, "run")
	d.await(t, "cannot start again yet")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt), "a signal ends the wait")
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	// A sink that never answers keeps the orderly end from coming.
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	d := &daemon{cmd: exec.CommandContext(t.Context(), os.Args[0], "run", "--source", fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, s.server.Addr, s.database)), ended: make(chan struct{})}
	d.cmd.Env = append(os.Environ(), runAsBinlogd+"=1")
	d.cmd.Stdout, d.cmd.Stderr = writer, &d.stderr
	require.NoError(t, d.cmd.Start())
	require.NoError(t, writer.Close())
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // the test looks at ProcessState
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
	})
	d.await(t, "reading the binlog")
	s.server.Exec(t, "CREATE TABLE `"+s.database+"`.big (id INT AUTO_INCREMENT PRIMARY KEY, text LONGTEXT); INSERT INTO `"+s.database+"`.big (text) VALUES (REPEAT('x', 1000000))")
	first := make([]byte, 1)
	_, err = io.ReadFull(reader, first) // the event is on its way; the rest of it does not fit the pipe
	require.NoError(t, err)
	require.NoError(t, d.cmd.Process.Signal(os.Interrupt))
	select {
	case <-d.ended:
		t.Fatal("binlogd ended although its sink is stuck: ", d.stderr.String())
	case <-time.After(500 * time.Millisecond):
	}
	begun := time.Now()
	require.Equal(t, 128+int(syscall.SIGTERM), d.stop(t, syscall.SIGTERM))
	require.Less(t, time.Since(begun), 5*time.Second)
	require.Contains(t, d.stderr.String(), "second signal")
}

func TestAReaderThatGoesAwayIsTheSinksError(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "run", "--source", fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, s.server.Addr, s.database))
	cmd.Env = append(os.Environ(), runAsBinlogd+"=1")
	var stderr buffer
	cmd.Stdout, cmd.Stderr = writer, &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	eventually(t, func() bool { return strings.Contains(stderr.String(), "reading the binlog") }, "the start")
	require.NoError(t, reader.Close())
	s.insert(t, 1)
	require.Error(t, cmd.Wait())
	require.Equal(t, exitSink, cmd.ProcessState.ExitCode(), stderr.String())
}

func TestTheAdminServerTellsOfTheRun(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.more = "admin: {listen: \"127.0.0.1:0\"}\n"
	s.write(t)
	d := startDaemon(t, s.dir, "run")
	d.await(t, "msg=\"admin server\"")
	_, after, _ := strings.Cut(d.stderr.String(), "msg=\"admin server\" address=")
	address := "http://" + strings.Fields(after)[0]
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(body)
	}
	eventually(t, func() bool { code, _ := get("/readyz"); return code == http.StatusOK }, "/readyz")
	s.insert(t, 1)
	eventually(t, func() bool { _, body := get("/status"); return strings.Contains(body, `"events": 1`) }, "the event in /status")
	_, metrics := get("/metrics")
	require.Contains(t, metrics, "binlogd_events_total{")
	_, status := get("/status")
	require.NotContains(t, status, s.password)
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
}

func TestATakenAdminPort(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.more = "admin: {listen: \"" + s.server.Addr + "\"}\n"
	s.write(t)
	code, _, stderr := binlogd(t, s.dir, "run")
	require.Equal(t, exitConfig, code, stderr)
	require.Contains(t, stderr, "admin.listen")
}
