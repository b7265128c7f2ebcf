package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// messageBox is the outbox of the tests.
func messageBox(t testing.TB) *canal.Table {
	return typed(t, "shop", "message_box", []int{0},
		[3]string{"id", "bigint unsigned", ""},
		[3]string{"topic", "varchar(100)", "utf8mb4"},
		[3]string{"msg_key", "varchar(64)", "utf8mb4"},
		[3]string{"payload", "text", "utf8mb4"},
		[3]string{"headers", "json", ""},
		[3]string{"raw", "blob", ""},
		[3]string{"uid", "char(36)", "ascii"},
		[3]string{"status", "tinyint", ""},
	)
}

func message(id uint64, topic, key, payload, headers, raw, uid canal.Value) []canal.Value {
	return values(canal.NewUint(id), topic, key, payload, headers, raw, uid, number(0))
}

func outboxRule(change func(*TableRule)) TableRule {
	rule := TableRule{
		Topic: "topic", Key: []string{"msg_key"},
		OutboxRule: OutboxRule{Outbox: "shop.message_box", Payload: "payload", AllowTopics: []string{"order.*", "stock.{deducted,restored}"}},
	}
	if change != nil {
		change(&rule)
	}
	return rule
}

func outboxCases(t *testing.T) []goldenCase {
	box := messageBox(t)
	object := text("{\n  \"order_id\": 1001, \"amount\": 19.90\n}")
	headers := of(canal.KindJSON, `{"trace": "abc", "attempt": 2, "nothing": null}`)
	sent := message(1, text("order.paid"), text("1001"), object, null, null, null)
	marked := append(append([]canal.Value(nil), sent[:7]...), number(1))
	bytes := of(canal.KindBinary, "\x00\xffa")
	uid := text("5f0c4f3e-7d26-4a51-9e0b-0c6f2f1f1c11")
	return []goldenCase{
		{
			name: "outbox-derived", transaction: mysqlTransaction(60), rules: []TableRule{outboxRule(nil)},
			rows: []canal.Row{
				inserted(box, sent...),
				inserted(box, message(2, text("stock.deducted"), null, text("plain\ntext"), null, null, null)...),
				inserted(box, message(3, text("order.none"), text("1"), null, null, null, null)...),
				changed(box, sent, marked), removed(box, marked...),
			},
		},
		{
			name: "outbox-columns", transaction: mysqlTransaction(61),
			rules: []TableRule{outboxRule(func(r *TableRule) {
				r.ID, r.Headers = "uid", OutboxHeaders{Column: "headers"}
			})},
			rows: []canal.Row{inserted(box, message(1, text("order.paid"), text("1001"), object, headers, null, uid)...)},
		},
		{
			name: "outbox-bytes", transaction: mysqlTransaction(62),
			rules: []TableRule{outboxRule(func(r *TableRule) {
				r.Payload, r.Headers = "raw", OutboxHeaders{Columns: []HeaderColumn{{"uid", "uid"}, {"status", "status"}}}
			})},
			rows: []canal.Row{inserted(box, message(1, text("order.paid"), text("1001"), null, null, bytes, null)...)},
		},
		{
			name: "outbox-binary", transaction: mysqlTransaction(63),
			rules: []TableRule{outboxRule(func(r *TableRule) { r.Envelope = EnvelopeBinary })},
			rows: []canal.Row{
				inserted(box, sent...),
				inserted(box, message(2, text("stock.deducted"), null, text("plain text"), null, null, null)...),
			},
		},
	}
}

func TestGoldenOutbox(t *testing.T) {
	for _, c := range outboxCases(t) {
		t.Run(c.name, func(t *testing.T) { c.compare(t) })
	}
}

// TestOutboxRefusals: what a row may not say stops the run, or is skipped and counted where the entry says so.
func TestOutboxRefusals(t *testing.T) {
	t.Parallel()
	box := messageBox(t)
	good := func() []canal.Value {
		return message(1, text("order.paid"), text("1"), text("{}"), of(canal.KindJSON, "{}"), null, text("a-1"))
	}
	cases := []struct {
		name, wants string
		column      int
		value       canal.Value
	}{
		{"topic outside the list", `"admin.secrets" is not in allow_topics`, 1, text("admin.secrets")},
		{"topic that is no name", "only letters of ASCII", 1, text("order.x/../y")},
		{"no topic", `column "topic" holds none`, 1, null},
		{"id that is none", `column "uid" holds none`, 6, null},
		{"id with other characters", `"a b" is none`, 6, text("a b")},
		{"payload that is no JSON", `column "payload" holds no JSON`, 3, text("{")},
		{"headers that are no object", "no JSON object", 4, of(canal.KindJSON, "[1]")},
		{"header of the event's own", "this header is the event's own", 4, of(canal.KindJSON, `{"ce_id": "x"}`)},
	}
	for _, c := range cases {
		for _, onError := range []string{onErrorStop, onErrorSkip} {
			t.Run(c.name+" "+onError, func(t *testing.T) {
				t.Parallel()
				rule := outboxRule(func(r *TableRule) {
					r.ID, r.Content, r.OnError, r.Headers = "uid", contentJSON, onError, OutboxHeaders{Column: "headers"}
				})
				m, err := New(Options{Name: "shop", Tables: []TableRule{rule}})
				require.NoError(t, err)
				w := m.NewWorker()
				require.NoError(t, w.Begin(mysqlTransaction(70)))
				row := good()
				row[c.column] = c.value
				rows := numbered(inserted(box, row...), inserted(box, good()...))
				events, err := w.Append(nil, &rows[0])
				if onError == onErrorStop {
					require.ErrorContains(t, err, c.wants)
					return
				}
				require.NoError(t, err)
				require.Empty(t, events)
				skipped := w.Skipped()
				require.Len(t, skipped, 1)
				require.ErrorContains(t, skipped[0].Err, c.wants)
				events, err = w.Append(nil, &rows[1])
				require.NoError(t, err)
				require.Len(t, events, 1, "the next message")
			})
		}
	}
}

// TestOutboxOptions: mistakes are named by their key.
func TestOutboxOptions(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*TableRule){
		"events[0].allow_topics: missing":            func(r *TableRule) { r.AllowTopics = nil },
		"events[0].allow_topics[0]":                  func(r *TableRule) { r.AllowTopics = []string{"{a"} },
		"events[0].topic: missing":                   func(r *TableRule) { r.Topic = "" },
		"events[0].payload: missing":                 func(r *TableRule) { r.Payload = "" },
		"events[0].outbox: missing":                  func(r *TableRule) { r.Outbox = "" },
		"events[0].content: write json":              func(r *TableRule) { r.Content = "xml" },
		"events[0]: an outbox is relayed as it is":   func(r *TableRule) { r.Emit = []EmitRule{{Type: "a"}} },
		"events[0]: envelope: row and tombstones":    func(r *TableRule) { r.Tombstones = true },
		"events[0].headers.ce_id":                    func(r *TableRule) { r.Headers.Columns = []HeaderColumn{{"ce_id", "uid"}} },
		"events[0].on_error: dead letters come with": func(r *TableRule) { r.OnError = onErrorDeadLetter },
	}
	for wants, change := range cases {
		require.ErrorContains(t, Options{Name: "shop", Tables: []TableRule{outboxRule(change)}}.Validate(), wants)
	}
	m, err := New(Options{Name: "shop", Tables: []TableRule{outboxRule(func(r *TableRule) { r.ID = "uuid" })}})
	require.NoError(t, err)
	require.ErrorContains(t, m.Check(messageBox(t)), `events[0].id: table shop.message_box has no column "uuid"`)
}
