package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A pid file holds a process id and the process's start time as the kernel counts it, so
// that another process that was given the same id later is not taken for the server.

func writePID(s service, pid int) error {
	dir, err := home(s)
	if err != nil {
		return err
	}
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d %s\n", pid, started)
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the process id of %s: %w", s.name, err)
	}
	return nil
}

// runningPID returns the process id of a server that this command started and that runs,
// or 0.
func runningPID(s service) (int, error) {
	dir, err := home(s)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the process id of %s: %w", s.name, err)
	}
	var pid int
	var started string
	if _, err := fmt.Sscan(string(text), &pid, &started); err != nil {
		return 0, fmt.Errorf("read the process id of %s: %w; delete %s when the server is stopped", s.name, err, filepath.Join(dir, "pid"))
	}
	if now, err := startTime(pid); err != nil || now != started {
		return 0, nil // gone
	}
	return pid, nil
}

// startTime is when a process was started, in clock ticks since boot. A zombie counts as
// gone.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold spaces; the fields after it count from the
	// third: state first, start time 22nd (proc_pid_stat(5)).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return "", fmt.Errorf("look at process %d: it has ended", pid)
	}
	return string(fields[19]), nil
}

// terminate asks a server to end and waits for it.
func terminate(ctx context.Context, s service, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	const limit = time.Minute
	deadline := time.Now().Add(limit)
	for {
		running, err := runningPID(s)
		if err != nil || running != pid {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stop %s: process %d is still running after %s; look at its log, or kill it", s.name, pid, limit)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
