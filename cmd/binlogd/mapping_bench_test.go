package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
)

// BenchmarkShop maps the transactions of the shop's tests by default and with all rules of the demo, which make more events of them.
func BenchmarkShop(b *testing.B) {
	shop, err := loadSamples("../../examples/php-shop/tests/orders.yaml", "", environment())
	require.NoError(b, err)
	plain, err := mapping.New(mapping.Options{Name: "shop", Tables: []mapping.TableRule{{Table: "shop.*"}}})
	require.NoError(b, err)
	var transactions []*canal.Transaction
	var changes [][]*canal.Row
	for i := range shop.Tests {
		rows, transaction, err := shop.transaction(&shop.Tests[i])
		require.NoError(b, err)
		transactions, changes = append(transactions, transaction), append(changes, rows)
	}
	for name, mapper := range map[string]*mapping.Mapper{"default": plain, "rules": shop.mapper} {
		b.Run(name, func(b *testing.B) {
			rows, made := 0, 0
			worker := mapper.NewWorker()
			var events []mapping.Event
			b.ReportAllocs()
			for b.Loop() {
				for i, transaction := range transactions {
					if err := worker.Begin(transaction); err != nil {
						b.Fatal(err)
					}
					events = events[:0]
					for _, row := range changes[i] {
						if events, err = worker.Append(events, row); err != nil {
							b.Fatal(err)
						}
						rows++
					}
					if events, err = worker.End(events, 0); err != nil {
						b.Fatal(err)
					}
					made += len(events)
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(made)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
