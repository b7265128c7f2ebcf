package mapping

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

func formatCases(t *testing.T) []goldenCase {
	orders := shopOrders(t)
	fresh := orderValues(1001, "new", "19.90", null, text("ann@example.com"), null)
	paid := orderValues(1001, "paid", "19.90", null, text("ann@example.com"), null)
	items := table("shop", "order_items", []int{0, 1}, "order_id", "line", "sku")
	rows := func() []canal.Row {
		return []canal.Row{inserted(orders, fresh...), changed(orders, fresh, paid), removed(orders, paid...)}
	}
	shard := func(database, name string, id int64) canal.Row {
		return inserted(table(database, name, []int{0}, "id"), number(id))
	}
	rules := []EmitRule{{Type: "order.paid", When: `became("status", "paid")`, Data: Object{{"id", expr("new.id")}}}, {Type: "order.gone", On: Operations{"delete"}}}
	return []goldenCase{
		{name: "format-binary", transaction: mysqlTransaction(70), rules: []TableRule{{Table: "shop.orders", Envelope: EnvelopeBinary}}, rows: rows()},
		{name: "format-row", transaction: mysqlTransaction(71), rules: []TableRule{{Table: "shop.orders", Envelope: EnvelopeRow, Columns: Columns{Exclude: []string{"email"}}}}, rows: rows()},
		{name: "format-rules", transaction: mysqlTransaction(72), rules: []TableRule{{Table: "shop.orders", Envelope: EnvelopeRow, Emit: rules, Tombstones: true}}, rows: rows()},
		{name: "format-json-keys", transaction: mysqlTransaction(73), rules: []TableRule{{Table: "shop.*", KeyFormat: KeyJSON, Tombstones: true}}, rows: []canal.Row{
			inserted(items, number(7), number(1), text("A")),
			changed(items, values(number(7), number(1), text("A")), values(number(7), number(2), text("A"))),
			removed(items, number(7), number(2), text("A")),
			inserted(table("shop", "nopk", nil, "a"), number(1)),
		}},
		{name: "shards-named", transaction: mysqlTransaction(74), rules: []TableRule{
			{Table: "shop_{00..15}.orders_{0000..1023}", Name: "orders"},
			{Table: "shop.items_*", Name: "items"},
		}, rows: []canal.Row{
			shard("shop_00", "orders_0000", 1), shard("shop_00", "orders_0001", 1), shard("shop_01", "orders_0000", 1), shard("shop", "items_7", 1),
			{Table: &canal.Table{Database: "shop_00", Name: "orders_0000"}, Op: canal.Truncate},
		}},
	}
}

func TestGoldenFormats(t *testing.T) {
	for _, c := range formatCases(t) {
		t.Run(c.name, func(t *testing.T) { c.compare(t) })
	}
}

// TestFormatsKeepIDs: the form of an event changes nothing of what it is.
func TestFormatsKeepIDs(t *testing.T) {
	t.Parallel()
	for _, envelope := range []string{EnvelopeBinary, EnvelopeRow} {
		plain, other := formatCases(t)[0], formatCases(t)[0]
		plain.rules = []TableRule{{Table: "shop.orders"}}
		other.rules = []TableRule{{Table: "shop.orders", Envelope: envelope, KeyFormat: KeyJSON}}
		want, got := plain.events(t), other.events(t)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].ID, got[i].ID)
			require.Equal(t, want[i].Sequence, got[i].Sequence)
			require.Equal(t, want[i].Type, got[i].Type)
			require.True(t, json.Valid(got[i].Payload))
		}
	}
}

func TestRowEnvelopeWithColumnOld(t *testing.T) {
	t.Parallel()
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.t", Envelope: EnvelopeRow}}})
	require.NoError(t, err)
	require.ErrorContains(t, m.Check(table("shop", "t", []int{0}, "id", "old")), `events[0].envelope: table shop.t has a column "old"`)
}
