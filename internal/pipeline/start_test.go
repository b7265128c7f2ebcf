package pipeline_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// stopAtFirstSave ends the run as soon as something was saved: before the first byte of the binlog is read.
type stopAtFirstSave struct {
	checkpoint.Store
	stop context.CancelFunc
}

func (s *stopAtFirstSave) Save(ctx context.Context, r *checkpoint.Record) error {
	defer s.stop()
	return s.Store.Save(ctx, r)
}

// TestFirstPlaceIsKept: a process that dies right after its very first start goes on from there, and not from a later "latest".
func TestFirstPlaceIsKept(t *testing.T) {
	server := testenv.MySQL(t)
	path := t.TempDir() + "/checkpoint"
	store, err := checkpoint.OpenFile(path, "test")
	require.NoError(t, err)
	mapper, err := mapping.New(mapping.Options{Name: "test", Tables: []mapping.TableRule{{Table: "shop.*"}}})
	require.NoError(t, err)
	before := server.GTIDExecuted(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := pipeline.New(pipeline.Options{
		Name:   "test",
		Source: canal.SourceOptions{Connect: canal.ConnectOptions{Address: server.Addr, User: server.RootUser, Password: server.RootPassword}},
		Mapper: mapper, Sink: &publish.Null{}, Store: &stopAtFirstSave{store, cancel}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, p.Run(ctx))
	require.NoError(t, store.Close())
	record, err := checkpoint.ReadFile(path)
	require.NoError(t, err)
	want, err := canal.ParseGTIDSet(canal.MySQL, before)
	require.NoError(t, err)
	require.Equal(t, want.String(), record.Position.GTIDs.String())
}
