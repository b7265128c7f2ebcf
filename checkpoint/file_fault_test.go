package checkpoint_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// childVariable makes the test binary run one of the children instead of its tests: a
// process that can be killed, or whose disk can be full.
const childVariable = "CHECKPOINT_TEST_CHILD"

var children = map[string]func(path string) error{
	"save in a loop":      saveInLoop,
	"full disk":           fullDisk,
	"read-only disk":      readOnlyDisk,
	"forbidden directory": forbiddenDirectory,
	"hold on a server":    holdOnServer,
}

func TestMain(m *testing.M) {
	child, isChild := children[os.Getenv(childVariable)]
	if !isChild {
		testenv.Main(m)
	}
	if err := child(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func childCommand(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	require.Contains(t, children, name)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, path)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	return cmd
}

// withMounts lets the child mount what it likes, for nobody else to see; without being
// root, in a user namespace where it is.
func withMounts(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return cmd
}

// numbered is the n-th record of a series; its size varies, and every field tells n.
func numbered(n uint64) *checkpoint.Record {
	set := canal.NewGTIDSet(canal.MySQL)
	for i := range n % 3000 {
		set.Add(canal.GTID{UUID: [16]byte{1}, Number: 2*i + 1})
	}
	return &checkpoint.Record{
		Name:     "shop",
		Position: canal.Position{GTIDs: set, File: fmt.Sprintf("binlog.%06d", n), Offset: n},
		Counters: checkpoint.Counters{Transactions: n},
	}
}

func requireNumbered(t *testing.T, r *checkpoint.Record) {
	t.Helper()
	want := numbered(r.Counters.Transactions)
	require.Equal(t, want.Position.File, r.Position.File)
	require.Equal(t, want.Position.Offset, r.Position.Offset)
	require.True(t, want.Position.GTIDs.Equal(r.Position.GTIDs))
}

// saveInLoop goes on from the record at path, saves one after the other for ever, and says
// on standard output which ones are saved.
func saveInLoop(path string) error {
	f, err := checkpoint.OpenFile(path, "shop")
	if err != nil {
		return err
	}
	ctx := context.Background()
	n := uint64(0)
	switch r, err := f.Load(ctx); {
	case err == nil:
		n = r.Counters.Transactions
	case !errors.Is(err, checkpoint.ErrNotFound):
		return err
	}
	for {
		n++
		if err := f.Save(ctx, numbered(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// TestKillWhileSaving kills a process that saves, at 50 random moments. Each time the last
// save that had returned, or the one after it, must be there, whole.
func TestKillWhileSaving(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.checkpoint")
	last := uint64(0)
	for range 50 {
		cmd := childCommand(t, "save in a loop", path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())

		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "the child saved nothing: %s", &stderr)
		killer := time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = cmd.Process.Kill() })
		confirmed := lines.Text()
		for lines.Scan() {
			confirmed = lines.Text()
		}
		require.Error(t, cmd.Wait(), "it was killed")
		killer.Stop()
		require.Empty(t, stderr.String())

		n, err := strconv.ParseUint(confirmed, 10, 64)
		require.NoError(t, err)
		require.Greater(t, n, last, "the child went on from what it found")
		r, err := checkpoint.ReadFile(path)
		require.NoError(t, err)
		requireNumbered(t, r)
		require.GreaterOrEqual(t, r.Counters.Transactions, n, "older than a save that had returned")
		require.LessOrEqual(t, r.Counters.Transactions, n+1)
		last = n
	}
	// The kernel gave up the lock each time, and nothing is left over.
	f, err := checkpoint.OpenFile(path, "shop")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 3, "the checkpoint, its lock and its history")
	history, err := checkpoint.ViewFile(path, "shop").History(t.Context())
	require.NoError(t, err)
	requireNumbered(t, &history[0].Record)
	require.Equal(t, strconv.FormatUint(history[0].Record.Counters.Transactions, 10), history[0].ID, "each save has its entry, whatever was killed")
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	out, err := withMounts(childCommand(t, "full disk", t.TempDir())).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// fullDisk saves on a disk without room, and on one with room for the record's beginning.
func fullDisk(dir string) error {
	f, path, err := openOnTmpfs(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx := context.Background()
	const before, large = 5, 2999 // a few hundred bytes, and more than a page
	if err := f.Save(ctx, numbered(before)); err != nil {
		return err
	}
	for _, left := range []int{0, os.Getpagesize()} {
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, tmpfsSize), 0o600); !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("fill the disk: %w", err)
		}
		info, err := os.Stat(filler)
		if err != nil {
			return err
		}
		if err := os.Truncate(filler, info.Size()-int64(left)); err != nil {
			return err
		}
		err = f.Save(ctx, numbered(large))
		if err := expectRefusal(err, syscall.ENOSPC, "free some space for "+dir); err != nil {
			return err
		}
		if err := expectRecord(path, before); err != nil {
			return err
		}
		if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the temporary file keeps its room: %w", err)
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
	}
	if err := f.Save(ctx, numbered(large)); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return expectRecord(path, large)
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	out, err := withMounts(childCommand(t, "read-only disk", t.TempDir())).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// readOnlyDisk turns read-only as disks do on errors: while the file is held.
func readOnlyDisk(dir string) error {
	f, path, err := openOnTmpfs(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := f.Save(ctx, numbered(1)); err != nil {
		return err
	}
	// A file that is open for writing would keep the disk from it: the lock.
	if err := f.Close(); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if err := expectRefusal(f.Save(ctx, numbered(2)), syscall.EROFS, "mounted read-only"); err != nil {
		return err
	}
	_, err = checkpoint.OpenFile(path, "shop")
	if err := expectRefusal(err, syscall.EROFS, "mounted read-only"); err != nil {
		return err
	}
	return expectRecord(path, 1)
}

func TestForbiddenDirectory(t *testing.T) {
	t.Parallel()
	// Any user must get to the directory, and none write to it.
	dir, err := os.MkdirTemp("", "checkpoint")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	out, err := childCommand(t, "forbidden directory", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// forbiddenDirectory loses the right to write while the file is held.
func forbiddenDirectory(dir string) error {
	path := filepath.Join(dir, "shop.checkpoint")
	f, err := checkpoint.OpenFile(path, "shop")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := f.Save(ctx, numbered(1)); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // whom no mode stops
		const nobody = 65534
		if err := os.Chown(path, nobody, nobody); err != nil {
			return err
		}
		if err := syscall.Setuid(nobody); err != nil {
			return fmt.Errorf("become an ordinary user: %w", err)
		}
	}
	if err := expectRefusal(f.Save(ctx, numbered(2)), syscall.EACCES, "let the user that runs binlogd read and write "+dir); err != nil {
		return err
	}
	_, err = checkpoint.OpenFile(filepath.Join(dir, "other.checkpoint"), "shop")
	if err := expectRefusal(err, syscall.EACCES, "read and write "+dir); err != nil {
		return err
	}
	return expectRecord(path, 1)
}

// tmpfsSize is the size of the file system that openOnTmpfs mounts, in bytes.
const tmpfsSize = 64 << 10

func openOnTmpfs(dir string) (*checkpoint.File, string, error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, "", fmt.Errorf("keep mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(tmpfsSize)); err != nil {
		return nil, "", fmt.Errorf("mount a small disk: %w", err)
	}
	path := filepath.Join(dir, "shop.checkpoint")
	f, err := checkpoint.OpenFile(path, "shop")
	return f, path, err
}

func expectRefusal(err error, cause syscall.Errno, remedy string) error {
	var access *checkpoint.AccessError
	if !errors.As(err, &access) || !errors.Is(err, cause) || !strings.Contains(err.Error(), remedy) {
		return fmt.Errorf("want %w with %q, got: %w", cause, remedy, err)
	}
	return nil
}

func expectRecord(path string, n uint64) error {
	r, err := checkpoint.ReadFile(path)
	if err != nil {
		return err
	}
	if r.Counters.Transactions != n {
		return fmt.Errorf("the record is number %d instead of %d", r.Counters.Transactions, n)
	}
	return nil
}
