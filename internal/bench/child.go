package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// childVariable holds the settings of a child process as JSON. Each measurement is a process of its own, so that its processor time and
// memory are its alone.
const childVariable = "BINLOGD_BENCH_CHILD"

// settings of a child.
type settings struct {
	Sink     string // null, rules (null behind rules), file, kafka, redis, or producer: the Kafka client alone
	Address  string // of MySQL
	From     string // GTID set to start behind
	Until    string // GTID set to end with; empty: Duration
	Duration time.Duration
	Path     string // of the file sink, and of the messages for producer
	Kafka    string
	Redis    string
	Topic    string
	Profile  string // where to write a CPU profile; empty for none
}

// result is what a child found out, as JSON on its standard output.
type result struct {
	Seconds   float64
	Events    uint64
	Bytes     uint64
	Latencies []time.Duration // p50, p99, p99.9, maximum
	// Peak is the largest resident size in bytes. The child tells it: what the operating system says of an ended child includes its
	// parent's size at the time of the fork.
	Peak int64
	// CPU is in seconds, user and system; from the operating system, filled in by the parent.
	CPU float64
}

// measure runs a child.
func measure(ctx context.Context, s settings) (result, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("run the measurement of %s: %w", s.Sink, err)
	}
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		return result{}, fmt.Errorf("read the measurement of %s: %w", s.Sink, err)
	}
	r.CPU = cpuSeconds(cmd.ProcessState)
	return r, nil
}

func cpuSeconds(state *os.ProcessState) float64 {
	return (state.UserTime() + state.SystemTime()).Seconds()
}

// peak is the largest resident size of this process so far.
func peak() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); !found || err != nil {
		return 0, errors.New("/proc/self/status has no VmHWM")
	}
	return kilobytes << 10, nil
}

func child(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.Profile != "" {
		f, err := os.Create(s.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var r result
	var err error
	if s.Sink == "producer" {
		r, err = produce(s)
	} else {
		r, err = s.run()
	}
	if err != nil {
		return err
	}
	if r.Peak, err = peak(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// run runs the pipeline as `binlogd run` does.
func (s settings) run() (result, error) {
	pipeline.TuneMemory()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	entry := mapping.TableRule{Table: "bench.*", Topic: s.Topic}
	if s.Sink == "rules" {
		entry.Emit = shopRules()
	}
	mapper, err := mapping.New(mapping.Options{Name: "bench", Tables: []mapping.TableRule{entry}})
	if err != nil {
		return result{}, err
	}
	sink, err := s.sink(logger)
	if err != nil {
		return result{}, err
	}
	store, together, err := s.together(sink, logger)
	if err != nil {
		return result{}, errors.Join(err, sink.Close())
	}
	watched := &watch{Sink: sink}
	start, err := canal.ParseStart("gtid:" + s.From)
	if err != nil {
		return result{}, err
	}
	p := pipeline.New(pipeline.Options{
		Name:   s.name(),
		Source: canal.SourceOptions{Connect: canal.ConnectOptions{Address: s.Address, User: "root", Password: "root"}},
		Start:  start, Mapper: mapper, Sink: publish.WithRetry(watched, publish.RetryOptions{Logger: logger}),
		Store: store, Together: together, Logger: logger,
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- p.Run(ctx) }()
	if err := s.await(p, ended); err != nil {
		return result{}, err
	}
	seconds := time.Since(began).Seconds()
	cancel()
	if err := <-ended; err != nil {
		return result{}, err
	}
	stats := p.Stats()
	return result{Seconds: seconds, Events: stats.Events, Bytes: stats.Bytes, Latencies: watched.percentiles()}, errors.Join(store.Close(), sink.Close())
}

// await waits until the pipeline has published what it is to publish.
func (s settings) await(p *pipeline.Pipeline, ended <-chan error) error {
	deadline := time.Now().Add(s.Duration)
	until, err := canal.ParseGTIDSet(canal.MySQL, s.Until)
	if err != nil {
		return err
	}
	for {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the pipeline ended early"), err)
		case <-time.After(2 * time.Millisecond):
		}
		if s.Until == "" {
			if time.Now().After(deadline) {
				return nil
			}
			continue
		}
		if c := p.Checkpoint(); c != nil && c.GTIDs.ContainsSet(until) {
			return nil
		}
	}
}

func (s settings) sink(logger *slog.Logger) (publish.Sink, error) {
	deps := publish.Deps{Stdout: io.Discard, Logger: logger}
	switch s.Sink {
	case "null", "rules":
		return &publish.Null{}, nil
	case "file":
		return publish.Open(context.Background(), publish.Options{File: &publish.FileOptions{Path: s.Path}}, deps)
	case "kafka":
		return publish.Open(context.Background(), publish.Options{Kafka: &publish.KafkaOptions{Brokers: []string{s.Kafka}}}, deps)
	case "kafka-eos":
		o := publish.KafkaOptions{Brokers: []string{s.Kafka}, ExactlyOnce: true, TransactionalID: s.Topic}
		return publish.OpenKafka(o, logger)
	case "redis-eos":
		return publish.OpenRedis(publish.RedisOptions{Address: s.Redis, ExactlyOnce: true}, logger)
	case "redis":
		return publish.Open(context.Background(), publish.Options{Redis: &publish.RedisOptions{Address: s.Redis}}, deps)
	}
	return nil, fmt.Errorf("sink %q is unknown", s.Sink)
}

// together are the checkpoint in the sink, and how it goes with the events; none of it where they are published at least once.
func (s settings) together(sink publish.Sink, logger *slog.Logger) (store checkpoint.Store, t *pipeline.Together, err error) {
	t = &pipeline.Together{Retry: publish.RetryOptions{Logger: logger}, Bytes: 8 << 20}
	switch sink := sink.(type) {
	case *publish.Kafka:
		if s.Sink != "kafka-eos" {
			return checkpoint.None{}, nil, nil
		}
		t.Events, t.Linger = (&publish.KafkaOptions{}).TransactionLimits()
		o := checkpoint.Options{Store: checkpoint.KindKafka, Kafka: &checkpoint.KafkaOptions{Brokers: []string{s.Kafka}, TransactionalID: s.Topic}}
		t.Carrier = sink
		t.Store, err = checkpoint.OpenInKafka(context.Background(), o, s.Topic, sink, logger)
	case *publish.Redis:
		if s.Sink != "redis-eos" {
			return checkpoint.None{}, nil, nil
		}
		t.Events, t.Linger = publish.RedisTransactionEvents, publish.RedisTransactionLinger
		o := checkpoint.Options{Store: checkpoint.KindRedis, Redis: &checkpoint.RedisOptions{Address: s.Redis}}
		t.Carrier = sink
		t.Store, err = checkpoint.OpenInRedis(context.Background(), o, s.Topic, sink, logger)
	default:
		return checkpoint.None{}, nil, nil
	}
	return t.Store, t, err
}

// watch notes how long after its commit each event became durable.
type watch struct {
	publish.Sink
	mu  sync.Mutex
	all []time.Duration
}

func (w *watch) Publish(ctx context.Context, b *publish.Batch) error {
	err := w.Sink.Publish(ctx, b)
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range b.Events {
		if b.Confirmed(i) && len(w.all) < 1<<20 {
			w.all = append(w.all, now.Sub(b.Events[i].OccurredAt))
		}
	}
	return err
}

// percentiles are p50, p99, p99.9 and the maximum of the second half: the first is warming up.
func (w *watch) percentiles() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	settled := slices.Clone(w.all[len(w.all)/2:])
	if len(settled) == 0 {
		return nil
	}
	slices.Sort(settled)
	at := func(share float64) time.Duration { return settled[int(share*float64(len(settled)-1))] }
	return []time.Duration{at(0.5), at(0.99), at(0.999), at(1)}
}

// name is the pipeline's: a checkpoint in a sink is kept under it, and each measurement begins anew.
func (s settings) name() string {
	if s.Topic == "" {
		return "bench"
	}
	return s.Topic
}
