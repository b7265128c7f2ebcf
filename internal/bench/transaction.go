package main

import (
	"context"
	"fmt"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// transactions measures single transactions of growing size: memory is not to grow with them.
func (l *lab) transactions(ctx context.Context) error {
	if err := l.exec(ctx, "CREATE DATABASE IF NOT EXISTS bench", "DROP TABLE IF EXISTS bench.source, bench.huge", fmt.Sprintf(orderTable, "bench.source"), fmt.Sprintf(orderTable, "bench.huge")); err != nil {
		return err
	}
	if err := l.sourceRows(ctx); err != nil {
		return err
	}
	fmt.Println("One transaction of n rows, events discarded.")
	fmt.Println()
	fmt.Println("| rows | rows/s | peak MiB |")
	fmt.Println("|---:|---:|---:|")
	for _, n := range l.opts.huge {
		if err := l.exec(ctx, "TRUNCATE bench.huge", "FLUSH BINARY LOGS"); err != nil {
			return err
		}
		from, err := l.executed(ctx)
		if err != nil {
			return err
		}
		say("one transaction of %d rows", n)
		if err := l.exec(ctx, fmt.Sprintf("SET SESSION cte_max_recursion_depth = %d", 2+n/sourceSize), fmt.Sprintf(`INSERT INTO bench.huge (order_no, user_id, status, amount, currency, quantity, remark, address, extra, created_at, updated_at)
			SELECT order_no, user_id, status, amount, currency, quantity, remark, address, extra, created_at, updated_at FROM bench.source
			CROSS JOIN (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) copies LIMIT %d`, 1+n/sourceSize, n)); err != nil {
			return err
		}
		until, err := l.executed(ctx)
		if err != nil {
			return err
		}
		r, err := measure(ctx, settings{Sink: "null", Address: daemon.Address(l.port), From: from, Until: until})
		if err != nil {
			return err
		}
		if r.Events != uint64(n) {
			return fmt.Errorf("a transaction of %d rows gave %d events", n, r.Events)
		}
		fmt.Printf("| %d | %.0f | %.0f |\n", n, float64(n)/r.Seconds, float64(r.Peak)/(1<<20))
	}
	fmt.Println()
	return nil
}

const sourceSize = 1000

// sourceRows fills bench.source, which the large transactions copy.
func (l *lab) sourceRows(ctx context.Context) error {
	w := loader{random: newRandom(l.opts.seed)}
	return l.exec(ctx, "INSERT INTO bench.source (order_no, user_id, status, amount, currency, quantity, remark, address, extra, created_at, updated_at) VALUES "+w.rows(sourceSize))
}
