package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// Binlogd builds cmd/binlogd, once per process, and returns the program's path. With the
// race detector in the tests, it is in the program too.
func Binlogd(t testing.TB) (path string) {
	t.Helper()
	if !raceDetector {
		return ShippedBinlogd(t)
	}
	return share(t, "binlogd-race", func(ctx context.Context) (string, error) { return buildBinlogd(ctx, "-race") })
}

// ShippedBinlogd is Binlogd as users get it, without the race detector: for tests that
// measure its memory or speed.
func ShippedBinlogd(t testing.TB) (path string) {
	t.Helper()
	return share(t, "binlogd", func(ctx context.Context) (string, error) { return buildBinlogd(ctx) })
}

func buildBinlogd(ctx context.Context, flags ...string) (path string, err error) {
	if path, err = env.newDir("binlogd"); err != nil {
		return "", err
	}
	args := append([]string{"build", "-o", path}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, "github.com/binlogd/binlogd/cmd/binlogd")...)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build binlogd: %w\n%s", err, bytes.TrimSpace(output))
	}
	return path, nil
}
