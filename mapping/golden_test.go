package mapping

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenCase is one transaction and its mapping. What comes out stands in
// testdata/NAME.golden, an event a line: topic, key, payload.
type goldenCase struct {
	name        string
	transaction *canal.Transaction
	rules       []TableRule // every table of every database when empty
	rows        []canal.Row
}

func goldenCases() []goldenCase {
	orders := table("shop", "orders", []int{0}, "id", "status", "amount", "paid_at")
	items := table("shop", "order_items", []int{0, 1}, "order_id", "line", "sku")
	nopk := table("shop", "nopk", nil, "a", "b")
	article := table("shop", "articles", []int{0}, "id", "title", "body")
	tagged := mysqlTransaction(7)
	tagged.GTID.Tag = "blue"

	return []goldenCase{
		{name: "order", transaction: mysqlTransaction(23), rows: []canal.Row{
			inserted(orders, number(1001), of(canal.KindEnum, "new"), of(canal.KindDecimal, "19.90"), null),
			inserted(items, number(1001), number(1), text("A-1")),
			inserted(items, number(1001), number(2), text("B-2")),
			changed(orders,
				values(number(1001), of(canal.KindEnum, "new"), of(canal.KindDecimal, "19.90"), null),
				values(number(1001), of(canal.KindEnum, "paid"), of(canal.KindDecimal, "19.90"), of(canal.KindDateTime, "2026-11-29T10:00:00.123"))),
			changed(orders,
				values(number(1001), of(canal.KindEnum, "paid"), of(canal.KindDecimal, "19.90"), null),
				values(number(1001), of(canal.KindEnum, "paid"), of(canal.KindDecimal, "19.90"), null)),
			removed(items, number(1001), number(2), text("B-2")),
		}},
		{name: "types", transaction: mysqlTransaction(24), rows: typesRows()},
		{name: "repeated-row", transaction: mysqlTransaction(25), rows: []canal.Row{
			inserted(keyed("rep"), number(1), number(0)),
			changed(keyed("rep"), values(number(1), number(0)), values(number(1), number(1))),
			changed(keyed("rep"), values(number(1), number(1)), values(number(1), number(2))),
			removed(keyed("rep"), number(1), number(2)),
			inserted(keyed("rep"), number(1), number(0)),
		}},
		{name: "no-primary-key", transaction: mysqlTransaction(26), rows: []canal.Row{
			inserted(nopk, number(1), text("x")),
			inserted(nopk, number(1), text("x")),
			inserted(nopk, number(2), null),
			changed(nopk, values(number(2), null), values(number(2), text("null"))),
			removed(nopk, number(1), text("x")),
		}},
		{name: "key-change", transaction: mysqlTransaction(27), rows: []canal.Row{
			inserted(keyed("kc"), number(1), number(1)),
			changed(keyed("kc"), values(number(1), number(1)), values(number(2), number(1))),
			changed(items, values(number(7), number(1), text("A")), values(number(7), number(2), text("B"))),
		}},
		{name: "minimal-image", transaction: mysqlTransaction(28), rows: []canal.Row{
			changed(article, values(number(1), absent, absent), values(absent, text("new"), absent)),
			changed(article, values(number(1), absent, absent), values(number(2), text("moved"), absent)),
			changed(items, values(number(7), number(1), absent), values(absent, number(2), absent)),
			changed(nopk, values(number(2), text("x")), values(absent, text("y"))),
			removed(article, number(1), absent, absent),
		}},
		{name: "noblob-image", transaction: mysqlTransaction(29), rows: []canal.Row{
			changed(article, values(number(1), text("old"), absent), values(number(1), text("new"), absent)),
			changed(article, values(number(1), text("new"), absent), values(number(1), text("new"), text("changed"))),
			removed(article, number(1), text("new"), absent),
		}},
		{name: "mariadb-full-nodup", transaction: mariadbTransaction(30), rows: []canal.Row{
			inserted(article, number(1), text("old"), text("long")),
			changed(article, values(number(1), text("old"), text("long")), values(absent, text("new"), absent)),
		}},
		{name: "anonymous", transaction: anonymousTransaction("binlog.000023", 4711), rows: []canal.Row{
			inserted(orders, number(1001), of(canal.KindEnum, "new"), of(canal.KindDecimal, "19.90"), null),
			changed(keyed("kc"), values(number(1), number(1)), values(number(2), number(1))),
		}},
		{name: "tagged-gtid", transaction: tagged, rows: []canal.Row{
			inserted(keyed("kc"), number(1), number(1)),
		}},
		{name: "keys", transaction: mysqlTransaction(31), rows: keysRows(), rules: []TableRule{
			{Table: "shop.by_customer", Topic: "customers", Key: []string{"customer", "region"}},
			{Table: "*.*"},
		}},
		{name: "names", transaction: mysqlTransaction(32), rules: []TableRule{
			{Table: `shop_{00..15}.order_{0000..1023}`, Topic: "orders.{database}"},
			{Table: `odd\.db.*`, Topic: "odd"},
		}, rows: []canal.Row{
			inserted(table("shop_07", "order_0512", []int{0}, "id"), number(1)),
			inserted(table("odd.db", "a \"quoted\"/täble?", []int{0}, "id", "ключ", "line\nbreak"), number(1), number(2), number(3)),
			inserted(table("shop_16", "order_0512", []int{0}, "id"), number(1)), // not captured
		}},
	}
}

// keyed is a table of two numbers whose first is the primary key.
func keyed(name string) *canal.Table { return table("shop", name, []int{0}, "id", "v") }

func typesRows() []canal.Row {
	kinds := []struct {
		column string
		value  canal.Value
	}{
		{"id", canal.NewUint(18446744073709551615)},
		{"int_min", canal.NewInt(-9223372036854775808)},
		{"year", canal.NewUint(2026)},
		{"float", canal.NewFloat(0.1)},
		{"float_max", canal.NewFloat(3.4028235e38)},
		{"double", canal.NewDouble(0.30000000000000004)},
		{"double_tiny", canal.NewDouble(5e-324)},
		{"double_whole", canal.NewDouble(1e20)},
		{"negative_zero", canal.NewDouble(negativeZero())},
		{"decimal", of(canal.KindDecimal, "-0.500000000000000000000000000001")},
		{"text", text("Grüße, 世界 😀 \"\\/\u2028 tab\t line\n bell\a nul\x00")},
		{"empty", text("")},
		{"binary", of(canal.KindBinary, "\x00\xff\x10\x00\x00")},
		{"date", of(canal.KindDate, "0000-00-00")},
		{"datetime", of(canal.KindDateTime, "2026-11-29T10:00:00.123")},
		{"time", of(canal.KindTime, "-838:59:59.000")},
		{"timestamp", of(canal.KindInstant, "2026-11-29T02:00:00.120000Z")},
		{"enum", of(canal.KindEnum, `a,"b"`)},
		{"set", of(canal.KindSet, `["a","b"]`)},
		{"json", of(canal.KindJSON, `{"n": 1.0, "a": [1, 2]}`)},
		{"point", of(canal.KindGeometry, `{"type":"Point","coordinates":[1,2]}`)},
		{"vector", of(canal.KindVector, `[0.5,1]`)},
		{"nothing", null},
	}
	t := table("shop", "types", []int{0})
	var after []canal.Value
	for _, k := range kinds {
		t.Columns = append(t.Columns, canal.Column{Name: k.column})
		after = append(after, k.value)
	}
	return []canal.Row{inserted(t, after...)}
}

func keysRows() []canal.Row {
	one := func(name string, v canal.Value) canal.Row { return inserted(table("shop", name, []int{0}, "k"), v) }
	pair := table("shop", "pairs", []int{1, 0}, "second", "first")
	customer := table("shop", "by_customer", []int{0}, "id", "customer", "region")
	return []canal.Row{
		one("plain", text(`a,b\c`)),
		one("binary", of(canal.KindBinary, "\xde\xad\xbe\xef")),
		one("float", canal.NewDouble(1.5)),
		one("empty", text("")),
		inserted(pair, text(`b\`), text(`a,`)),
		inserted(pair, text(`,b`), text(`a\`)),
		inserted(customer, number(1), text("Ann"), null),
		changed(customer, values(number(1), text("Ann"), null), values(number(1), text("Ben"), text("EU"))),
		changed(customer, values(number(1), text("Ben"), text("EU")), values(number(2), text("Ben"), text("EU"))),
	}
}

func TestGolden(t *testing.T) {
	for _, c := range goldenCases() {
		t.Run(c.name, func(t *testing.T) {
			checkEvents(t, c.compare(t))
		})
	}
}

// compare maps the case's rows and compares the events with the golden file.
func (c goldenCase) compare(t *testing.T) []Event {
	t.Helper()
	events := c.events(t)
	var got bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&got, "%s\t%s\t%s\n", e.Topic, e.Key, e.Payload)
		if e.ContentType != "" {
			fmt.Fprintf(&got, "\t%s %s %s %s\n", e.ID, e.Type, e.Sequence, e.ContentType)
		}
		for _, h := range e.Headers {
			fmt.Fprintf(&got, "\t%s: %s\n", h.Key, h.Value)
		}
	}
	file := filepath.Join("testdata", c.name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got.String()))
	return events
}

// events maps the case's rows.
func (c goldenCase) events(t *testing.T) []Event {
	t.Helper()
	rules := c.rules
	if len(rules) == 0 {
		rules = []TableRule{{Table: "*.*"}}
	}
	return mapRows(t, Options{Name: "shop", Tables: rules, MaskKey: "0123456789abcdef"}, c.transaction, numbered(c.rows...))
}

// mapRows maps the rows of one transaction with a new Mapper.
func mapRows(t *testing.T, opts Options, x *canal.Transaction, rows []canal.Row) []Event {
	t.Helper()
	m, err := New(opts)
	require.NoError(t, err)
	w := m.NewWorker()
	require.NoError(t, w.Begin(x))
	var events []Event
	for i := range rows {
		events, err = w.Append(events, &rows[i])
		require.NoError(t, err)
	}
	events, err = w.End(events, 0)
	require.NoError(t, err)
	return events
}

// checkEvents holds the events of one transaction against what is promised of all.
func checkEvents(t *testing.T, events []Event) {
	t.Helper()
	ids := map[string]bool{}
	sequence := ""
	for _, e := range events {
		require.Regexp(t, `^[0-9a-z-]{49,64}$`, e.ID)
		require.False(t, ids[e.ID], "id %s is given twice", e.ID)
		ids[e.ID] = true
		require.Regexp(t, `^[0-9]{20}-[0-9]{10}-[01]$`, e.Sequence)
		require.Greater(t, e.Sequence, sequence)
		sequence = e.Sequence
		require.NotContains(t, string(e.Payload), "\n")

		require.Equal(t, memberNames(t, e), topMembers(t, e.Payload))
		var got struct {
			ID, Source, Type, Subject, Time, GTID, Sequence, PartitionKey string
		}
		require.NoError(t, json.Unmarshal(e.Payload, &got))
		require.Equal(t, e.ID, got.ID)
		require.Equal(t, e.Source, got.Source)
		require.Equal(t, e.Type, got.Type)
		require.Equal(t, e.Time, got.Time)
		require.Equal(t, e.GTID, got.GTID)
		require.Equal(t, e.Sequence, got.Sequence)
		require.Equal(t, string(e.Key), got.PartitionKey)
	}
}

// memberNames are the members that the event must have, in the contract's order.
func memberNames(t *testing.T, e Event) []string {
	t.Helper()
	names := []string{"specversion", "id", "source", "type"}
	if len(e.Key) > 0 && string(e.Key) != e.Table {
		names = append(names, "subject")
	}
	names = append(names, "time", "datacontenttype")
	if e.GTID != "" {
		names = append(names, "gtid")
	}
	names = append(names, "sequence")
	if len(e.Key) > 0 {
		names = append(names, "partitionkey")
	}
	return append(names, "data")
}

// topMembers are the names of an object's members in the order of its text.
func topMembers(t *testing.T, object []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	require.NoError(t, err)
	var names []string
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err)
		names = append(names, strings.Clone(name.(string)))
		var value json.RawMessage
		require.NoError(t, d.Decode(&value))
	}
	return names
}
