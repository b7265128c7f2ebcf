package canal

import (
	"log/slog"
	"strings"
	"testing"
)

// FuzzDDL: whatever statement stands in the binlog, following it must not panic, and what is known afterwards stays consistent
// and small.
func FuzzDDL(f *testing.F) {
	for _, scripts := range []map[string][]string{ddlScripts, ddlScriptsMySQL, ddlScriptsMariaDB} {
		for _, statements := range scripts {
			for _, s := range statements {
				f.Add(s, uint64(0), uint16(255), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, mode uint64, client uint16, mariaDB bool) {
		tracker := &schemaTracker{
			captured: func(string, string) bool { return false }, history: forgetful{}, logger: slog.New(slog.DiscardHandler),
			databases: map[string]bool{"d": true}, pool: schemaPool{},
		}
		if mariaDB {
			tracker.parser.flavor = MariaDB
		}
		known := &Schema{Charset: "utf8mb4", Columns: []SchemaColumn{{Name: "id", Type: "int"}, {Name: "a", Type: "varchar(5)", Charset: "latin1"}}, PrimaryKey: []string{"id"}}
		keyed := known.clone()
		keyed.PrimaryKey, keyed.UniqueKnown = nil, true
		keyed.Columns[0].NotNull = true
		keyed.Unique = []UniqueKey{{Name: "a", Parts: []KeyPart{{Column: "id"}}}, {Name: "b", Parts: []KeyPart{{Column: "a", Prefix: 3}, {}}, Made: true}}
		tracker.now = (&schemaSnapshot{prove: tracker}).with([]*trackedTable{
			{name: tableName{"d", "t"}, schema: known}, {name: tableName{"d", "a"}, schema: keyed}, {name: tableName{"d", "orders"}, schema: known}, {name: tableName{"d", "u"}, doubt: "x"},
		}, map[string]string{"d": "latin1"})
		q := query{database: []byte("d"), text: []byte(text), session: session{sqlMode: mode, client: client, server: 8}}
		q.ansiQuotes = mode&modeANSIQuotes != 0
		if _, err := tracker.statement(q, ddlPlace{}); err != nil {
			t.Fatal(err)
		}
		if err := tracker.commit(""); err != nil {
			t.Fatal(err)
		}
		tables := 0
		tracker.now.each("", func(table *trackedTable) {
			tables++
			if table.schema == nil {
				return
			}
			for _, c := range table.schema.Columns {
				if _, err := parseColumnType(c.Type); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			}
			if _, err := table.schema.fit("d", "t", nil, ""); err != nil && !strings.Contains(err.Error(), "columns") {
				t.Error(err)
			}
		})
		if tables > 4+len(text) {
			t.Errorf("%d tables", tables)
		}
	})
}
