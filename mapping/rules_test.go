package mapping

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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
	moved := append([]canal.Value{canal.NewUint(1002)}, paid[1:]...)
	shards := []TableRule{{
		Table: "shop_*.orders_{0000..1023}", Topic: "orders.{shard}",
		Emit: []EmitRule{{Type: "order.created", On: Operations{"insert"}, Topic: "orders", Data: Object{{"id", expr("new.id")}, {"shard", expr("shard")}, {"from", expr("concat(database, '.', table)")}}}},
	}}
	shard := *orders
	shard.Database, shard.Name = "shop_eu", "orders_0512"

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
		{
			name: "rules-several", transaction: mysqlTransaction(41),
			rules: orderRules(
				EmitRule{Type: "order.saved", On: Operations{"insert", "update"}, Data: Object{}},
				EmitRule{Type: "order.paid", When: `became("status", "paid")`, Data: Object{{"by", expr("op")}}},
				EmitRule{Type: "order.priced", On: Operations{"update"}, When: `changed("amount")`},
				EmitRule{Type: "order.removed", On: Operations{"delete"}, Data: Object{{"was", expr("old")}, {"is", expr("new")}}},
				EmitRule{Type: "orders.emptied", On: Operations{"truncate"}, Data: Object{{"table", expr("table")}, {"op", expr("op")}}},
			),
			rows: []canal.Row{
				inserted(orders, paid...), changed(orders, fresh, paid), removed(orders, paid...),
				{Table: table("shop", "orders", nil), Op: canal.Truncate},
			},
		},
		{
			// One update to rules, whatever it does to the key.
			name: "rules-key-change", transaction: mysqlTransaction(42),
			rules: orderRules(
				EmitRule{Type: "order.created", On: Operations{"insert"}},
				EmitRule{Type: "order.moved", On: Operations{"update"}, When: `changed("id")`, Data: Object{{"from", expr("old.id")}, {"to", expr("new.id")}}},
				EmitRule{Type: "order.changed", On: Operations{"update"}},
			),
			rows: []canal.Row{changed(orders, paid, moved)},
		},
		{
			name: "rules-data", transaction: mariadbTransaction(43),
			rules: orderRules(EmitRule{
				Type: "order.seen", On: Operations{"insert"},
				Data: Object{
					{"constants", Template{Object: Object{{"text", expr(`"web"`)}, {"number", expr("1.50")}, {"large", expr("18446744073709551615")}, {"truth", expr("true")}, {"nothing", expr("null")}}}},
					{"computed", Template{List: []Template{expr("new.amount * 2"), expr("new.id + 1"), expr(`new.status == "paid"`), expr(`new.paid_at > "2026-01-01"`), expr("lower(new.email)")}}},
					{"json", Template{Object: Object{{"whole", expr("new.note")}, {"member", expr("new.note.gift")}, {"digits", expr("new.note.lines[0].price")}, {"missing", expr("new.note.none")}}}},
					{"commit", Template{Object: Object{{"gtid", expr("gtid")}, {"at", expr("committed_at")}, {"database", expr("database")}, {"table", expr("table")}, {"shard", expr("shard")}}}},
					{"a \"name\"", Template{Object: Object{}}},
					{"empty", Template{List: []Template{}}},
				},
			}),
			rows: []canal.Row{inserted(orders, paid...), inserted(orders, orderValues(1, "new", "0.00", null, null, null)...)},
		},
		{
			name: "rules-envelope", transaction: mysqlTransaction(44),
			rules: orderRules(
				EmitRule{
					Type: "order.mailed", Key: RuleKey{Expression: `lower(row.email)`}, Subject: `concat("order/", row.id)`,
					Headers: Object{{"tenant", expr("database")}, {"paid", expr(`row.status == "paid"`)}, {"paid-at", expr("row.paid_at")}}, Data: Object{{"id", expr("row.id")}},
				},
				EmitRule{Type: "order.kept", On: Operations{"insert"}, Key: RuleKey{Columns: []string{"status", "id"}}, Subject: "new.paid_at", Data: Object{}},
				EmitRule{Type: "order.routed", On: Operations{"insert"}, Topic: "orders.{new.status}", Topics: []string{"orders.new", "orders.paid"}, Data: Object{}},
			),
			rows: []canal.Row{inserted(orders, fresh...), inserted(orders, paid...), removed(orders, paid...)},
		},
		{
			name: "rules-columns", transaction: mysqlTransaction(45),
			rules: []TableRule{{
				Table: "shop.orders", Columns: Columns{Exclude: []string{"note"}, Rename: map[string]string{"amount": "total", "paid_at": "note"}},
				Emit: []EmitRule{
					{Type: "order.created", On: Operations{"insert"}},
					{Type: "order.changed", On: Operations{"update"}, Columns: Columns{Include: []string{"id", "status"}}},
					{Type: "order.removed", On: Operations{"delete"}, Data: Object{{"order", expr("row")}, {"note", expr("old.note")}}},
				},
			}},
			rows: []canal.Row{inserted(orders, fresh...), changed(orders, fresh, paid), removed(orders, paid...)},
		},
		{
			name: "default-shaped", transaction: mysqlTransaction(46),
			rules: []TableRule{{
				Table: "shop.*", Columns: Columns{Exclude: []string{"note", "no such column"}, Rename: map[string]string{"email": "mail"}},
				Mask: Masks{{Column: "email", Method: maskHash}, {Column: "status", Method: maskRedact}, {Column: "amount", Method: maskLast, Last: 2}, {Column: "paid_at", Method: maskNull}},
			}},
			rows: []canal.Row{inserted(orders, fresh...), changed(orders, fresh, paid), changed(orders, paid, moved), removed(orders, paid...)},
		},
		{
			name: "rules-masks", transaction: mysqlTransaction(47),
			rules: []TableRule{{
				Table: "shop.orders", Key: []string{"email"},
				Mask: Masks{{Column: "email", Method: maskHash}},
				Emit: []EmitRule{{
					Type: "order.paid", When: `old.email == "ann@example.com" && became("status", "paid")`, Topic: "orders", Headers: Object{{"mail", expr("new.email")}}, Subject: `concat("mail:", new.email)`,
					Data: Object{{"mail", expr("new.email")}, {"upper", expr("upper(old.email)")}, {"row", expr("row")}},
				}},
			}},
			rows: []canal.Row{changed(orders, fresh, paid)},
		},
		{
			name: "rules-minimal-image", transaction: mysqlTransaction(48),
			rules: orderRules(EmitRule{
				Type: "order.paid", On: Operations{"update"}, When: `new.status == "paid" && (present(old.status) ? old.status != "paid" : true)`,
				Data: Object{{"id", expr("new.id")}, {"before", expr(`present(old.status) ? old.status : "unknown"`)}},
			}),
			rows: []canal.Row{changed(orders,
				values(canal.NewUint(1001), absent, absent, absent, absent, absent),
				values(absent, of(canal.KindEnum, "paid"), absent, absent, absent, absent)), changed(orders, fresh, paid)},
		},
		{name: "rules-shards", transaction: mysqlTransaction(49), rules: shards, rows: []canal.Row{inserted(&shard, fresh...)}},
	}
}

// orderRules is an entry for the orders table.
func orderRules(rules ...EmitRule) []TableRule {
	return []TableRule{{Table: "shop.orders", Emit: rules}}
}

func TestRules(t *testing.T) {
	for _, c := range ruleCases(t) {
		t.Run(c.name, func(t *testing.T) { c.compare(t) })
	}
}

// TestRulesKeepTheDefaultIDs: an event that rules call as the default mapping does, has the same id.
func TestRulesKeepTheDefaultIDs(t *testing.T) {
	orders := shopOrders(t)
	fresh := orderValues(1, "new", "1.00", null, null, null)
	paid := orderValues(1, "paid", "1.00", null, null, null)
	rows := numbered(inserted(orders, fresh...), changed(orders, fresh, paid), removed(orders, paid...))
	plain := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "shop.orders"}}}, mysqlTransaction(1), rows)
	ruled := mapRows(t, Options{Name: "shop", Tables: orderRules(
		EmitRule{Type: "orders.created", On: Operations{"insert"}},
		EmitRule{Type: "orders.updated", On: Operations{"update"}},
		EmitRule{Type: "orders.deleted", On: Operations{"delete"}},
	)}, mysqlTransaction(1), rows)
	require.Equal(t, plain, ruled)
}

// TestIDsDoNotDependOnOtherRules: whatever rules are there beside a rule, of its table and of others, its events have the
// same ids, keys and data.
func TestIDsDoNotDependOnOtherRules(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tables := []*canal.Table{shopOrders(t), shopOrders(t), shopOrders(t)}
	tables[1].Name, tables[2].Database = "archive", "crm"
	all := []EmitRule{
		{Type: "order.created", On: Operations{"insert"}},
		{Type: "order.paid", On: Operations{"update"}, When: `became("status", "paid")`, Data: Object{{"id", expr("new.id")}}},
		{Type: "order.changed", On: Operations{"update"}, When: `changed("amount", "id")`},
		{Type: "order.touched"},
		{Type: "order.removed", On: Operations{"delete"}, Key: RuleKey{Expression: "old.status"}},
	}
	content := func(e *Event) string { // all but the sequence's last digit, which counts the events of a change
		return strings.Replace(string(e.Payload), e.Sequence, e.Sequence[:len(e.Sequence)-1], 1)
	}
	for round := range 30 {
		var rows []canal.Row
		for range 40 {
			rows = append(rows, randomOrder(random, tables[random.IntN(len(tables))]))
		}
		rows = numbered(rows...)
		x := mysqlTransaction(uint64(round) + 1)
		full := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "*.*", Emit: all}}}, x, rows)
		want := map[string]string{}
		for i := range full {
			require.NotContains(t, want, full[i].ID)
			want[full[i].ID] = content(&full[i])
		}
		for range 20 {
			var entries []TableRule
			expected := 0
			for _, table := range tables {
				var rules []EmitRule
				types := map[string]bool{}
				for _, rule := range all {
					if random.IntN(2) == 0 {
						rules = append(rules, rule)
						types[rule.Type] = true
					}
				}
				if len(rules) == 0 {
					continue
				}
				random.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
				entries = append(entries, TableRule{Table: table.Database + "." + table.Name, Emit: rules})
				for i := range full {
					if full[i].Table == table.Database+"."+table.Name && types[full[i].Type] {
						expected++
					}
				}
			}
			if len(entries) == 0 {
				continue
			}
			random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			some := mapRows(t, Options{Name: "shop", Tables: entries}, x, rows)
			require.Len(t, some, expected)
			sequence := ""
			for i := range some {
				require.Equal(t, want[some[i].ID], content(&some[i]))
				require.Greater(t, some[i].Sequence, sequence)
				sequence = some[i].Sequence
			}
		}
	}
}

func randomOrder(random *rand.Rand, table *canal.Table) canal.Row {
	image := func() []canal.Value {
		return orderValues(uint64(random.IntN(3)), []string{"new", "paid"}[random.IntN(2)], fmt.Sprintf("%d.00", random.IntN(2)), null, null, null)
	}
	switch random.IntN(3) {
	case 0:
		return inserted(table, image()...)
	case 1:
		return removed(table, image()...)
	}
	return changed(table, image(), image())
}

// TestMistakesInRules: what is wrong with rules whatever the table is.
func TestMistakesInRules(t *testing.T) {
	many := make([]EmitRule, maxRulesPerEntry+1)
	deep := Template{Expression: "1"}
	for range maxTemplateDepth + 1 {
		deep = Template{Object: Object{{"x", deep}}}
	}
	topics := func(rule EmitRule) EmitRule { rule.Type = "x"; return rule }
	for want, entry := range map[string]TableRule{
		"emit: no rules: write at least one":                                                               {Emit: []EmitRule{}},
		"emit: 1001 rules: at most 1000 are allowed":                                                       {Emit: many},
		"emit[0].type: missing":                                                                            {Emit: []EmitRule{{}}},
		"emit[0].type: write up to 128 letters":                                                            {Emit: []EmitRule{{Type: "order paid"}}},
		`emit[0].on: "upsert" is no kind of change: write insert, update`:                                  {Emit: []EmitRule{{Type: "x", On: Operations{"upsert"}}}},
		"emit[0].on: insert stands in it twice":                                                            {Emit: []EmitRule{{Type: "x", On: Operations{"insert", "insert"}}}},
		"emit[0].when: syntax error at character 9":                                                        {Emit: []EmitRule{{Type: "x", When: "new.id =="}}},
		"emit[0].data.a.b: in {a: 1}: objects are":                                                         {Emit: []EmitRule{{Type: "x", Data: Object{{"a", Template{Object: Object{{"b", expr(`{"a": 1}`)}}}}}}}},
		"emit[0].data.a: it stands in the object twice":                                                    {Emit: []EmitRule{{Type: "x", Data: Object{{"a", expr("1")}, {"a", expr("2")}}}}},
		"emit[0].data.a.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x: objects inside objects more than 20 deep": {Emit: []EmitRule{{Type: "x", Data: Object{{"a", deep}}}}},
		"emit[0].on_error: dead letters come with a later release: write stop":                             {Emit: []EmitRule{{Type: "x", OnError: "dead_letter"}}},
		"emit[0].on_error: write stop or skip":                                                             {Emit: []EmitRule{{Type: "x", OnError: "ignore"}}},
		"emit[0].headers.ce_id: this header is the event's own":                                            {Emit: []EmitRule{{Type: "x", Headers: Object{{"ce_id", expr("1")}}}}},
		"emit[0].headers.a b: the name of a header is made of":                                             {Emit: []EmitRule{{Type: "x", Headers: Object{{"a b", expr("1")}}}}},
		"emit[0].headers.a: a header is one text":                                                          {Emit: []EmitRule{{Type: "x", Headers: Object{{"a", Template{Object: Object{}}}}}}},
		"emit[0].key[1]: column \"a\" stands in the key twice":                                             {Emit: []EmitRule{{Type: "x", Key: RuleKey{Columns: []string{"a", "a"}}}}},
		"emit[1].type: x is given to the same kind of change by events[0].emit[0] already, and a change has one event of a type, whose id it is part of: give it another type, or join the conditions with ||": {
			Emit: []EmitRule{{Type: "x", On: Operations{"insert"}, When: "new.id == 1"}, {Type: "x", When: "new.id == 2"}},
		},
		"emit[1].type: x is given to the same kind of change by events[0].emit[0] already, and a change has one event of a type, whose id it is part of: it is shadowed: remove one of them": {
			Emit: []EmitRule{{Type: "x"}, {Type: "x"}},
		},
		`emit[0].topic: "orders.{new.region}" is made of values of rows, which could name any topic: list those that it may name, topics: [orders.eu, orders.us]`: {
			Emit: []EmitRule{topics(EmitRule{Topic: "orders.{new.region}"})},
		},
		"emit[0].topics: it goes with a topic of values":                   {Emit: []EmitRule{topics(EmitRule{Topic: "a", Topics: []string{"a"}})}},
		"emit[0].topics: it goes with a topic: write":                      {Emit: []EmitRule{topics(EmitRule{Topics: []string{"a"}})}},
		`emit[0].topics[0]: topic "a b" has the character ' '`:             {Emit: []EmitRule{topics(EmitRule{Topic: "{new.a}", Topics: []string{"a b"}})}},
		"emit[0].topic: {new.a +}: syntax error":                           {Emit: []EmitRule{topics(EmitRule{Topic: "{new.a +}", Topics: []string{"a"}})}},
		`emit[0].topic: "a{new.b" has a brace that is not closed`:          {Emit: []EmitRule{topics(EmitRule{Topic: "a{new.b"})}},
		`emit[0].topic: "a}b" has a brace that is not opened`:              {Emit: []EmitRule{topics(EmitRule{Topic: "a}b"})}},
		"topic: a topic of values goes with rules":                         {Topic: "{new.a}", Topics: []string{"a"}},
		"columns.include[0]: column \"a\" is excluded, too":                {Columns: Columns{Include: []string{"a"}, Exclude: []string{"a"}}},
		"columns.rename.a: empty: write the name that events show":         {Columns: Columns{Rename: map[string]string{"a": ""}}},
		"columns.rename.b: \"x\" is the name of column \"a\" already":      {Columns: Columns{Rename: map[string]string{"a": "x", "b": "x"}}},
		"columns.rename.a: the column is not shown":                        {Columns: Columns{Exclude: []string{"a"}, Rename: map[string]string{"a": "x"}}},
		"mask.a: hash needs a key, which is a secret: write mask_key: ${M": {Mask: Masks{{Column: "a", Method: "hash"}}},
		"mask.a: write hash, redact, null or {last: 4}":                    {Mask: Masks{{Column: "a", Method: "sha1"}}},
		"mask.a: write a number of characters from 1 to 64":                {Mask: Masks{{Column: "a", Method: "last"}}},
		"mask.a: the column is masked twice":                               {Mask: Masks{{Column: "a", Method: "null"}, {Column: "a", Method: "redact"}}},
	} {
		entry.Table = "shop.orders"
		err := Options{Name: "shop", Tables: []TableRule{entry}}.Validate()
		require.ErrorContains(t, err, "events[0]."+want, want)
		_, ok := errors.AsType[*OptionError](err)
		require.True(t, ok)
	}
	err := Options{Name: "shop", Tables: []TableRule{{Table: "a.b"}}, MaskKey: "short"}.Validate()
	require.ErrorContains(t, err, "mask_key: shorter than 16 bytes")
	require.NotContains(t, err.Error(), `short"`)
}

// TestRulesAreCheckedAgainstTheTable: each mistake is named with its key, all of them at once.
func TestRulesAreCheckedAgainstTheTable(t *testing.T) {
	check := func(entry TableRule) error {
		entry.Table = "shop.orders"
		m, err := New(Options{Name: "shop", Tables: []TableRule{entry}, MaskKey: "0123456789abcdef"})
		require.NoError(t, err)
		return m.Check(shopOrders(t))
	}
	err := check(TableRule{Emit: []EmitRule{
		{Type: "a", When: `new.state == "paid"`},
		{Type: "b", On: Operations{"insert"}, When: `changed("status")`, Data: Object{{"total", expr("new.total")}}},
		{Type: "c", On: Operations{"truncate"}, Data: Object{{"x", expr("row.id")}}},
		{Type: "d", When: `1 == 2`},
		{Type: "e", Key: RuleKey{Columns: []string{"customer"}}, Subject: "new.nobody", Headers: Object{{"h", expr("new.header")}}, Topic: "{new.topic}", Topics: []string{"a"}},
		{Type: "f", Columns: Columns{Include: []string{"nothing"}}},
	}})
	for _, want := range []string{
		`events[0].emit[0].when: in new.state: table shop.orders has no column "state": write one of id, status, amount, paid_at, email, note`,
		`events[0].emit[1].when: in changed("status"): only updates change columns`,
		`events[0].emit[1].data.total: in new.total: table shop.orders has no column "total"`,
		`events[0].emit[3].when: it is never true, so that the rule is unused`,
		`events[0].emit[4].key: table shop.orders has no column "customer"`, `events[0].emit[4].subject: in new.nobody`, `events[0].emit[4].headers.h: in new.header`, `events[0].emit[4].topic: in new.topic`,
		`events[0].emit[5].columns.include: table shop.orders has no column "nothing"`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, check(TableRule{Emit: []EmitRule{{Type: "c", On: Operations{"truncate"}, Data: Object{{"x", expr("row.id")}}}}}), "events[0].emit[0].data.x: in row.id: table shop.orders has no column")
	require.ErrorContains(t, check(TableRule{Mask: Masks{{Column: "mail", Method: maskNull}}}), `events[0].mask.mail: table shop.orders has no column "mail"`)
	require.ErrorContains(t, check(TableRule{Mask: Masks{{Column: "id", Method: maskRedact}}}), "events[0].mask.id: the column is in the key of the events of table shop.orders, where redact would make one key of many: write hash, or another key")
	require.ErrorContains(t, check(TableRule{Columns: Columns{Rename: map[string]string{"email": "status"}}}), `columns "status" and "email" would both be shown as "status"`)
	require.NoError(t, check(TableRule{Mask: Masks{{Column: "id", Method: maskHash}}}))
}

// TestFailingRules: what a rule cannot do stops with all that is needed to find the change, or is counted as skipped;
// either way without a value that is masked.
func TestFailingRules(t *testing.T) {
	orders := shopOrders(t)
	fresh := orderValues(1001, "new", "19.90", null, text("secret@example.com"), null)
	row := inserted(orders, fresh...)
	row.Ordinal, row.Place = 42, 42
	entry := TableRule{
		Table: "shop.orders", Key: []string{"email"}, Mask: Masks{{Column: "email", Method: maskHash}},
		Emit: []EmitRule{{Type: "order.good"}, {Type: "order.bad", When: "number(new.email) > 1"}},
	}
	opts := Options{Name: "shop", Tables: []TableRule{entry}, MaskKey: "0123456789abcdef"}
	worker := func() *Worker {
		m, err := New(opts)
		require.NoError(t, err)
		w := m.NewWorker()
		require.NoError(t, w.Begin(mysqlTransaction(1)))
		return w
	}
	before := []Event{{ID: "earlier"}}
	got, err := worker().Append(before, &row)
	require.Equal(t, before, got)
	for _, want := range []string{
		"map change 42 of table shop.orders in transaction 3e11fa47-71ca-11e1-9e33-c80aa9429562:1: rule events[0].emit[1].when (order.bad), key \"",
		"in number(new.email): the text is no number; mend the rule, or write on_error: skip",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret")
	failure, ok := errors.AsType[*RuleError](err)
	require.True(t, ok)
	require.Len(t, failure.Key, 64)

	entry.Emit[1].OnError = onErrorSkip
	w := worker()
	got, err = w.Append(nil, &row)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "order.good", got[0].Type)
	skipped := w.Skipped()
	require.Len(t, skipped, 1)
	require.Equal(t, "shop.orders", skipped[0].Table)
	require.Equal(t, "order.bad", skipped[0].Err.Type)
	require.Empty(t, w.Skipped())
}

// TestTopicsOfValues: a row cannot name a topic that is not listed.
func TestTopicsOfValues(t *testing.T) {
	orders := shopOrders(t)
	w := newWorker(t, orderRules(EmitRule{Type: "x", Topic: "orders.{new.email}", Topics: []string{"orders.eu", "orders.us"}})...)
	for value, want := range map[string]string{"eu": "orders.eu", "us": "orders.us", "cn": "", "": "", "../secrets": "", "eu\x00": "", "EU": ""} {
		row := inserted(orders, orderValues(1, "new", "1.00", null, text(value), null)...)
		events, err := w.Append(nil, &row)
		if want == "" {
			require.ErrorContains(t, err, "orders.{new.email}: it gives a topic that is not in topics")
			if value != "" {
				require.NotContains(t, err.Error(), value)
			}
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, events[0].Topic)
	}
}

// TestRulesFollowTheSchema: after an ALTER that changes a type under the same name, rules are checked anew.
func TestRulesFollowTheSchema(t *testing.T) {
	w := newWorker(t, orderRules(EmitRule{Type: "x", When: "new.amount > 5"})...)
	row := inserted(shopOrders(t), orderValues(1, "new", "19.90", null, null, null)...)
	events, err := w.Append(nil, &row)
	require.NoError(t, err)
	require.Len(t, events, 1)
	altered := shopOrders(t)
	column, err := canal.NewColumn("amount", "varchar(20)", "utf8mb4")
	require.NoError(t, err)
	altered.Columns[2] = column
	row = inserted(altered, row.After...)
	_, err = w.Append(nil, &row)
	require.ErrorContains(t, err, "events[0].emit[0].when: in new.amount > 5: a text cannot be compared with a number")
}
