// Command demo shows binlogd at work, and what becomes of it when it is killed: it
// starts a real MySQL, runs the untouched PHP shop of examples/php-shop against it while
// binlogd publishes, kills binlogd twice with SIGKILL while the shop keeps writing, and
// then compares what the database committed with what was published.
//
//	go run ./examples/demo                 # events into a file
//	go run ./examples/demo -sink kafka     # into a real Kafka
//	go run ./examples/demo -sink redis     # into Redis Streams
//
// It exits with 1 if a single change is missing, made up or different.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/term"
)

type options struct {
	sink   string
	orders int
	rate   int
	seed   int
	mysql  string
}

func main() {
	// Children die with the thread that started them (Pdeathsig). The main thread lives
	// as long as the process does, even when that is killed.
	runtime.LockOSThread()

	var o options
	flag.StringVar(&o.sink, "sink", "file", "where binlogd publishes to: file, kafka or redis")
	flag.IntVar(&o.orders, "orders", 1000, "orders that the shop takes")
	flag.IntVar(&o.rate, "rate", 250, "orders a second; 0 is as fast as the database can")
	flag.IntVar(&o.seed, "seed", 1, "the same seed makes the same buyers do the same things")
	flag.StringVar(&o.mysql, "mysql", "", "use this MySQL instead of starting one: user:password@host:port of an administrator")
	flag.Parse()
	if flag.NArg() > 0 || (o.sink != "file" && o.sink != "kafka" && o.sink != "redis") || o.orders < 100 {
		fmt.Fprintln(os.Stderr, "demo: -sink is file, kafka or redis; -orders is at least 100; there are no other arguments")
		os.Exit(2)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := &story{out: os.Stdout, color: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""}
	err := play(ctx, o, s)
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\n%s %v\n", s.paint("1;31", "demo:"), err)
		os.Exit(1)
	}
}

// play runs the whole demo. Whatever it starts is gone when it returns.
func play(ctx context.Context, o options, s *story) (err error) {
	module, err := moduleDir(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "binlogd-demo-*")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	fmt.Fprintf(s.out, "%s\n", s.paint("1", "binlogd demo: a shop that knows nothing, and a daemon that is killed twice"))
	fmt.Fprintf(s.out, "   everything that happens leaves its files in %s\n", dir)

	st := &stage{options: o, story: s, dir: dir, module: module}
	defer func() { err = errors.Join(err, st.clear()) }()
	// On a fresh machine compiling takes the longest; the servers are fetched meanwhile.
	ctx, cancel := context.WithCancel(ctx)
	st.building = beginBuild(ctx, module, dir)
	st.later(func() error { cancel(); <-st.building.done; return nil })
	for _, act := range []func(context.Context) error{
		st.startServers, st.openShop, st.startBinlogd, st.sellAndKill, st.catchUp, st.compare,
	} {
		if err := act(ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted; everything that was started is stopped")
			}
			return err
		}
	}
	return nil
}

// moduleDir is the folder of the module that the demo belongs to.
func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/binlogd/binlogd").Output()
	if err != nil {
		return "", fmt.Errorf("find binlogd's source (run the demo inside its tree): %w", err)
	}
	return filepath.Clean(string(bytes.TrimSpace(out))), nil
}
