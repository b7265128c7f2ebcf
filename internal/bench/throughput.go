package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// allWays are the ways of reading, in the order in which a round takes them.
var allWays = []string{"dump", "null", "rules", "file", "producer", "kafka", "kafka-eos", "redis", "redis-eos"}

// throughput measures each way of reading the same binlog, in rounds, and prints a table of medians.
func (l *lab) throughput(ctx context.Context) error {
	if err := l.exec(ctx, "CREATE DATABASE IF NOT EXISTS bench", fmt.Sprintf(orderTable, "bench.orders"), "FLUSH BINARY LOGS"); err != nil {
		return err
	}
	from, err := l.executed(ctx)
	if err != nil {
		return err
	}
	file, err := l.binlog(ctx)
	if err != nil {
		return err
	}
	say("writing %d row changes", l.opts.rows)
	rows, err := l.fill(ctx, l.opts.rows)
	if err != nil {
		return err
	}
	until, err := l.executed(ctx)
	if err != nil {
		return err
	}
	base := settings{Address: daemon.Address(l.port), From: from, Until: until, Kafka: l.kafka, Redis: l.redis}
	ways := l.opts.ways
	if slices.Contains(ways, "producer") && !slices.Contains(ways, "file") {
		return errors.New("producer sends what file has written: measure file too")
	}
	found := make(map[string][]result)
	messages := filepath.Join(l.dir, "messages.jsonl")
	for round := range l.opts.rounds {
		for _, way := range ways {
			s := base
			s.Sink, s.Path, s.Topic = way, filepath.Join(l.dir, fmt.Sprintf("events-%d.jsonl", round)), l.topic()
			if l.opts.profiles != "" {
				s.Profile = filepath.Join(l.opts.profiles, way+".prof")
			}
			var r result
			switch way {
			case "dump":
				r, err = l.dump(ctx, file)
			case "producer":
				s.Path = messages
				r, err = measure(ctx, s)
			default:
				r, err = measure(ctx, s)
			}
			if err != nil {
				return err
			}
			say("round %d: %-8s %8.0f rows/s  %5.2f s CPU  %5.1f MiB", round+1, way, float64(rows)/r.Seconds, r.CPU, float64(r.Peak)/(1<<20))
			found[way] = append(found[way], r)
			if way == "file" && round == 0 {
				if err := os.Rename(s.Path, messages); err != nil {
					return err
				}
			} else if way == "file" {
				_ = os.Remove(s.Path)
			}
		}
	}
	l.throughputTable(rows, ways, found)
	return nil
}

// dump lets the server's own tool read the binlog from file on, without decoding, into memory.
func (l *lab) dump(ctx context.Context, file string) (result, error) {
	target, err := os.MkdirTemp("/dev/shm", "binlogd-bench-")
	if err != nil {
		return result{}, fmt.Errorf("make a folder in memory: %w", err)
	}
	defer os.RemoveAll(target) //nolint:errcheck // in memory, of this machine's boot
	words, err := l.mysql.Command("usr/bin/mysqlbinlog", "--no-defaults", "--read-from-remote-server", "--raw", "--to-last-log",
		"--host=127.0.0.1", fmt.Sprintf("--port=%d", l.port), "--user=root", "--password=root", "--result-file="+target+"/", file)
	if err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = io.Discard // it warns of the password
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("run mysqlbinlog: %w", err)
	}
	return result{Seconds: time.Since(began).Seconds(), CPU: cpuSeconds(cmd.ProcessState)}, nil
}

var names = map[string]string{
	"dump": "`mysqlbinlog --raw`", "null": "binlogd, events discarded", "rules": "the same with six rules", "file": "binlogd to a file", "producer": "sarama alone",
	"kafka": "binlogd to Kafka", "redis": "binlogd to Redis Streams",
	"kafka-eos": "binlogd to Kafka, exactly once", "redis-eos": "binlogd to Redis Streams, exactly once",
}

func (l *lab) throughputTable(rows int, ways []string, found map[string][]result) {
	speed := func(way string) float64 {
		return float64(rows) / median(found[way], func(r result) float64 { return r.Seconds })
	}
	fmt.Printf("Throughput: %d row changes of 12 columns, medians of %d rounds.\n\n", rows, l.opts.rounds)
	fmt.Println("| | rows/s | of the raw dump | of sarama alone | CPU s per 1M rows | peak MiB |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	for _, way := range ways {
		ofDump, ofProducer := "", ""
		if len(found["dump"]) > 0 {
			ofDump = fmt.Sprintf("%.2f", speed(way)/speed("dump"))
		}
		if way == "kafka" && len(found["producer"]) > 0 {
			ofProducer = fmt.Sprintf("%.2f", speed(way)/speed("producer"))
		}
		if way == "producer" {
			ofDump = ""
		}
		peak := fmt.Sprintf("%.0f", median(found[way], func(r result) float64 { return float64(r.Peak) / (1 << 20) }))
		cpu := fmt.Sprintf("%.2f", median(found[way], func(r result) float64 { return r.CPU * 1e6 / float64(rows) }))
		switch way {
		case "dump":
			peak = ""
		case "producer": // it holds all messages in memory, and has read them
			peak, cpu = "", ""
		}
		fmt.Printf("| %s | %.0f | %s | %s | %s | %s |\n", names[way], speed(way), ofDump, ofProducer, cpu, peak)
	}
	fmt.Println()
}

func median[T any](results []T, of func(T) float64) float64 {
	values := make([]float64, 0, len(results))
	for _, r := range results {
		values = append(values, of(r))
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
