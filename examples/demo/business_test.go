package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func businessEvent(t *testing.T, n int, kind, data string) *event {
	t.Helper()
	e, err := parseEvent(fmt.Appendf(nil, `{"specversion":"1.0","id":"b-%d","source":"/shop/db/orders","type":%q,"gtid":"g:%d","sequence":"%020d","partitionkey":"7","data":%s}`, n, kind, n, n, data))
	require.NoError(t, err)
	require.True(t, e.business())
	return e
}

// TestBusinessOf: what the business events claim is held against the rows, and an order without its items is found.
func TestBusinessOf(t *testing.T) {
	t.Parallel()
	item := func(n, quantity int) *event {
		e, err := parseEvent(fmt.Appendf(nil, `{"specversion":"1.0","id":"r-%d","source":"/shop/db/order_items","type":"order_items.created","gtid":"g:1","sequence":"1","partitionkey":"7,%d","data":{"row":{"quantity":%d}}}`, n, n, quantity))
		require.NoError(t, err)
		return e
	}
	committed := map[change]int{{"g:1", "orders", created}: 1, {"g:1", "order_items", created}: 2, {"g:2", "payments", created}: 1}
	events := []*event{
		item(1, 2), item(2, 3),
		businessEvent(t, 1, stockDeducted, `{"sku":"A","pieces":2}`), businessEvent(t, 2, stockDeducted, `{"sku":"B","pieces":3}`),
		businessEvent(t, 3, orderPlaced, `{"id":7,"items":[{"quantity":2},{"quantity":3}]}`), businessEvent(t, 4, orderPaid, `{"order_id":7}`),
	}
	all, complaints := businessOf(committed, events, 0)
	require.Empty(t, complaints)
	for _, b := range all {
		require.Equal(t, b.Committed, b.Claimed, b.What)
	}

	events[4] = businessEvent(t, 3, orderPlaced, `{"id":7,"items":[]}`)
	all, complaints = businessOf(committed, events, 1)
	require.Len(t, complaints, 1)
	wrong := 0
	for _, b := range all {
		if b.Committed != b.Claimed {
			wrong++
		}
	}
	require.Equal(t, 3, wrong, "items and pieces of the order, and a cancellation")
}

// TestShopRules: the demo's rules are those of the shop's configuration, for its own database.
func TestShopRules(t *testing.T) {
	t.Parallel()
	module, err := filepath.Abs("../..")
	require.NoError(t, err)
	rules, err := shopRules(module, "shop_1a2b3c")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(rules, "events:\n"))
	require.NotContains(t, rules, " shop.")
	for kind := range businessTypes {
		require.Contains(t, rules, "type: "+kind+"\n")
	}
	for _, topic := range businessTopics {
		require.Contains(t, rules, "topic: shop_1a2b3c."+topic+"\n")
	}
}
