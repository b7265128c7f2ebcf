// Bench measures binlogd on real servers: what it reads and publishes, against the server's own dump and the broker client
// alone, with the memory and processor time that it takes. All figures of a table come from one run and are best read as ratios.
//
//	go run ./internal/bench               # everything; prints the tables of docs/PERFORMANCE.md
//	go run ./internal/bench -only latency
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options of a run.
type options struct {
	rows     int
	rounds   int
	rate     int
	seconds  int
	ways     []string
	huge     []int
	only     string
	profiles string
	seed     uint64
}

func (o options) wants(part string) bool { return o.only == "" || o.only == part }

func main() {
	if settings := os.Getenv(childVariable); settings != "" {
		if err := child(settings); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var o options
	var huge, ways string
	flag.IntVar(&o.rows, "rows", 300_000, "row changes in the binlog")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each measurement")
	flag.IntVar(&o.rate, "rate", 1000, "transactions per second for the latency")
	flag.IntVar(&o.seconds, "seconds", 15, "how long the latency is measured")
	flag.StringVar(&huge, "huge", "10,1000,100000,2000000", "sizes in rows of single transactions")
	flag.StringVar(&o.only, "only", "", "one part: throughput, latency, transaction or decoder")
	flag.StringVar(&o.profiles, "profiles", "", "folder for a CPU profile of each way of reading")
	flag.StringVar(&ways, "ways", strings.Join(allWays, ","), "what the throughput is measured of")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the load")
	flag.Parse()
	for text := range strings.SplitSeq(huge, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			fmt.Fprintf(os.Stderr, "-huge: %q is no number of rows\n", text)
			os.Exit(2)
		}
		o.huge = append(o.huge, n)
	}
	for way := range strings.SplitSeq(ways, ",") {
		if !slices.Contains(allWays, way) {
			fmt.Fprintf(os.Stderr, "-ways: %q is unknown; write some of %s\n", way, strings.Join(allWays, ","))
			os.Exit(2)
		}
		o.ways = append(o.ways, way)
	}
	if !slices.Contains([]string{"", "throughput", "latency", "transaction", "decoder"}, o.only) {
		fmt.Fprintf(os.Stderr, "-only: %q is unknown; write throughput, latency, transaction or decoder\n", o.only)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	began := time.Now()
	l, err := startLab(ctx, o)
	if err != nil {
		return err
	}
	defer l.close()
	if o.wants("throughput") {
		if err := l.throughput(ctx); err != nil {
			return fmt.Errorf("measure the throughput: %w", err)
		}
	}
	if o.wants("latency") {
		if err := l.latency(ctx); err != nil {
			return fmt.Errorf("measure the latency: %w", err)
		}
	}
	if o.wants("transaction") {
		if err := l.transactions(ctx); err != nil {
			return fmt.Errorf("measure single transactions: %w", err)
		}
	}
	if o.wants("decoder") {
		if err := l.decoder(ctx); err != nil {
			return fmt.Errorf("measure the decoders: %w", err)
		}
	}
	fmt.Fprintf(os.Stderr, "done in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// say reports progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "· "+format+"\n", args...) }
