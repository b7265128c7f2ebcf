// Command servers runs the development servers: MySQL, MariaDB, Kafka and Redis on fixed
// ports of 127.0.0.1, in containers where a Docker engine answers, otherwise as plain
// processes with their programs and data in the cache folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const usage = `usage:
  servers up [-local] [NAME…]    start servers (mysql kafka redis, unless named) and leave them running
  servers down [-wipe]           stop them all; -wipe deletes their data, too
  servers status                 say which are running
  servers fetch [NAME…]          get what is needed to run them into the cache folder (all, unless named)

names: mysql mariadb kafka redis, for fetch also mariadb-11.8, and c-compiler for the race detector
-local uses no containers even where a Docker engine answers
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	local := flags.Bool("local", false, "")
	wipe := flags.Bool("wipe", false, "")
	if err := flags.Parse(args[1:]); err != nil {
		return errUsage
	}
	names := flags.Args()
	switch args[0] {
	case "up":
		return up(ctx, names, *local, out)
	case "down":
		return down(ctx, *wipe, out)
	case "status":
		return status(ctx, out)
	case "fetch":
		return fetchSoftware(ctx, names)
	}
	return errUsage
}

func up(ctx context.Context, names []string, local bool, out io.Writer) error {
	if len(names) == 0 {
		names = []string{"mysql", "kafka", "redis"}
	}
	for _, name := range names {
		if !slices.ContainsFunc(services, func(s service) bool { return s.name == name }) {
			return fmt.Errorf("start %s: no such server; there are mysql, mariadb, kafka and redis", name)
		}
	}
	if !local && dockerAnswers(ctx) {
		if err := compose(ctx, append([]string{"up", "--detach", "--wait"}, names...)...); err != nil {
			return err
		}
	} else if err := startLocal(ctx, names); err != nil {
		return err
	}
	for _, s := range services {
		if slices.Contains(names, s.name) {
			fmt.Fprintf(out, "%-8s %-16s %s\n", s.name, s.address(), s.hint)
		}
	}
	fmt.Fprintln(out, "They keep running. Stop them with: make services-down")
	return nil
}

func down(ctx context.Context, wipe bool, out io.Writer) error {
	stopped, err := stopLocal(ctx, wipe)
	if err != nil {
		return err
	}
	for _, name := range stopped {
		fmt.Fprintln(out, "stopped", name)
	}
	if !dockerAnswers(ctx) {
		return nil
	}
	args := []string{"--profile", "*", "down"}
	if wipe {
		args = append(args, "--volumes")
	}
	return compose(ctx, args...)
}

func status(ctx context.Context, out io.Writer) error {
	for _, s := range services {
		state := "stopped"
		pid, err := runningPID(s)
		if err != nil {
			return err
		}
		if pid != 0 {
			state = fmt.Sprintf("running at %s, process %d, log %s", s.address(), pid, strings.Join(logs(s), ", "))
		}
		fmt.Fprintf(out, "%-8s %s\n", s.name, state)
	}
	if dockerAnswers(ctx) {
		return compose(ctx, "ps")
	}
	return nil
}
