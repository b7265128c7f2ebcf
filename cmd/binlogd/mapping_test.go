package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// mappingTestOf runs `binlogd mapping test` on a document.
func mappingTestOf(t *testing.T, document string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tests.yaml")
	require.NoError(t, os.WriteFile(file, []byte(document), 0o600))
	var out, errs bytes.Buffer
	code = newApp(nil, &out, &errs, environment()).run(t.Context(), append([]string{"mapping", "test", file}, args...))
	return code, out.String(), errs.String()
}

// sampleDocument has rules and tables of its own; more are its tests.
func sampleDocument(tests string) string {
	return `events:
  - table: shop.orders
    topic: shop.order
    emit:
      - {type: order.created, on: insert}
      - {type: order.paid, on: update, when: 'became("status", "paid")', data: {id: new.id, amount: new.total, tags: new.tags, note: new.note}}
      - {type: order.gone, on: delete, headers: {why: old.status}, data: {ratio: '10 / number(old.status)'}}
  - {aggregate: order, root: shop.orders, on: insert, type: order.placed, include: {items: {table: shop.items, on: {order_id: id}}}}
tables:
  shop.orders: {columns: {id: int, status: "enum('new','paid')", total: "decimal(10,2)", tags: "set('a','b')", note: json}, primary_key: [id]}
  shop.items: {columns: {order_id: int, line: int}, primary_key: [order_id, line]}
tests:
` + tests
}

func TestMappingTestPasses(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := mappingTestOf(t, sampleDocument(`
  - name: paid
    changes:
      - update: shop.orders
        old: {id: 1, status: new, total: 19.9}
        new: {status: paid, tags: [b, a], note: {gift: true}}
    expect:
      - {type: order.paid, topic: shop.order, key: 1, subject: 1, data: {amount: "19.90", id: 1, tags: [a, b], note: {gift: true}}}
  - name: placed with its items
    changes:
      - {insert: shop.items, row: {order_id: 1, line: 1}}
      - {insert: shop.orders, row: {id: 1, status: new}}
    expect:
      - {type: order.created}
      - {type: order.placed, data: {id: 1, status: new, total: null, tags: null, note: null, items: [{order_id: 1, line: 1}]}}
  - name: a failing rule
    changes: [{delete: shop.orders, row: {id: 1, status: new}}]
    error: "rule events[0].emit[2].data (order.gone)"
`))
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Contains(t, stdout, "3 passed, 0 failed")
}

// TestMappingTestFails: what differs is shown line by line, and the exit code says that something did.
func TestMappingTestFails(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := mappingTestOf(t, sampleDocument(`
  - name: paid
    changes: [{update: shop.orders, old: {id: 1, status: new, total: 19.9}, new: {status: paid}}]
    expect: [{type: order.paid, data: {amount: "19.95", id: 1, tags: null, note: null}}]
  - name: too many
    changes: [{insert: shop.orders, row: {id: 1}}]
    expect: [{type: order.created}]
  - name: none
    changes: []
    expect: [{type: order.created, key: 7}]
  - name: no error
    changes: []
    error: something
`))
	require.Equal(t, exitUnexpected, code, stderr)
	require.Contains(t, stdout, `: paid
  - expected, + what the rules make
      - type: order.paid
        data: {
    -     "amount": "19.95",
    +     "amount": "19.90",
          "id": 1,
`)
	require.Contains(t, stdout, "    + - type: order.placed\n    +   topic: shop.orders\n    +   key: 1\n")
	require.Contains(t, stdout, "    - - type: order.created\n    -   key: 7\n")
	require.Contains(t, stdout, `expected an error with "something", and the rules made 0 events`)
	require.Contains(t, stdout, "0 passed, 4 failed")
}

func TestMappingTestMistakes(t *testing.T) {
	t.Parallel()
	for tests, wants := range map[string]string{
		"  - {name: a, changes: [{insert: shop.order, row: {id: 1}}]}\n":        "tests[0].changes[0]: table shop.order does not stand in tables",
		"  - {name: a, changes: [{insert: shop.orders, row: {ident: 1}}]}\n":    `table shop.orders has no column "ident"`,
		"  - {name: a, changes: [{insert: shop.orders, row: {status: odd}}]}\n": `"odd" is no value of column status`,
		"  - {name: a, changes: [{update: shop.orders, row: {id: 1}}]}\n":       "an update has old and new",
		"  - {name: a, changes: [{row: {id: 1}}]}\n":                            "write one of insert, update, delete and truncate",
		"  - {name: a, change: []}\n":                                           "tests[0].change: unknown key; did you mean changes?",
		"  - {name: a, error: x, expect: [{type: a}]}\n":                        "tests[0].error: it goes without expect",
		"  - name: a\nconfig: other.yaml\n":                                     "events: the rules stand here and in a configuration",
		"  - name: a\nexclude: [\"{\"]\n":                                       "exclude[0]",
	} {
		code, stdout, stderr := mappingTestOf(t, sampleDocument(tests))
		require.Equal(t, exitConfig, code, stdout)
		require.Contains(t, stderr, wants)
		require.Contains(t, stderr, "tests.yaml:")
	}
}

// TestShippedMappingTestsPass: those of the examples, without the configuration's secrets.
func TestShippedMappingTestsPass(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/tests/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out, errs bytes.Buffer
	code := newApp(nil, &out, &errs, environment()).run(t.Context(), append([]string{"mapping", "test"}, files...))
	require.Equal(t, exitOK, code, out.String()+errs.String())
}

// TestMappingPreview: what rules would have made of the past is counted; nothing is published, and no checkpoint appears.
func TestMappingPreview(t *testing.T) {
	t.Parallel()
	server := testenv.MySQL(t)
	s := newSetup(t, server)
	s.more = "    emit:\n      - {type: order.created, on: insert}\n      - {type: order.second, on: insert, when: new.id == 2}\n"
	s.write(t)
	server.Exec(t, "USE "+s.database, "INSERT INTO orders VALUES (1, 'a')", "INSERT INTO orders VALUES (2, 'b'), (3, 'c')", "DELETE FROM orders")
	code, stdout, stderr := binlogd(t, s.dir, "mapping", "preview", "--last", "1h", "-o", "json")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, `"events": 4`)
	require.Regexp(t, `"type": "order.created",[^}]*"events": 3`, stdout)
	require.Regexp(t, `"type": "order.second",[^}]*"events": 1`, stdout)
	code, stdout, stderr = binlogd(t, s.dir, "mapping", "preview", "--transactions", "1")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `2 +order.created +`+s.database+`.orders`, stdout)
	require.NoFileExists(t, filepath.Join(s.dir, "events.jsonl"))
	files, err := filepath.Glob(filepath.Join(s.dir, "*checkpoint*"))
	require.NoError(t, err)
	require.Empty(t, files)
}
