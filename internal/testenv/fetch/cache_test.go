package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnceBuildsOnceHoweverManyAsk(t *testing.T) {
	t.Setenv("BINLOGD_CACHE", t.TempDir())
	var builds atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := once(t.Context(), "thing", "build the thing", func(_ context.Context, dir string) error {
				builds.Add(1)
				return os.WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o644)
			})
			if err != nil {
				t.Error(err)
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, "file"))
			if err != nil || string(text) != "whole" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), builds.Load())
}

func TestOnceStartsOverAfterAnInterruptedBuild(t *testing.T) {
	t.Setenv("BINLOGD_CACHE", t.TempDir())
	half := errors.New("interrupted")
	_, err := once(t.Context(), "thing", "build the thing", func(_ context.Context, dir string) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "left over"), nil, 0o644))
		return half
	})
	require.ErrorIs(t, err, half)
	dir, err := once(t.Context(), "thing", "build the thing", func(context.Context, string) error { return nil })
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "left over"))
}
