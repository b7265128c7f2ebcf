package mapping

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// aggregateTables are the tables of the shop that belong together.
func aggregateTables(t testing.TB) (orders, items, payments *canal.Table) {
	orders = typed(t, "shop", "orders", []int{0}, [3]string{"id", "bigint unsigned", ""}, [3]string{"status", "enum('new','paid')", "utf8mb4"}, [3]string{"total", "decimal(10,2)", ""})
	items = typed(t, "shop", "order_items", []int{0}, [3]string{"id", "int", ""}, [3]string{"order_id", "bigint", ""}, [3]string{"sku", "varchar(20)", "utf8mb4"}, [3]string{"pieces", "int", ""})
	payments = typed(t, "shop", "payments", nil, [3]string{"order_id", "bigint unsigned", ""}, [3]string{"method", "varchar(20)", "utf8mb4"})
	return orders, items, payments
}

func order(id uint64, status, total string) []canal.Value {
	return values(canal.NewUint(id), of(canal.KindEnum, status), of(canal.KindDecimal, total))
}

func item(id, orderID int64, sku string, pieces int64) []canal.Value {
	return values(number(id), number(orderID), text(sku), number(pieces))
}

// placed is an order with its items and its payment.
func placed(on ...string) TableRule {
	return TableRule{Topic: "shop.order", AggregateRule: AggregateRule{
		Aggregate: "order", Root: "shop.orders", On: on, Type: "order.placed",
		Include: Includes{
			{Name: "items", Table: "shop.order_items", On: Joins{{"order_id", "id"}}},
			{Name: "payment", Table: "shop.payments", On: Joins{{"order_id", "id"}}, One: true},
		},
	}}
}

func itemsChanged() TableRule {
	return TableRule{Topic: "shop.order", AggregateRule: AggregateRule{
		Aggregate: "order", Root: "shop.orders", On: Operations{"children"}, Type: "order.items_changed",
		Include: Includes{{Name: "items", Table: "shop.order_items", On: Joins{{"order_id", "id"}}}},
	}}
}

func aggregateCases(t *testing.T) []goldenCase {
	orders, items, payments := aggregateTables(t)
	return []goldenCase{
		{
			// Children before and behind their root, a row that is inserted and then changed, one that is inserted and deleted,
			// two roots in one transaction, and a child of an order of an earlier transaction.
			name: "aggregate-placed", transaction: mysqlTransaction(50), rules: []TableRule{placed("insert")},
			rows: []canal.Row{
				inserted(items, item(1, 1001, "A-1", 1)...),
				inserted(orders, order(1001, "new", "10.00")...),
				inserted(orders, order(1002, "new", "5.00")...),
				inserted(items, item(2, 1001, "B-2", 2)...),
				inserted(items, item(3, 1002, "C-3", 3)...),
				inserted(items, item(4, 1002, "D-4", 4)...),
				inserted(items, item(5, 77, "E-5", 5)...),
				removed(items, item(4, 1002, "D-4", 4)...),
				changed(items, item(2, 1001, "B-2", 2), item(2, 1001, "B-2", 20)),
				inserted(payments, canal.NewUint(1001), text("card")),
				changed(orders, order(1001, "new", "10.00"), order(1001, "paid", "30.00")),
			},
		},
		{
			// The default mapping beside it: rows that are part of an aggregate have no events of their own, others do, and
			// rules fire for all.
			name: "aggregate-beside", transaction: mysqlTransaction(51),
			rules: []TableRule{
				placed("insert"),
				{Table: "shop.payments", Emit: []EmitRule{{Type: "payment.received", On: Operations{"insert"}, Data: Object{{"method", expr("new.method")}}}}},
				{Table: "shop.*", Topic: "rows"},
			},
			rows: []canal.Row{
				inserted(items, item(5, 77, "E-5", 5)...),
				inserted(orders, order(1001, "new", "10.00")...),
				inserted(items, item(1, 1001, "A-1", 1)...),
				inserted(payments, canal.NewUint(1001), text("card")),
				changed(orders, order(77, "new", "1.00"), order(77, "paid", "1.00")),
				inserted(items, item(6, 78, "F-6", 6)...),
			},
		},
		{
			name: "aggregate-children", transaction: mysqlTransaction(52), rules: []TableRule{placed("insert"), itemsChanged()},
			rows: []canal.Row{
				inserted(items, item(1, 1001, "A-1", 1)...),                             // added
				changed(items, item(2, 1001, "B-2", 2), item(2, 1001, "B-2", 20)),       // changed
				removed(items, item(3, 1001, "C-3", 3)...),                              // removed
				changed(items, item(4, 1001, "D-4", 4), item(4, 1002, "D-4", 4)),        // given to another order
				changed(orders, order(1002, "new", "1.00"), order(1002, "new", "2.00")), // which is changed itself
				inserted(orders, order(1003, "new", "3.00")...),                         // a new one
				inserted(items, item(5, 1003, "E-5", 5)...),                             // is placed, not changed
				inserted(items, number(6), null, text("lost"), number(1)),               // belongs to none
				changed(items, item(7, 1004, "G-7", 7), item(7, 1004, "G-7", 8)),        // changed,
				changed(items, item(7, 1004, "G-7", 8), item(7, 1004, "G-7", 7)),        // and changed back
			},
		},
		{
			name: "aggregate-states", transaction: mysqlTransaction(53),
			rules: []TableRule{placed("insert", "update", "delete")},
			rows: []canal.Row{
				removed(orders, order(1, "new", "1.00")...), // REPLACE: an update
				inserted(orders, order(1, "paid", "1.00")...),
				removed(orders, order(2, "new", "2.00")...), // deleted with its items
				removed(items, item(1, 2, "A-1", 1)...),
				inserted(orders, order(3, "new", "3.00")...), // never was
				removed(orders, order(3, "new", "3.00")...),
				changed(orders, order(4, "new", "4.00"), order(5, "new", "4.00")), // another key
				removed(orders, order(6, "new", "6.00")...),                       // REPLACE by the same
				inserted(orders, order(6, "new", "6.00")...),
			},
		},
	}
}

func TestAggregates(t *testing.T) {
	for _, c := range aggregateCases(t) {
		t.Run(c.name, func(t *testing.T) {
			events := c.compare(t)
			ids := map[string]bool{}
			for i, e := range events {
				require.False(t, ids[e.ID], "id %s comes twice", e.ID)
				ids[e.ID] = true
				require.True(t, i == 0 || events[i-1].Sequence < e.Sequence, "the order is that of the sequences")
				require.True(t, json.Valid(e.Payload), "%s", e.Payload)
			}
		})
	}
}

// However a transaction is cut, and wherever it was left off before, the same events come of it.
func TestAggregatePieces(t *testing.T) {
	for _, c := range aggregateCases(t) {
		t.Run(c.name, func(t *testing.T) {
			whole := map[string]string{}
			for _, e := range c.events(t) {
				whole[e.ID] = string(e.Payload)
			}
			rows := numbered(c.rows...)
			mapper, err := New(Options{Name: "shop", Tables: c.rules})
			require.NoError(t, err)
			for cut := range len(rows) + 1 {
				before := mapPieces(t, mapper, c.transaction, rows, cut, 0)
				for _, other := range []int{0, cut / 2, cut, len(rows)} { // the pieces are others after a restart
					after := mapPieces(t, mapper, c.transaction, rows, other, cut)
					got := map[string]string{}
					for _, e := range append(append(before[0], after[0]...), after[1]...) {
						require.NotContains(t, got, e.ID, "published again")
						got[e.ID] = string(e.Payload)
					}
					require.Equal(t, whole, got, "left off at %d", cut)
				}
			}
		})
	}
}

// mapPieces maps a transaction in two pieces, each with a worker of its own, those up to again marked as published before.
func mapPieces(t *testing.T, m *Mapper, x *canal.Transaction, rows []canal.Row, cut, again int) (pieces [2][]Event) {
	t.Helper()
	var gathered *Gathered
	for n, piece := range [][]canal.Row{rows[:cut], rows[cut:]} {
		part := *x
		part.Piece, part.Last = n, n == 1
		w := m.NewWorker()
		require.NoError(t, w.Begin(&part))
		w.Resume(gathered)
		var err error
		for _, row := range piece {
			row.Again = row.Place <= uint64(again)
			pieces[n], err = w.Append(pieces[n], &row)
			require.NoError(t, err)
		}
		if part.Last {
			pieces[n], err = w.End(pieces[n], 0)
			require.NoError(t, err)
		}
		gathered = w.Suspend()
	}
	return pieces
}

func TestAggregateCondition(t *testing.T) {
	orders, _, _ := aggregateTables(t)
	rule := placed("insert", "update")
	rule.When = `new.status == "paid"`
	events := mapRows(t, Options{Name: "shop", Tables: []TableRule{rule}}, mysqlTransaction(60), numbered(
		inserted(orders, order(1, "new", "1.00")...),
		changed(orders, order(1, "new", "1.00"), order(1, "paid", "1.00")),
		inserted(orders, order(2, "new", "1.00")...),
	))
	require.Len(t, events, 1)
	require.Equal(t, "1", string(events[0].Key))
}

func TestAggregateBounds(t *testing.T) {
	orders, items, payments := aggregateTables(t)
	many := []canal.Row{inserted(orders, order(1, "new", "1.00")...)}
	for i := range 200 {
		many = append(many, inserted(items, item(int64(i), 1, strings.Repeat("x", 100), 1)...))
	}
	two := []canal.Row{
		inserted(orders, order(1, "new", "1.00")...),
		inserted(payments, canal.NewUint(1), text("card")),
		inserted(payments, canal.NewUint(1), text("cash")),
		inserted(orders, order(2, "new", "1.00")...),
	}
	for _, c := range []struct {
		name, message string
		rows          []canal.Row
		left          int
	}{
		{"too large", "more than 8192 bytes of rows for the aggregate order", many, 0},
		{"two where one is promised", "2 rows of shop.payments belong to it", two, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, onError := range []string{"stop", "skip"} {
				rule := placed("insert")
				rule.MaxSize, rule.OnError = 8192, onError
				m, err := New(Options{Name: "shop", Tables: []TableRule{rule}})
				require.NoError(t, err)
				w := m.NewWorker()
				require.NoError(t, w.Begin(mysqlTransaction(61)))
				var events []Event
				for _, row := range numbered(c.rows...) {
					if events, err = w.Append(events, &row); err != nil {
						break
					}
				}
				if err == nil {
					events, err = w.End(events, 0)
				}
				if onError == "stop" {
					var rule *RuleError
					require.ErrorAs(t, err, &rule)
					require.ErrorContains(t, err, c.message)
					continue
				}
				require.NoError(t, err)
				require.Len(t, events, c.left)
				skipped := w.Skipped()
				require.Len(t, skipped, 1)
				require.ErrorContains(t, skipped[0].Err, c.message)
			}
		})
	}
}

func TestAggregateMistakes(t *testing.T) {
	change := func(f func(*TableRule)) Options {
		rule := placed("insert")
		f(&rule)
		return Options{Name: "shop", Tables: []TableRule{rule}}
	}
	for _, c := range []struct {
		options Options
		message string
	}{
		{change(func(r *TableRule) { r.Aggregate = "" }), "events[0].aggregate: missing"},
		{change(func(r *TableRule) { r.Root = "" }), "events[0].root: missing"},
		{change(func(r *TableRule) { r.Type = "" }), "events[0].type: missing"},
		{change(func(r *TableRule) { r.On = nil }), "events[0].on: missing"},
		{change(func(r *TableRule) { r.On = Operations{"truncate"} }), `events[0].on: "truncate" does not go with an aggregate`},
		{change(func(r *TableRule) { r.Include = nil }), "events[0].include: missing"},
		{change(func(r *TableRule) { r.Include[0].On = nil }), "events[0].include.items.on: missing"},
		{change(func(r *TableRule) { r.Table = "shop.x" }), "events[0]: table, emit and mask do not go with aggregate"},
		{change(func(r *TableRule) { r.MaxSize = 1 }), "events[0].max_size: write at least 4KiB"},
		{change(func(r *TableRule) { r.On, r.When = Operations{"children"}, "true" }), "events[0].when: the root row is not in a transaction"},
		{change(func(r *TableRule) { r.On, r.Root = Operations{"children"}, "shop_*.orders" }), "events[0].root: on: children needs one table"},
		{Options{Name: "shop", Tables: []TableRule{placed("insert"), placed("update")}}, "events[1].type: order.placed is given to the same root by events[0] already"},
	} {
		require.ErrorContains(t, c.options.Validate(), c.message)
	}
	misplaced := TableRule{Table: "shop.orders", AggregateRule: AggregateRule{When: "new.id > 1"}}
	require.EqualError(t, Options{Name: "shop", Tables: []TableRule{misplaced}}.Validate(), "events[0].when: it belongs into a rule: emit: [{type: order.paid, on: update, when: …}]")

	orders, items, _ := aggregateTables(t)
	nameless := *orders
	nameless.PrimaryKey = nil
	for _, c := range []struct {
		options Options
		table   *canal.Table
		message string
	}{
		{change(func(*TableRule) {}), &nameless, "events[0].root: table shop.orders has no primary key"},
		{change(func(r *TableRule) { r.Include[0].Name = "status" }), orders, "events[0].include.status: table shop.orders has a column of this name"},
		{change(func(r *TableRule) { r.Include[0].On = Joins{{"order_id", "no"}} }), orders, `events[0].include.items.on.order_id: table shop.orders has no column "no"`},
		{change(func(r *TableRule) { r.Include[0].On = Joins{{"no", "id"}} }), items, `events[0].include.items.on.no: table shop.order_items has no column "no"`},
		{change(func(r *TableRule) { r.When = "new.nothing == 1" }), orders, "events[0].when:"},
	} {
		m, err := New(c.options)
		require.NoError(t, err)
		require.ErrorContains(t, m.Check(c.table), c.message)
	}
}

// Shards of one table belong together by their number.
func TestAggregateShards(t *testing.T) {
	rule := placed("insert")
	rule.Root, rule.Include = "shop_*.orders_{00..99}", Includes{{Name: "items", Table: "shop_*.order_items_{00..99}", On: Joins{{"order_id", "id"}}}}
	var rows []canal.Row
	for _, database := range []string{"shop_a", "shop_b"} {
		for shard := range 2 {
			root, child, _ := aggregateTables(t)
			root.Database, root.Name = database, fmt.Sprintf("orders_%02d", shard)
			child.Database, child.Name = database, fmt.Sprintf("order_items_%02d", shard)
			rows = append(rows, inserted(root, order(1, "new", "1.00")...), inserted(child, item(1, 1, root.Database+root.Name, 1)...))
		}
	}
	events := mapRows(t, Options{Name: "shop", Tables: []TableRule{rule}}, mysqlTransaction(62), numbered(rows...))
	require.Len(t, events, 4)
	ids := map[string]bool{}
	for _, e := range events {
		var payload struct {
			Data struct{ Items []struct{ SKU string } }
		}
		require.NoError(t, json.Unmarshal(e.Payload, &payload))
		require.Len(t, payload.Data.Items, 1)
		require.Equal(t, e.Table, strings.Replace(payload.Data.Items[0].SKU, "orders", ".orders", 1))
		ids[e.ID] = true
	}
	require.Len(t, ids, 4)
}
