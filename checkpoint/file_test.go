package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/checkpoint/checkpointtest"
)

func TestFileConformance(t *testing.T) {
	t.Parallel()
	checkpointtest.Run(t, checkpointtest.Subject{
		Place: func(t *testing.T) string { return filepath.Join(t.TempDir(), "shop.checkpoint") },
		Open: func(place, name string) (checkpoint.Store, error) {
			f, err := checkpoint.OpenFile(place, name)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
		View: func(place, name string) (checkpoint.Reader, error) { return checkpoint.ViewFile(place, name), nil },
		Damage: func(t *testing.T, place string, content []byte) {
			require.NoError(t, os.WriteFile(place, content, 0o600))
		},
	})
}

// newFile opens a checkpoint with one record in it.
func newFile(t *testing.T) (f *checkpoint.File, path string, saved *checkpoint.Record) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.checkpoint")
	f, err := checkpoint.OpenFile(path, "shop")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	saved = checkpointtest.Records(t)["everything"]
	require.NoError(t, f.Save(t.Context(), saved))
	return f, path, saved
}

func TestFileIsForPeopleAndForNobodyElse(t *testing.T) {
	t.Parallel()
	_, path, saved := newFile(t)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var fields struct {
		Format, Checksum string
		Version          int
		Record           map[string]any
	}
	require.NoError(t, json.Unmarshal(text, &fields))
	require.Equal(t, "binlogd-checkpoint", fields.Format)
	require.Equal(t, 1, fields.Version)
	require.Equal(t, saved.Position.GTIDs.String(), fields.Record["position"].(map[string]any)["gtids"])
	require.Greater(t, bytes.Count(text, []byte("\n")), 20, "a line for each field")
}

func TestReadFileWhileHeld(t *testing.T) {
	t.Parallel()
	f, path, saved := newFile(t)
	got, err := checkpoint.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(saved, got))
	_, err = f.Load(t.Context())
	require.NoError(t, err)

	_, err = checkpoint.ReadFile(path + ".other")
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	_, err = checkpoint.ReadFile(filepath.Dir(path))
	require.ErrorContains(t, err, "set checkpoint.path to a file")
}

func TestOpenFileCleansUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.checkpoint")
	require.NoError(t, os.WriteFile(path+".tmp", []byte(`{"format": "binl`), 0o600))
	f, err := checkpoint.OpenFile(path, "shop")
	require.NoError(t, err)
	require.NoFileExists(t, path+".tmp")
	_, err = f.Load(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	require.NoError(t, f.Close())
}

func TestOneLockThroughLinks(t *testing.T) {
	t.Parallel()
	f, path, saved := newFile(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	_, err := checkpoint.OpenFile(link, "shop")
	var locked *checkpoint.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.Holder.PID)
	require.NoError(t, f.Close())

	through, err := checkpoint.OpenFile(link, "shop")
	require.NoError(t, err)
	saved.Counters.Events = 1
	require.NoError(t, through.Save(t.Context(), saved))
	require.NoError(t, through.Close())
	got, err := checkpoint.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(saved, got), "the link still leads to the file")

	reopened, err := checkpoint.OpenFile(path, "shop")
	require.NoError(t, err)
	*f = *reopened // for the cleanup
}

func TestLockOfSilentHolder(t *testing.T) {
	t.Parallel()
	_, path, _ := newFile(t)
	require.NoError(t, os.Truncate(path+".lock", 0))
	_, err := checkpoint.OpenFile(path, "shop")
	require.ErrorContains(t, err, "is held by another binlogd")
}

func TestOpenFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "stuck.tmp", "x"), 0o700))
	for path, remedy := range map[string]string{
		"missing/shop.checkpoint": "create the directory " + dir + "/missing",
		"file/shop.checkpoint":    "create the directory",
		"stuck":                   "look after " + dir,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, err := checkpoint.OpenFile(filepath.Join(dir, path), "shop")
			var access *checkpoint.AccessError
			require.ErrorAs(t, err, &access)
			require.ErrorContains(t, err, remedy)
			require.ErrorContains(t, err, path)
			require.True(t, checkpoint.Unusable(err))
		})
	}
}

func TestSaveOntoDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.checkpoint")
	require.NoError(t, os.Mkdir(path, 0o700))
	f, err := checkpoint.OpenFile(path, "shop")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.Error(t, f.Save(t.Context(), checkpointtest.Records(t)["bare"]))
	require.NoFileExists(t, path+".tmp")
}

// A torn write must never be taken for a checkpoint, or for the absence of one.
func TestEveryTruncationIsDetected(t *testing.T) {
	t.Parallel()
	whole, err := checkpoint.Encode(checkpointtest.Records(t)["everything"])
	require.NoError(t, err)
	for size := range whole {
		r, err := checkpoint.Decode(whole[:size], "shop.checkpoint")
		if size == len(whole)-1 { // only the line's end is missing
			require.NoError(t, err)
			continue
		}
		require.Nil(t, r)
		var corrupt *checkpoint.CorruptError
		require.ErrorAs(t, err, &corrupt, "cut at byte %d", size)

		// The length may survive a loss of power, and the content not.
		_, err = checkpoint.Decode(append(bytes.Clone(whole[:size]), make([]byte, len(whole)-size)...), "shop.checkpoint")
		require.ErrorAs(t, err, &corrupt, "zeroes from byte %d", size)
	}
}

func TestEveryBitFlipIsDetectedOrHarmless(t *testing.T) {
	t.Parallel()
	saved := checkpointtest.Records(t)["everything"]
	whole, err := checkpoint.Encode(saved)
	require.NoError(t, err)
	harmless := 0
	for i := range whole {
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			got, err := checkpoint.Decode(flipped, "shop.checkpoint")
			if err == nil {
				require.Empty(t, cmp.Diff(saved, got), "bit %d of byte %d", bit, i)
				harmless++
				continue
			}
			require.True(t, checkpoint.Unusable(err), "bit %d of byte %d: %v", bit, i, err)
		}
	}
	require.Less(t, harmless, len(whole)/10, "white space and the case of four names outside the record")
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":"binlogd-checkpoint","version":1,"checksum":"sha256:","record":{}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := checkpoint.Decode(data, "shop.checkpoint")
		if err != nil {
			require.True(t, checkpoint.Unusable(err))
			return
		}
		again, err := checkpoint.Encode(r)
		require.NoError(t, err)
		back, err := checkpoint.Decode(again, "shop.checkpoint")
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(r, back))
	})
}
