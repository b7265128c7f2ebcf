// Package fetch gets the server software that tests, demo and benchmarks run, from
// the machine's own package sources, and keeps it in a cache folder outside the tree.
//
// Every step may be repeated and may run in several processes at once: a step is done
// under a file lock, into a temporary folder that is renamed when it is complete.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// CacheDir is the folder for all that was fetched: $BINLOGD_CACHE, or "binlogd" in the
// user's cache folder ($XDG_CACHE_HOME or ~/.cache).
func CacheDir() (string, error) {
	if dir := os.Getenv("BINLOGD_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set BINLOGD_CACHE to a folder with 3 GB of room", err)
	}
	return filepath.Join(base, "binlogd"), nil
}

// once returns the folder name inside the cache, after build has filled it if it did
// not exist. build works in a temporary folder beside it. what tells a person what is
// being waited for.
func once(ctx context.Context, name, what string, build func(ctx context.Context, dir string) error) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err := Lock(ctx, filepath.Join(cache, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) { // another process was faster
		return dir, nil
	}

	// Holding the lock, whatever an interrupted build left is nobody's.
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", fmt.Errorf("clear an unfinished build: %w", err)
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for %s: %w", what, err)
	}
	started := time.Now()
	progress("%s …", what)
	if err := build(ctx, part); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if err := os.Rename(part, dir); err != nil {
		return "", fmt.Errorf("put %s in place: %w", what, err)
	}
	progress("%s: done in %.1f s, kept in %s", what, time.Since(started).Seconds(), dir)
	return dir, nil
}

// Lock waits until it holds an exclusive lock on file, which it creates. The kernel
// gives it back when the process dies.
func Lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	waiting := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", file, err)
		}
		if !waiting {
			waiting = true
			progress("waiting for another one that holds %s …", file)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for lock %s: %w", file, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// progress tells the person in front of the terminal what takes its time.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "testenv: "+format+"\n", args...)
}
