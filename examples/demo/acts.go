package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// stage holds what the acts of the demo share.
type stage struct {
	options options
	story   *story
	dir     string // for everything that is written
	module  string // of binlogd's source

	building *building
	server   server
	shop     *shop
	broker   string // host:port; empty for the file sink
	sink     sink
	binlogd  *binlogd
	began    binlogPosition // before the shop's first change
	replica  string         // the user that binlogd connects as
	proved   bool           // both sides agree

	cancelled int // orders, as the shop counts

	cleanup []func() error // in the order of starting
}

// clear undoes in reverse order what was started.
func (st *stage) clear() (err error) {
	for _, undo := range slices.Backward(st.cleanup) {
		err = errors.Join(err, undo())
	}
	return err
}

// discard removes the data of a server of the demo's own, hundreds of megabytes, unless
// somebody may want to look what went wrong.
func (st *stage) discard(data string) error {
	if !st.proved {
		return nil
	}
	return os.RemoveAll(filepath.Join(st.dir, data))
}

func (st *stage) later(undo func() error) { st.cleanup = append(st.cleanup, undo) }

// startServers gets MySQL and, if events go there, the broker.
func (st *stage) startServers(ctx context.Context) error {
	st.story.step("A real MySQL", "Row-based binlog and GTIDs on: binlogd needs nothing else, and no change to any application.")
	if st.options.mysql != "" {
		s, err := openServer(ctx, st.options.mysql)
		if err != nil {
			return err
		}
		st.server = s
		st.later(s.DB.Close)
	} else {
		s, process, err := startMySQL(ctx, st.dir)
		if err != nil {
			return err
		}
		st.server = s
		st.later(func() error {
			process.Kill()
			return st.discard("mysql")
		})
		st.later(s.DB.Close)
	}
	version, err := st.server.version(ctx)
	if err != nil {
		return err
	}
	st.story.done("MySQL %s answers on %s", version, st.server.address())

	if st.options.sink != "file" {
		process, address, err := startBroker(ctx, st.options.sink, st.dir)
		if err != nil {
			return err
		}
		st.later(func() error {
			process.Kill()
			return st.discard(st.options.sink)
		})
		st.story.done("%s answers on %s", st.options.sink, address)
		st.broker = address
	}
	return nil
}

// openShop makes the shop's database.
func (st *stage) openShop(ctx context.Context) error {
	st.story.step("A legacy shop", "Plain PHP and PDO, see examples/php-shop. It does not know that anybody listens.")
	php, err := fetch.PHP(ctx)
	if err != nil {
		return fmt.Errorf("get PHP: %w", err)
	}
	shop, err := openShop(ctx, filepath.Join(st.module, "examples", "php-shop"), php, st.server)
	if err != nil {
		return err
	}
	st.shop = shop
	if st.options.mysql != "" {
		st.later(func() error { return shop.drop(context.WithoutCancel(ctx)) })
	}
	tables, err := shop.tables(ctx)
	if err != nil {
		return err
	}
	st.story.done("database %s with %s", shop.database, strings.Join(tables, ", "))
	return st.openSink(tables)
}

// startBinlogd builds binlogd, writes its configuration and starts it.
func (st *stage) startBinlogd(ctx context.Context) error {
	st.story.step("binlogd", "Built from this tree and run as an operator would: a binary and a configuration file.")
	program, err := st.building.wait()
	if err != nil {
		return err
	}
	st.story.done("go build ./cmd/binlogd")

	secret := make([]byte, 12)
	rand.Read(secret)
	password := hex.EncodeToString(secret)
	st.replica = strings.Replace(st.shop.database, "shop", "binlogd", 1)
	if err := st.server.createReplicaUser(ctx, st.replica, password, st.shop.database); err != nil {
		return err
	}
	if st.options.mysql != "" {
		st.later(func() error { return st.server.dropUser(context.WithoutCancel(ctx), st.replica) })
	}
	port, release, err := daemon.ReservePort()
	if err != nil {
		return err
	}
	st.later(func() error { release(); return nil })

	st.binlogd = &binlogd{
		program: program,
		config:  filepath.Join(st.dir, "binlogd.yaml"),
		logFile: filepath.Join(st.dir, "binlogd.log"),
		admin:   daemon.Address(port),
		env:     []string{"MYSQL_PASSWORD=" + password},
	}
	configuration, err := st.configuration()
	if err != nil {
		return err
	}
	if err := os.WriteFile(st.binlogd.config, []byte(configuration), 0o644); err != nil {
		return fmt.Errorf("write binlogd's configuration: %w", err)
	}
	st.later(func() error { st.binlogd.kill(); return nil })
	if err := st.binlogd.start(ctx); err != nil {
		return err
	}
	st.story.done("binlogd.yaml written, /readyz says 200, process %d", st.binlogd.command.Process.Pid)
	st.began, err = st.server.position(ctx)
	return err
}

// configuration is binlogd.yaml: with the rules of the shop.
func (st *stage) configuration() (string, error) {
	rules, err := shopRules(st.module, st.shop.database)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`name: shop
source:
  address: %s
  user: %s
  password: ${MYSQL_PASSWORD}
checkpoint:
  store: file
  path: %q
publish:
  %s
admin:
  listen: %s
%s`, st.server.address(), st.replica, filepath.Join(st.dir, "shop.checkpoint"), st.sink.config(), st.binlogd.admin, rules), nil
}

// sellAndKill runs the shop and kills binlogd twice meanwhile: once in full flow, once
// while it catches up on what it missed.
func (st *stage) sellAndKill(ctx context.Context) error {
	orders := st.options.orders
	st.story.step("The shop opens, binlogd dies twice", "kill -9: no handler runs, nothing is flushed. Then the shop goes on without binlogd for a while.")
	if err := st.shop.start(orders, st.options.seed, st.options.rate); err != nil {
		return err
	}
	st.later(func() error { st.shop.stop(); return nil })
	for _, crash := range []struct {
		when         string
		at, missedTo float64 // shares of the orders
	}{
		{"in full flow", 0.20, 0.40},
		{"while catching up", 0.40, 0.60},
	} {
		if err := st.awaitOrders(ctx, int(crash.at*float64(orders))); err != nil {
			return err
		}
		published, err := st.killAfterNext(ctx)
		if err != nil {
			return err
		}
		st.story.crash("kill -9 binlogd %s, %s events after the start", crash.when, count(published))
		before, err := st.shop.orders(ctx)
		if err != nil {
			return err
		}
		if err := st.awaitShop(ctx, int(crash.missedTo*float64(orders))); err != nil {
			return err
		}
		after, err := st.shop.orders(ctx)
		if err != nil {
			return err
		}
		st.story.note("meanwhile %s more orders, and nobody listened", count(after-before))
		if err := st.binlogd.start(ctx); err != nil {
			return err
		}
		st.story.done("binlogd is back as process %d and reads on from its checkpoint", st.binlogd.command.Process.Pid)
	}
	counts, err := st.shop.report(ctx)
	if err != nil {
		return err
	}
	cancelled, _ := counts["cancelled"].(float64)
	st.cancelled = int(cancelled)
	st.story.done("the shop closes: %v placed, %v paid, %v cancelled, %v out of stock and rolled back",
		counts["placed"], counts["paid"], counts["cancelled"], counts["out_of_stock"])
	return nil
}

// awaitOrders waits, with binlogd running, until the shop has taken so many orders.
func (st *stage) awaitOrders(ctx context.Context, orders int) error {
	return st.binlogd.await(ctx, 5*time.Minute, "the shop's orders", func(ctx context.Context) (bool, error) {
		n, err := st.shop.orders(ctx)
		return n >= orders || st.shop.done(), err
	})
}

// killAfterNext kills binlogd right after the next events have arrived in the sink, when
// the checkpoint cannot have followed yet. It returns the number of events there.
func (st *stage) killAfterNext(ctx context.Context) (int, error) {
	before, err := st.sink.count(ctx)
	if err != nil {
		return 0, err
	}
	published := before
	err = st.binlogd.await(ctx, time.Minute, "events in the sink", func(ctx context.Context) (bool, error) {
		published, err = st.sink.count(ctx)
		return published > before || st.shop.done(), err
	})
	if err != nil {
		return 0, err
	}
	st.binlogd.kill()
	return published, nil
}

// awaitShop waits, with binlogd dead, until the shop has taken so many orders.
func (st *stage) awaitShop(ctx context.Context, orders int) error {
	for {
		n, err := st.shop.orders(ctx)
		if err != nil {
			return err
		}
		if n >= orders {
			return nil
		}
		select {
		case <-st.shop.closed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// catchUp waits until the checkpoint has passed the shop's last transaction and ends
// binlogd the polite way.
func (st *stage) catchUp(ctx context.Context) error {
	st.story.step("binlogd catches up", "A saved checkpoint means: everything before it is durable in the sink.")
	executed, err := st.server.executed(ctx)
	if err != nil {
		return err
	}
	err = st.binlogd.await(ctx, 2*time.Minute, "the checkpoint to pass the shop's last transaction", func(ctx context.Context) (bool, error) {
		saved, err := st.binlogd.checkpointGTIDs(ctx)
		if err != nil {
			return false, err
		}
		return st.server.subset(ctx, executed, saved)
	})
	if err != nil {
		return err
	}
	st.story.done("the checkpoint holds all that MySQL has committed")
	if err := st.binlogd.stop(); err != nil {
		return err
	}
	st.story.done("SIGTERM: binlogd ended with exit code 0")
	return nil
}
