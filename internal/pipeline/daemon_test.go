package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/publish"
)

// memoryLimit is what the daemon may have resident at any time, in MiB, whatever it reads.
const memoryLimit = 64

// binlogd is the program itself, as it is shipped: built without the race detector, with a configuration file.
type binlogd struct {
	cmd    *exec.Cmd
	admin  string // address
	stderr lockedBuffer
	ended  chan struct{}
}

// launch starts the program. More are further lines of its configuration.
func (s settings) launch(t *testing.T, more string) *binlogd {
	t.Helper()
	dir := filepath.Dir(s.Checkpoint)
	port, release, err := daemon.ReservePort()
	require.NoError(t, err)
	t.Cleanup(release)
	d := &binlogd{admin: daemon.Address(port), ended: make(chan struct{})}
	name, kept := "test", fmt.Sprintf("path: '%s'", s.Checkpoint)
	if s.Publish.ExactlyOnce() {
		name, kept = s.name(), "lease: 500ms"
	}
	config := fmt.Sprintf("name: %s\nsource: {address: '%s', addresses: [%s], user: %s, password: '%s', heartbeat: 400ms, timeout: 2s}\n"+
		"checkpoint: {%s, interval: 50ms}\npublish: %s\nadmin: {listen: '%s'}\nevents:\n  - table: '%s'\n%s",
		name, s.Address, strings.Join(s.Addresses, ", "), s.User, s.Password, kept, publishYAML(s.Publish), d.admin, s.Tables, more)
	path := filepath.Join(dir, "binlogd.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	d.cmd = exec.Command(testenv.ShippedBinlogd(t), "run", "-c", path)
	d.cmd.Stderr = io.MultiWriter(&d.stderr, t.Output())
	if s.Zone != "" {
		d.cmd.Env = append(os.Environ(), "TZ="+s.Zone)
	}
	d.cmd.Dir = dir
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, d.cmd.Start())
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // wait looks at how it ended
	}()
	t.Cleanup(d.kill)
	return d
}

// daemon starts the program and waits until it is ready.
func (s settings) daemon(t *testing.T, more string) *binlogd {
	t.Helper()
	d := s.launch(t, more)
	d.await(t, "/readyz", http.StatusOK)
	return d
}

// publishYAML is a publish section.
func publishYAML(o publish.Options) string {
	switch {
	case o.Kafka != nil:
		more := ""
		if o.Kafka.TransactionTimeout != 0 {
			more = fmt.Sprintf(", transaction_timeout: %s", o.Kafka.TransactionTimeout)
		}
		return fmt.Sprintf("{kafka: {brokers: ['%s'], partitions: %d, timeout: 2s, exactly_once: %t%s}}",
			strings.Join(o.Kafka.Brokers, "','"), o.Kafka.Partitions, o.Kafka.ExactlyOnce, more)
	case o.Redis != nil:
		return fmt.Sprintf("{redis: {address: '%s', timeout: 2s, exactly_once: %t}}", o.Redis.Address, o.Redis.ExactlyOnce)
	default:
		return fmt.Sprintf("{file: {path: '%s'}}", o.File.Path)
	}
}

// ask asks the admin server: the status is 0 where it does not answer.
func (d *binlogd) ask(ctx context.Context, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.admin+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// await waits until the admin server answers with a status, and gives the answer.
func (d *binlogd) await(t *testing.T, path string, status int) (body string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var got int
		if got, body = d.ask(t.Context(), path); got == status {
			return body
		}
		select {
		case <-d.ended:
			require.FailNow(t, "binlogd ended", d.stderr.String())
		default:
		}
		require.Less(t, time.Now(), deadline, "%s does not become %d: %s", path, status, body)
	}
}

// peak is the most memory that it had resident so far, in MiB. It must be alive.
func (d *binlogd) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found, "the program has ended")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib >> 10
}

// stop ends it in order. What it said until then is for operators.
func (d *binlogd) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	code, message := d.wait(t)
	require.Zero(t, code, message)
	require.NotContains(t, message, ".go:", "a stack trace")
}

func (d *binlogd) kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.ended
}

// wait waits until it ends by itself, and gives its exit code and what it said.
func (d *binlogd) wait(t *testing.T) (code int, message string) {
	t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		require.FailNow(t, "binlogd goes on")
	}
	return d.cmd.ProcessState.ExitCode(), d.stderr.String()
}

// lockedBuffer can be read while it is written to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
