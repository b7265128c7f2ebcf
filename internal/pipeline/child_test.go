package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// childVariable holds the settings of a child process as JSON.
const childVariable = "BINLOGD_PIPELINE_TEST_CHILD"

// crashPoint is where a child kills itself with SIGKILL.
type crashPoint string

const (
	nowhere      crashPoint = ""
	inside       crashPoint = "inside a batch"
	published    crashPoint = "after publish, before acknowledgement"
	acknowledged crashPoint = "after acknowledgement, before the checkpoint"
	saving       crashPoint = "during the checkpoint's write"
	saved        crashPoint = "after the checkpoint's write"
)

// settings of a pipeline under test, with a checkpoint in a file unless Store says otherwise.
type settings struct {
	Address, User, Password string
	Addresses               []string // further ones
	Tables                  string   // pattern
	// Rules stand in for Tables.
	Rules      []mapping.TableRule
	Publish    publish.Options
	Checkpoint string // path
	Store      string // kind of the checkpoint's store; a file where empty
	StoreAt    string // its address; the place is Checkpoint
	Start      string
	Crash      crashPoint
	Countdown  int // the crash comes at this pass of the point
	// Halting makes the sink confirm out of order, and fail for a while again and again.
	Halting bool
	// Zone is the time zone of the program's process; that of the tests where empty.
	Zone string

	to destination
}

// newSettings are for a pipeline from the start "latest" into a file.
func newSettings(t *testing.T, s *testenv.Server, tables string) settings {
	dir := t.TempDir()
	return settings{
		Address: s.Addr, User: s.RootUser, Password: s.RootPassword, Tables: tables, Checkpoint: dir + "/checkpoint", Start: "latest",
	}.into(&fileDestination{path: dir + "/events.jsonl"})
}

// into gives the pipeline another destination.
func (s settings) into(d destination) settings {
	s.to, s.Publish = d, d.options()
	return s
}

// events are what was published so far.
func (s settings) events(t *testing.T) []event {
	t.Helper()
	return slices.Concat(s.to.read(t)...)
}

// start runs a child process with the settings.
func (s settings) start(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// wrapper puts what a test needs around sink and store.
type wrapper func(publish.Sink, checkpoint.Store) (publish.Sink, checkpoint.Store)

// store is where the checkpoint is kept.
func (s settings) store() checkpoint.Options {
	const lease = 500 * time.Millisecond // for tests to wait for
	switch s.Store {
	case checkpoint.KindMySQL:
		return checkpoint.Options{Store: s.Store, Lease: lease, MySQL: &checkpoint.MySQLOptions{
			ConnectOptions: canal.ConnectOptions{Address: s.StoreAt, User: s.User, Password: s.Password}, Database: s.Checkpoint,
		}}
	case checkpoint.KindRedis:
		return checkpoint.Options{Store: s.Store, Lease: lease, Redis: &checkpoint.RedisOptions{Address: s.StoreAt, Prefix: s.Checkpoint}}
	case checkpoint.KindKafka:
		return checkpoint.Options{Store: s.Store, Lease: lease, Kafka: &checkpoint.KafkaOptions{Brokers: []string{s.StoreAt}, Topic: s.Checkpoint}}
	}
	return checkpoint.Options{Path: s.Checkpoint}
}

// record reads the checkpoint, whoever holds it.
func (s settings) record() (*checkpoint.Record, error) {
	reader, err := checkpoint.View(s.store(), "test")
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return reader.Load(context.Background())
}

// open makes the pipeline, and says how to close what it uses.
func (s settings) open(logger *slog.Logger, wrap wrapper) (*pipeline.Pipeline, func() error, error) {
	rules := s.Rules
	if rules == nil {
		rules = []mapping.TableRule{{Table: s.Tables}}
	}
	mapper, err := mapping.New(mapping.Options{Name: "test", Tables: rules})
	if err != nil {
		return nil, nil, err
	}
	sink, err := publish.Open(context.Background(), s.Publish, publish.Deps{Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	store, err := checkpoint.Open(context.Background(), s.store(), "test", logger)
	if err != nil {
		return nil, nil, errors.Join(err, sink.Close())
	}
	opened := store
	closeAll := func() error { return errors.Join(sink.Close(), opened.Close()) }
	start, err := canal.ParseStart(s.Start)
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	wrapped := sink
	if s.Halting {
		wrapped = &haltingSink{Sink: wrapped}
	}
	if wrap != nil {
		wrapped, store = wrap(wrapped, store)
	}
	p := pipeline.New(pipeline.Options{
		Name:   "test",
		Source: canal.SourceOptions{Connect: canal.ConnectOptions{Address: s.Address, Addresses: s.Addresses, User: s.User, Password: s.Password}, Heartbeat: time.Second},
		Start:  start, Mapper: mapper, Store: store, Sink: publish.WithRetry(wrapped, publish.RetryOptions{Initial: 20 * time.Millisecond, Max: time.Second, Logger: logger}),
		History: opened.Schemas(), SaveInterval: 20 * time.Millisecond, Logger: logger,
	})
	return p, closeAll, nil
}

// child is the life of a child process.
func child() int {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	crash := &crasher{point: s.Crash}
	crash.countdown.Store(int64(s.Countdown))
	p, closeAll, err := s.open(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), crash.wrap)
	if err == nil {
		err = errors.Join(p.Run(ctx), closeAll())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// crasher kills its own process at the n-th pass of a point.
type crasher struct {
	point     crashPoint
	countdown atomic.Int64
	acked     atomic.Bool // something was acknowledged since the last save
}

func (c *crasher) pass(point crashPoint) bool {
	return point == c.point && c.countdown.Add(-1) < 0
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (c *crasher) wrap(sink publish.Sink, store checkpoint.Store) (publish.Sink, checkpoint.Store) {
	return &crashingSink{Sink: sink, crash: c}, &crashingStore{Store: store, crash: c}
}

type crashingSink struct {
	publish.Sink
	crash *crasher
}

func (s *crashingSink) Publish(ctx context.Context, b *publish.Batch) error {
	if s.crash.pass(inside) {
		_ = s.Sink.Publish(ctx, publish.NewBatch(b.Events[:len(b.Events)/2]))
		die()
	}
	err := s.Sink.Publish(ctx, b)
	if s.crash.pass(published) {
		die()
	}
	s.crash.acked.Store(true)
	return err
}

type crashingStore struct {
	checkpoint.Store
	crash *crasher
}

func (s *crashingStore) Save(ctx context.Context, r *checkpoint.Record) error {
	if s.crash.acked.Swap(false) && s.crash.pass(acknowledged) {
		die()
	}
	if s.crash.pass(saving) {
		go func() {
			time.Sleep(rand.N(400 * time.Microsecond))
			die()
		}()
	}
	err := s.Store.Save(ctx, r)
	if s.crash.pass(saved) {
		die()
	}
	return err
}
