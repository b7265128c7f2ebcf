package mapping

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// A truncation is about the table: no key of columns, though the rule names one, and an id of its own for each.
func TestTruncationIsAnEvent(t *testing.T) {
	t.Parallel()
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.orders", Topic: "o", Key: []string{"id"}}}})
	require.NoError(t, err)
	gtid, err := canal.ParseGTID(canal.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:23")
	require.NoError(t, err)
	w := m.NewWorker()
	require.NoError(t, w.Begin(&canal.Transaction{GTID: gtid, Number: 23, CommittedAt: time.Unix(1, 0)}))
	var events []Event
	for ordinal := uint64(1); ordinal <= 2; ordinal++ {
		events, err = w.Append(events, &canal.Row{Table: &canal.Table{Database: "shop", Name: "orders"}, Op: canal.Truncate, Ordinal: ordinal, Place: ordinal})
		require.NoError(t, err)
	}
	events, err = w.Append(events, &canal.Row{Table: &canal.Table{Database: "shop", Name: "other"}, Op: canal.Truncate, Ordinal: 1, Place: 3})
	require.NoError(t, err)
	require.Len(t, events, 2, "a table that is not captured gives none")
	require.NotEqual(t, events[0].ID, events[1].ID)
	e := events[0]
	require.Equal(t, []string{"orders.truncated", "o", "shop.orders", "shop.orders"}, []string{e.Type, e.Topic, string(e.Key), e.Table})
	require.JSONEq(t, `{"specversion":"1.0","id":"`+e.ID+`","source":"/shop/shop/orders","type":"orders.truncated","time":"1970-01-01T00:00:01.000000Z",
		"datacontenttype":"application/json","gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","sequence":"00000000000000000023-0000000001-0",
		"partitionkey":"shop.orders","data":{}}`, string(e.Payload))
}
