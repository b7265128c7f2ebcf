package publish_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
	"github.com/binlogd/binlogd/publish/publishtest"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	publishtest.Run(t, publishtest.Harness{
		Open:  func(t testing.TB) publish.Sink { return openFile(t, path) },
		Topic: freshTopic,
		Read: func(t testing.TB, topic string) []publishtest.Got {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			return lines(t, data, topic)
		},
		Refused: refusedLine,
		Lines:   true,
	})
}

func openFile(t testing.TB, path string) *publish.File {
	t.Helper()
	sink, err := publish.OpenFile(publish.FileOptions{Path: path}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	return sink
}

// refusedLine is an event that cannot be one line.
func refusedLine(_ testing.TB, topic string) mapping.Event {
	e := publishtest.Event(topic, "k", 2, 0)
	e.Payload = []byte("{\n}")
	return e
}

// lines returns the events of a topic in the lines of data, all of which must be whole.
func lines(t testing.TB, data []byte, topic string) []publishtest.Got {
	t.Helper()
	if len(data) > 0 {
		require.Equal(t, byte('\n'), data[len(data)-1], "the last line is torn")
	}
	var got []publishtest.Got
	prefix := publishtest.Event(topic, "", 0, 0).ID
	prefix = prefix[:strings.LastIndexByte(prefix, '-')+1]
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 8<<20)
	for scanner.Scan() {
		require.True(t, bytes.HasPrefix(scanner.Bytes(), []byte("{")) && bytes.HasSuffix(scanner.Bytes(), []byte("}")), "line %.200q", scanner.Text())
		if !bytes.Contains(scanner.Bytes(), []byte(prefix)) {
			continue
		}
		var event struct{ ID string }
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &event), "line %.200q", scanner.Text())
		if strings.HasPrefix(event.ID, prefix) {
			got = append(got, publishtest.Got{ID: event.ID, Payload: bytes.Clone(scanner.Bytes())})
		}
	}
	require.NoError(t, scanner.Err())
	return got
}

func TestFileTornLine(t *testing.T) {
	events := publishtest.Events([]string{"shop.orders"}, 1, 4, 100)
	whole := string(events[0].Payload) + "\n" + string(events[1].Payload) + "\n"
	for name, c := range map[string]struct{ before, after string }{
		"missing":             {"", ""},
		"whole":               {whole, whole},
		"torn":                {whole + `{"id":"x","a`, whole},
		"without a line end":  {whole + string(events[2].Payload), whole},
		"torn from the start": {`{"id"`, ""},
		"long torn line":      {whole + strings.Repeat("y", 300_000), whole},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.jsonl")
			if name != "missing" {
				require.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
			}
			sink := openFile(t, path)
			require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[3:])))
			require.NoError(t, sink.Close())
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.after+string(events[3].Payload)+"\n", string(data))
		})
	}
}

func TestFileCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.jsonl")
	sink := openFile(t, path)
	closeAfter(t, sink)
	for name, c := range map[string]struct{ path, want string }{
		"in use":       {path, "another process publishes into it"},
		"no directory": {filepath.Join(dir, "missing", "events.jsonl"), "create the directory"},
		"a directory":  {dir, "is a directory"},
		"a device":     {"/dev/null", "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := publish.OpenFile(publish.FileOptions{Path: c.path}, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestFileRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	sink := openFile(t, path)
	closeAfter(t, sink)
	events := publishtest.Events([]string{"shop.orders"}, 1, 4, 100)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[:1])))
	require.NoError(t, os.Rename(path, path+".1"))
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[1:2])))
	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[2:3])))
	require.NoError(t, os.Remove(path))
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[3:])))

	for name, want := range map[string]mapping.Event{path + ".1": events[0], path: events[3]} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want.Payload)+"\n", string(data), name)
	}
}

// The disk is a small tmpfs of a process of its own, which fills up in the middle of a
// batch and gets room again.
func TestFileDiskFull(t *testing.T) {
	if os.Getenv("PUBLISH_TEST_DISK") != "" {
		diskFull(t)
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileDiskFull$", "-test.v")
	command.Env = append(os.Environ(), "PUBLISH_TEST_DISK="+t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func diskFull(t *testing.T) {
	dir := os.Getenv("PUBLISH_TEST_DISK")
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))

	path := filepath.Join(dir, "events.jsonl")
	sink := openFile(t, path)
	closeAfter(t, sink)
	events := publishtest.Events([]string{"shop.orders"}, 3, 2500, 300)
	require.NoError(t, sink.Publish(t.Context(), publish.NewBatch(events[:500])))
	confirmed, err := os.ReadFile(path)
	require.NoError(t, err)

	b := publish.NewBatch(events[500:])
	for range 3 {
		err = sink.Publish(t.Context(), b)
		require.ErrorIs(t, err, unix.ENOSPC)
		require.ErrorContains(t, err, "make room")
		var permanent *publish.PermanentError
		require.False(t, errors.As(err, &permanent))
		require.Equal(t, 2000, b.Pending())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(confirmed), string(data), "what is confirmed stays, without a torn line")
	}
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, sink.Publish(t.Context(), b))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	publishtest.CheckOnce(t, events, lines(t, data, "shop.orders"))

	require.NoError(t, os.WriteFile(ballast, nil, 0o600))
	fill(t, ballast)
	require.ErrorContains(t, sink.Ping(t.Context()), "make room")
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}
