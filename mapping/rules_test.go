package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// typed describes a table by "name type" or "name type charset" texts, in the words of information_schema.
func typed(t testing.TB, database, name string, primary []int, columns ...[3]string) *canal.Table {
	t.Helper()
	table := &canal.Table{Database: database, Name: name, PrimaryKey: primary}
	for _, c := range columns {
		column, err := canal.NewColumn(c[0], c[1], c[2])
		require.NoError(t, err)
		table.Columns = append(table.Columns, column)
	}
	return table
}

// shopOrders is the orders table of the rules' tests.
func shopOrders(t testing.TB) *canal.Table {
	return typed(t, "shop", "orders", []int{0},
		[3]string{"id", "bigint unsigned", ""},
		[3]string{"status", "enum('new','paid','cancelled')", "utf8mb4"},
		[3]string{"amount", "decimal(10,2)", ""},
		[3]string{"paid_at", "datetime(3)", ""},
		[3]string{"email", "varchar(100)", "utf8mb4"},
		[3]string{"note", "json", ""},
	)
}

func orderValues(id uint64, status, amount string, paidAt, email, note canal.Value) []canal.Value {
	return values(canal.NewUint(id), of(canal.KindEnum, status), of(canal.KindDecimal, amount), paidAt, email, note)
}

func expr(source string) Template { return Template{Expression: source} }

func ruleCases(t *testing.T) []goldenCase {
	orders := shopOrders(t)
	email, note := text("ann@example.com"), of(canal.KindJSON, `{"gift": true, "lines": [{"price": 1.50}]}`)
	fresh := orderValues(1001, "new", "19.90", null, email, note)
	paid := orderValues(1001, "paid", "19.90", of(canal.KindDateTime, "2026-11-29T10:00:00.123"), email, note)
	return []goldenCase{
		{
			name: "rules-contract", transaction: mysqlTransaction(40),
			rules: []TableRule{{
				Table: "shop.orders", Topic: "shop.orders", Key: []string{"id"},
				Emit: []EmitRule{
					{Type: "order.created", On: Operations{"insert"}},
					{
						Type: "order.paid", On: Operations{"update"}, When: `old.status != "paid" && new.status == "paid"`,
						Data: Object{{"order_id", expr("new.id")}, {"amount", expr("new.amount")}},
					},
				},
			}},
			rows: []canal.Row{
				inserted(orders, fresh...), changed(orders, fresh, paid), changed(orders, paid, paid), removed(orders, paid...),
			},
		},
	}
}

func TestRules(t *testing.T) {
	for _, c := range ruleCases(t) {
		t.Run(c.name, func(t *testing.T) { c.compare(t) })
	}
}
