package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// latency measures how long after its commit a row is durable in Kafka while transactions of one row come at a steady rate.
func (l *lab) latency(ctx context.Context) error {
	if err := l.exec(ctx, "CREATE DATABASE IF NOT EXISTS bench", "DROP TABLE IF EXISTS bench.steady", fmt.Sprintf(orderTable, "bench.steady")); err != nil {
		return err
	}
	from, err := l.executed(ctx)
	if err != nil {
		return err
	}
	duration := time.Duration(l.opts.seconds) * time.Second
	say("%d transactions/s for %s into Kafka", l.opts.rate, duration)
	load, stop := context.WithTimeout(ctx, duration+2*time.Second)
	defer stop()
	var group errgroup.Group
	committed := make(chan int, 1)
	group.Go(func() error {
		n, err := l.steady(load)
		committed <- n
		return err
	})
	r, err := measure(ctx, settings{Sink: "kafka", Address: daemon.Address(l.port), From: from, Duration: duration, Kafka: l.kafka, Topic: l.topic()})
	stop()
	if err := group.Wait(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if len(r.Latencies) == 0 {
		return fmt.Errorf("no event became durable")
	}
	fmt.Printf("Latency from commit to durable in Kafka at %d transactions/s of one row (%.0f/s reached), over the second half of %s.\n\n", l.opts.rate,
		float64(<-committed)/(duration+2*time.Second).Seconds(), duration)
	fmt.Println("| p50 | p99 | p99.9 | max | CPU | peak MiB |")
	fmt.Println("|---:|---:|---:|---:|---:|---:|")
	for _, d := range r.Latencies {
		fmt.Printf("| %.1f ms ", float64(d)/float64(time.Millisecond))
	}
	fmt.Printf("| %.0f%% | %.0f |\n\n", 100*r.CPU/r.Seconds, float64(r.Peak)/(1<<20))
	return nil
}

// steady inserts one row a transaction at the rate, over several connections, until ctx ends. It gives the number of commits.
func (l *lab) steady(ctx context.Context) (int, error) {
	const connections = 8
	interval := time.Second * connections / time.Duration(l.opts.rate)
	counts := make([]int, connections)
	var group errgroup.Group
	for c := range connections {
		group.Go(func() error {
			conn, err := l.db.Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			w := loader{random: newRandom(l.opts.seed + uint64(c))}
			next := time.Now()
			for ctx.Err() == nil {
				statement := "INSERT INTO bench.steady (order_no, user_id, status, amount, currency, quantity, remark, address, extra, created_at, updated_at) VALUES " + w.rows(1)
				if _, err := conn.ExecContext(ctx, statement); err != nil {
					if ctx.Err() != nil {
						return nil
					}
					return err
				}
				counts[c]++
				next = next.Add(interval)
				time.Sleep(time.Until(next))
			}
			return nil
		})
	}
	err := group.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, err
}
