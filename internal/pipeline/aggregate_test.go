package pipeline_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
)

// TestAggregateAcrossPieces: an order whose items stand at both ends of a transaction that is too large to travel in one
// piece. However often binlogd is killed inside it, the order is published with all of them, and always as the same event.
func TestAggregateAcrossPieces(t *testing.T) {
	t.Parallel()
	const bulk = 300_000
	server := testenv.MySQL(t)
	db := server.Database(t)
	server.Exec(t, "USE "+db,
		"CREATE TABLE orders (id INT PRIMARY KEY, total DECIMAL(10,2))",
		"CREATE TABLE items (id INT PRIMARY KEY, order_id INT, sku VARCHAR(20))",
		"CREATE TABLE bulk (id INT PRIMARY KEY, v INT)")
	s := newSettings(t, server, "")
	s.Rules = []mapping.TableRule{
		{Topic: "orders", AggregateRule: mapping.AggregateRule{
			Aggregate: "order", Root: db + ".orders", On: mapping.Operations{"insert"}, Type: "order.placed",
			Include: mapping.Includes{{Name: "items", Table: db + ".items", On: mapping.Joins{{Column: "order_id", Root: "id"}}}},
		}},
		{Table: db + ".*"},
	}
	s.once(t, server)
	server.Exec(t, "USE "+db, "SET SESSION cte_max_recursion_depth = 10000000",
		"BEGIN",
		"INSERT INTO items VALUES (1, 7, 'first'), (2, 8, 'of another')",
		fmt.Sprintf("INSERT INTO bulk WITH RECURSIVE n (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < %d) SELECT id, 7 FROM n", bulk-1),
		"INSERT INTO orders VALUES (7, 10)",
		"INSERT INTO items VALUES (3, 7, 'last')",
		"UPDATE orders SET total = 30 WHERE id = 7",
		"COMMIT")
	for _, batches := range []int{12, 4, 4} { // of more than thirty
		s.Crash, s.Countdown = published, batches
		expectKilled(t, s.start(t))
	}
	record, err := checkpoint.ReadFile(s.Checkpoint)
	require.NoError(t, err)
	require.NotNil(t, record.Partial, "killed inside the transaction")
	s.Crash = nowhere
	s.once(t, server)

	counts := map[string]int{}
	payloads := map[string]string{}
	for _, e := range s.events(t) {
		if before, again := payloads[e.ID]; again {
			require.True(t, before == e.raw, "a repeat differs: %s", e.raw)
			continue
		}
		payloads[e.ID] = e.raw
		counts[e.Type]++
		if e.Type == "order.placed" {
			var event struct{ Data json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(e.raw), &event))
			require.JSONEq(t, `{"id":7,"total":"30.00","items":[{"id":1,"order_id":7,"sku":"first"},{"id":3,"order_id":7,"sku":"last"}]}`, string(event.Data))
		}
	}
	require.Equal(t, map[string]int{"order.placed": 1, "items.created": 1, "bulk.created": bulk}, counts)
}
