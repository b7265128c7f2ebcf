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
	return share(t, "binlogd", func(ctx context.Context) (string, error) {
		path, err := env.newDir("binlogd")
		if err != nil {
			return "", err
		}
		args := []string{"build", "-o", path}
		if raceDetector {
			args = append(args, "-race")
		}
		build := exec.CommandContext(ctx, "go", append(args, "github.com/binlogd/binlogd/cmd/binlogd")...)
		if output, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build binlogd: %w\n%s", err, bytes.TrimSpace(output))
		}
		return path, nil
	})
}
