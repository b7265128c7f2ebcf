package mapping

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// typedOrders is orderTable with types.
func typedOrders(b *testing.B) *canal.Table {
	return typed(b, "shop", "orders", []int{0},
		[3]string{"id", "bigint unsigned", ""}, [3]string{"order_no", "char(20)", "ascii"}, [3]string{"user_id", "bigint unsigned", ""},
		[3]string{"status", "enum('new','paid','shipped','cancelled')", "utf8mb4"}, [3]string{"amount", "decimal(10,2)", ""}, [3]string{"discount", "decimal(10,2)", ""},
		[3]string{"currency", "char(3)", "ascii"}, [3]string{"address", "varchar(200)", "utf8mb4"}, [3]string{"remark", "varchar(200)", "utf8mb4"},
		[3]string{"created_at", "datetime(3)", ""}, [3]string{"paid_at", "datetime(3)", ""}, [3]string{"updated_at", "timestamp(6)", ""},
	)
}

// demoRules are what a shop would write about its orders.
func demoRules() []EmitRule {
	return []EmitRule{
		{Type: "order.placed", On: Operations{"insert"}},
		{
			Type: "order.paid", On: Operations{"update"}, When: `old.status != "paid" && new.status == "paid"`,
			Data: Object{{"order_id", expr("new.id")}, {"amount", expr("new.amount")}, {"paid_at", expr("new.paid_at")}},
		},
		{Type: "order.cancelled", On: Operations{"update"}, When: `became("status", "cancelled")`, Data: Object{{"order_id", expr("new.id")}}},
		{Type: "order.shipped", On: Operations{"update"}, When: `became("status", "shipped")`, Data: Object{{"order_id", expr("new.id")}}},
	}
}

// BenchmarkRules measures one update of an order by kinds of rules; "default" has none, for the ratio.
func BenchmarkRules(b *testing.B) {
	one := func(rule EmitRule) []EmitRule { rule.Type = "x"; return []EmitRule{rule} }
	for _, c := range []struct {
		name  string
		entry TableRule
	}{
		{"default", TableRule{}},
		{"the row as it is", TableRule{Emit: one(EmitRule{})}},
		{"a condition that is false", TableRule{Emit: one(EmitRule{When: `new.status == "cancelled" && old.status != "cancelled"`})}},
		{"became", TableRule{Emit: one(EmitRule{When: `became("status", "cancelled")`})}},
		{"decimals", TableRule{Emit: one(EmitRule{When: `new.amount > 100000.00 && new.discount == 0`})}},
		{"a regular expression", TableRule{Emit: one(EmitRule{When: `new.order_no matches "^XX[0-9]+$"`})}},
		{"arithmetic", TableRule{Emit: one(EmitRule{When: `new.amount * 2 - new.discount > 100000`})}},
		{"data of five values", TableRule{Emit: one(EmitRule{Data: Object{
			{"id", expr("new.id")}, {"was", expr("old.status")}, {"is", expr("new.status")}, {"amount", expr("new.amount")}, {"by", expr("new.user_id")},
		}})}},
		{"columns and a mask", TableRule{Columns: Columns{Exclude: []string{"remark"}}, Mask: Masks{{Column: "address", Method: maskHash}}}},
		{"a key and a header", TableRule{Emit: one(EmitRule{Key: RuleKey{Expression: "new.user_id"}, Headers: Object{{"tenant", expr("database")}}})}},
		{"the rules of the demo", TableRule{Emit: demoRules()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := typedOrders(b)
			row := canal.Row{Table: table, Op: canal.Update, Before: orderImage(1001, "new"), After: orderImage(1001, "paid")}
			c.entry.Table = "shop.orders"
			m, err := New(Options{Name: "shop", Tables: []TableRule{c.entry}, MaskKey: "0123456789abcdef"})
			require.NoError(b, err)
			w := m.NewWorker()
			require.NoError(b, w.Begin(mysqlTransaction(23)))
			var events []Event
			b.ReportAllocs()
			for b.Loop() {
				row.Ordinal++
				row.Place++
				if events, err = w.Append(events[:0], &row); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkShards measures what a change of a shard costs, of 10,000 that are written to in turn, and what is worked out for each
// when it is met first, which is all that they cost at a start.
func BenchmarkShards(b *testing.B) {
	shards := make([]*canal.Table, 10_000)
	for i := range shards {
		one := *typedOrders(b)
		one.Database, one.Name = fmt.Sprintf("shop_%02d", i%10), fmt.Sprintf("orders_%04d", i/10)
		shards[i] = &one
	}
	for _, c := range []struct {
		name  string
		entry TableRule
		met   int // shards in use
	}{
		{"one, default", TableRule{}, 1},
		{"one, rules", TableRule{Emit: demoRules()}, 1},
		{"1000, default", TableRule{}, 1000},
		{"1000, rules", TableRule{Emit: demoRules()}, 1000},
		{"10000, default", TableRule{}, 10_000},
		{"10000, rules", TableRule{Emit: demoRules()}, 10_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.entry.Table, c.entry.Name = "shop_{00..15}.orders_{0000..1023}", "orders"
			m, err := New(Options{Name: "shop", Tables: []TableRule{c.entry}})
			require.NoError(b, err)
			w := m.NewWorker()
			require.NoError(b, w.Begin(mysqlTransaction(23)))
			row := canal.Row{Op: canal.Update, Before: orderImage(1001, "new"), After: orderImage(1001, "paid")}
			var events []Event
			b.ReportAllocs()
			for b.Loop() {
				row.Ordinal++
				row.Place++
				row.Table = shards[row.Place%uint64(c.met)]
				if events, err = w.Append(events[:0], &row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
