package mapping

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// TestEventsDoNotDependOnOtherTables: whatever subset of the tables is captured, and
// however the configuration says so, the events of each captured table are the same to the
// last byte, and come in the same order.
func TestEventsDoNotDependOnOtherTables(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tables := []*canal.Table{
		table("shop", "orders", []int{0}, "id", "v"),
		table("shop", "items", []int{1, 0}, "line", "order_id"),
		table("shop", "nopk", nil, "a", "b"),
		table("crm", "orders", []int{0}, "id", "v"),
		table("crm", "users", []int{1}, "name", "id"),
	}
	for round := range 30 {
		var rows []canal.Row
		for range 40 {
			rows = append(rows, randomRow(random, tables[random.IntN(len(tables))]))
		}
		rows = numbered(rows...)
		transaction := []*canal.Transaction{
			mysqlTransaction(uint64(round) + 1), mariadbTransaction(uint64(round) + 1),
			anonymousTransaction("binlog.000007", uint64(round)*1000),
		}[round%3]
		all := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}, transaction, rows)
		checkEvents(t, all)

		for subset := 1; subset < 1<<len(tables); subset++ {
			captured := map[string]bool{}
			var rules []TableRule
			var exclude []string
			for i, table := range tables {
				name := table.Database + "." + table.Name
				if subset&(1<<i) != 0 {
					captured[name] = true
					rules = append(rules, TableRule{Table: name})
				} else {
					exclude = append(exclude, name)
				}
			}
			var want []Event
			for _, e := range all {
				if captured[e.Table] {
					want = append(want, e)
				}
			}
			random.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
			require.Equal(t, want, mapRows(t, Options{Name: "shop", Tables: rules}, transaction, rows))
			excluding := Options{Name: "shop", Tables: []TableRule{{Table: "{crm,shop}.*"}}, Exclude: exclude}
			require.Equal(t, want, mapRows(t, excluding, transaction, rows))
		}
	}
}

// TestIDsDoNotDependOnOptions: topic and key of a table's own entry change neither ids nor
// sequences.
func TestIDsDoNotDependOnOptions(t *testing.T) {
	orders := table("shop", "orders", []int{0}, "id", "customer")
	rows := numbered(
		inserted(orders, number(1), text("Ann")),
		changed(orders, values(number(1), text("Ann")), values(number(2), text("Ben"))),
		removed(orders, number(2), text("Ben")),
	)
	plain := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}, mysqlTransaction(1), rows)
	other := mapRows(t, Options{Name: "other", Tables: []TableRule{
		{Table: "shop.orders", Topic: "o.{table}", Key: []string{"customer", "id"}},
	}}, mysqlTransaction(1), rows)
	require.Len(t, other, len(plain))
	for i := range plain {
		require.Equal(t, plain[i].ID, other[i].ID)
		require.Equal(t, plain[i].Sequence, other[i].Sequence)
		require.NotEqual(t, plain[i].Key, other[i].Key)
		require.Equal(t, "o.orders", other[i].Topic)
	}
}

// randomRow is a change of a few small numbers, so that equal rows and keys are common.
func randomRow(random *rand.Rand, t *canal.Table) canal.Row {
	image := func() (v []canal.Value) {
		for range t.Columns {
			if random.IntN(8) == 0 {
				v = append(v, text(fmt.Sprint(random.IntN(3))))
			} else {
				v = append(v, number(int64(random.IntN(3))))
			}
		}
		return v
	}
	switch random.IntN(3) {
	case 0:
		return inserted(t, image()...)
	case 1:
		return removed(t, image()...)
	default:
		return changed(t, image(), image())
	}
}
