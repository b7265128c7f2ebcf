package expression

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// testTable has a column of every class; its names are their types'.
func testTable(t testing.TB) *canal.Table {
	t.Helper()
	table := &canal.Table{Database: "shop", Name: "orders", PrimaryKey: []int{0}}
	for _, c := range [][3]string{
		{"id", "bigint unsigned", ""},
		{"count", "int", ""},
		{"active", "tinyint(1)", ""},
		{"amount", "decimal(30,2)", ""},
		{"rate", "double", ""},
		{"weight", "float", ""},
		{"status", "enum('new','paid','sent')", "utf8mb4"},
		{"name", "varchar(100)", "utf8mb4"},
		{"hash", "varbinary(16)", ""},
		{"day", "date", ""},
		{"at", "datetime(3)", ""},
		{"seen", "timestamp(3)", ""},
		{"lasts", "time", ""},
		{"flags", `set('a','b "q"','c')`, "utf8mb4"},
		{"note", "json", ""},
		{"place", "point", ""},
		{"odd name", "int", ""},
	} {
		column, err := canal.NewColumn(c[0], c[1], c[2])
		require.NoError(t, err)
		table.Columns = append(table.Columns, column)
	}
	return table
}

// image makes a row of testTable: the columns that are named, and NULL in the others.
func image(table *canal.Table, columns map[string]canal.Value) []canal.Value {
	row := make([]canal.Value, len(table.Columns))
	for i := range row {
		row[i] = null
		if v, ok := columns[table.Columns[i].Name]; ok {
			row[i] = v
		}
	}
	return row
}

func of(kind canal.Kind, text string) canal.Value { return canal.NewBytes(kind, []byte(text)) }

// testChange is an update of most columns.
func testChange(table *canal.Table) *canal.Row {
	before := map[string]canal.Value{
		"id": canal.NewUint(18446744073709551615), "count": canal.NewInt(-3), "active": canal.NewInt(0), "amount": of(canal.KindDecimal, "19.90"),
		"rate": canal.NewDouble(0.1), "weight": canal.NewFloat(0.1), "status": of(canal.KindEnum, "new"), "name": canal.NewText("Grüße"),
		"hash": of(canal.KindBinary, "\x00\xff"), "day": of(canal.KindDate, "2026-11-29"), "at": of(canal.KindDateTime, "2026-11-29T10:00:00.500"),
		"seen": of(canal.KindInstant, "2026-11-29T10:00:00.500Z"), "lasts": of(canal.KindTime, "-01:30:00"), "flags": of(canal.KindSet, `["a","b \"q\""]`),
		"note":  of(canal.KindJSON, `{"gift": true, "n": 1.50, "big": 12345678901234567890.5, "lines": [{"sku": "A"}, null], "text": "x"}`),
		"place": of(canal.KindGeometry, `{"type":"Point"}`),
	}
	after := map[string]canal.Value{}
	maps.Copy(after, before)
	after["status"], after["amount"], after["active"] = of(canal.KindEnum, "paid"), of(canal.KindDecimal, "9999999999999999999999999999.01"), canal.NewInt(1)
	after["name"], after["odd name"] = null, canal.NewInt(7)
	return &canal.Row{Table: table, Op: canal.Update, Before: image(table, before), After: image(table, after)}
}

var allOps = OpSet(canal.Insert, canal.Update, canal.Delete)

func testRow(row *canal.Row) *Row {
	r := &Row{}
	r.Reset(row)
	r.Set(GTID, canal.NewText("3e11fa47-71ca-11e1-9e33-c80aa9429562:23"))
	r.Set(CommittedAt, of(canal.KindInstant, "2026-11-29T22:36:56.557484Z"))
	r.Set(Database, canal.NewText("shop"))
	r.Set(TableName, canal.NewText("orders"))
	r.Set(Shard, canal.NewText("07"))
	r.Set(Operation, canal.NewText("update"))
	return r
}

func TestConditions(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	row := testRow(testChange(table))
	for want, conditions := range map[Truth][]string{
		True: {
			`old.status != "paid" && new.status == "paid"`,
			`old.status == "new" and not (new.status == "new")`,
			`became("status", "paid")`, `was("status", "new")`, `changed("status")`, `changed("id", "status")`, `!changed("id", "count")`,
			`changed("name") && new.name == null`, `null == new.name`, `old.name != null`, `new["odd name"] == 7`,
			// every one of 64 bits, and more digits than any float has
			`new.id == 18446744073709551615`, `new.id > 9223372036854775807`, `new.count < 0`, `new.count == -3`, `-3 == new.count`,
			`new.amount == 9999999999999999999999999999.01`, `new.amount > 9999999999999999999999999999`, `new.amount != 9999999999999999999999999999.02`,
			`old.amount == 19.9`, `old.amount == 19.900`, `old.amount < 20`, `old.amount >= 19.90`, `0.1 + 0.2 == 0.3`, `old.amount * 3 == 59.70`, `old.amount + 0.1 == 20`,
			`new.rate == 0.1`, `new.weight == 0.1`, `new.rate == new.weight`, `new.rate < 0.1000000001`, `new.id - 1 == 18446744073709551614`, `new.id != -18446744073709551615`, `"18446744073709551615" == string(new.id)`,
			`new.active == true`, `new.active == 1`, `old.active == false`, `(new.active == 1) == true`,
			`new.status in ["paid", "sent"]`, `old.status not in ["paid", "sent"]`, `new.count in [1, 2, -3]`,
			`"a" in new.flags`, `'b "q"' in new.flags`, `"c" not in new.flags`,
			`old.name startsWith "Gr"`, `old.name endsWith "ße"`, `old.name contains "üß"`, `old.name matches "^G.+e$"`, `not (old.name matches "x")`, `old.name not contains "x"`,
			`lower(old.name) == "grüße"`, `upper(old.name) startsWith "GR"`, `length(old.name) == 5`, `substring(old.name, 3, 2) == "üß"`, `substring(old.name, -2) == "ße"`,
			`trim("  x ") == "x"`, `"a" + "b" == "ab"`, `concat(new.count, ":", old.name) == "-3:Grüße"`, `string(old.amount) == "19.90"`, `number("12.50") == 12.5`,
			`new.day == "2026-11-29"`, `new.day < "2026-11-30"`, `new.day < new.at`, `new.at > "2026-11-29"`, `new.at == "2026-11-29 10:00:00.5"`, `new.at < "2026-11-29T10:00:01"`,
			`new.seen == "2026-11-29T11:00:00.5+01:00"`, `new.seen > "2026-11-29T10:00:00Z"`, `new.seen < committed_at`, `date(new.at) == new.day`,
			`new.lasts < "00:00:00"`, `new.lasts > "-01:30:01"`, `new.lasts == "-01:30:00.000"`,
			`new.note.gift`, `new.note.gift == true`, `new.note.n == 1.5`, `new.note.big > 12345678901234567890`, `new.note.lines[0].sku == "A"`, `new.note["text"] == "x"`,
			`new.note.lines[1] == null`, `new.note.missing == null`, `new.note.missing?.deeper == null`, `new.note.lines[7] == null`, `json('{"a": 1}').a == 1`, `new.note.lines != null`,
			`new.note.text != 1`, // of another type: different
			`(new.name ?? "none") == "none"`, `coalesce(new.name, null, "x") == "x"`, `coalesce(old.name, "x") == "Grüße"`,
			`new.active == 1 ? true : false`, `(new.name == "x" ? 1 : 2) == 2`, `10 / 4 == 2.5`, `10 % 4 == 2`, `1 / 3 == 0.3333`, `2 / 3 == 0.6667`, `-7 % 4 == -3`, `(1 / 0) == null`,
			`table == "orders" && database == "shop" && shard == "07" && op == "update" && gtid startsWith "3e11"`, `row.status == "paid"`, `present(new.name)`,
			`new.name == "x" || true`, `true || new.name == "x"`, `changed("place") == false`,
		},
		False: {
			`new.status == "new"`, `became("status", "new")`, `new.name == "x" && false`, `false && new.name == "x"`, `"c" in new.flags`,
			`new.amount == 9999999999999999999999999999`, `new.note.text == 1`, `new.id == 18446744073709551614.0`, `old.name == "GRÜSSE"`,
		},
		Unknown: {
			`new.name == "x"`, `new.name != "x"`, `not (new.name == "x")`, `new.name == old.name`, `new.name == "x" && true`, `new.name == "x" || false`,
			`new.name in ["a", "b"]`, `new.status in ["new", null]`, `new.name contains "x"`, `new.name matches "x"`, `lower(new.name) == "x"`,
			`new["odd name"] + null == 7`, `old["odd name"] < 8`, `null && true`, `1 / 0 > 1`, `new.note.missing > 1`, `new.note.gift < 1`, `new.name + "x" == "x"`,
		},
	} {
		for _, source := range conditions {
			e, err := Parse(source)
			require.NoError(t, err, source)
			condition, err := e.Condition(&Scope{Table: table, Ops: allOps})
			require.NoError(t, err, source)
			got, err := condition.Eval(row)
			require.NoError(t, err, source)
			require.Equal(t, want, got, source)
		}
	}
}

// TestMistakes: what cannot be meant is refused before there is a row, with the remedy.
func TestMistakes(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	for source, want := range map[string]string{
		``:                                           "empty",
		`new.statu == "paid"`:                        `in new.statu: table shop.orders has no column "statu": write one of id, count,`,
		`new.Status == "paid"`:                       `write status`,
		`changed("statu")`:                           `has no column "statu"`,
		`changed(status)`:                            `the column is named by a text`,
		`status == "paid"`:                           `in status: columns belong to a row: write new.status or old.status`,
		`new.status == paid`:                         `in paid: unknown name: columns are written new.NAME and old.NAME, texts in quotes ("paid")`,
		`new.status == "done"`:                       `the column has no label "done": write one of "new", "paid", "sent"`,
		`new.status in ["paid", "x"]`:                `no label "x"`,
		`"x" in new.flags`:                           `no label "x"`,
		`new.amount == "19.90"`:                      "a number cannot be compared with a text: write the number without quotes",
		`new.name == 5`:                              "a text cannot be compared with a number",
		`new.name`:                                   "it is a text, where a condition is needed",
		`new.count && true`:                          "it is a number, where a condition is needed: write new.count != 0",
		`new.day == "yesterday"`:                     `write one such as "2026-11-29"`,
		`new.at > new.seen`:                          "a DATETIME cannot be compared with a TIMESTAMP",
		`new.flags == "a"`:                           `a SET is no single value: write "label" in new.column`,
		`new.place == new.place`:                     "cannot be compared",
		`new.name + 1 == "x"`:                        "a text and a number: write string(1), or concat(…)",
		`new.count + "1" == 2`:                       "one side is a text",
		`new.name < null`:                            "nothing is smaller or larger than null",
		`new.name.first == "x"`:                      "new.name is a text, which has no members: write json(new.name) if it holds JSON",
		`new.name matches new.status`:                "a regular expression does not come from a row",
		`new.name matches "("`:                       "the regular expression cannot be read (RE2 syntax)",
		`now() > new.seen`:                           "there is no clock: write committed_at",
		`sleep(5)`:                                   "unknown function sleep: there are changed,",
		`lower(new.name, 2) == "x"`:                  "2 arguments: write lower(text)",
		`all(new.note.lines, # == 1)`:                "there are no loops in rules",
		`let x = 1; x == 1`:                          "there are no variables in rules",
		`new.name.trim() == "x"`:                     "only functions by name can be called",
		`{"a": 1} == 1`:                              "objects are written in YAML",
		`[1] == 1`:                                   "a list stands only behind in",
		`1 in []`:                                    "nothing is in an empty list",
		`1..3 == 2`:                                  "the operator .. is not part of the language of rules",
		`2 ** 64 > new.id`:                           "the operator ** is not part of the language of rules",
		`new.status ==`:                              "syntax error at character 13",
		`new.status == "paid`:                        "syntax error",
		`new == old`:                                 "it is a whole row: name a column, as in new.id",
		`new[new.name] == 1`:                         `a column is named by a text: new["name"]`,
		`substring(new.name, new.id)`:                "whole numbers that do not change",
		`present("name")`:                            "it asks about a column",
		"new.name == \"\xff\"":                       "it is not UTF-8",
		strings.Repeat("(", 10_000):                  "at most 8192 are allowed",
		strings.Repeat("!", 200) + "(1 == 1)":        "parts inside parts more than 100 deep",
		"1 == 1" + strings.Repeat(" && 1 == 1", 600): "more than 1000 parts",
		`new.name matches "` + strings.Repeat("a", 600) + `"`:      "at most 500 are allowed",
		`new.name matches "(a{100}){100}"`:                         "RE2",
		`new.name matches "((abcdefghij|klmnopqrst){1,50}){1,20}"`: "parts once its repetitions are written out: at most 10000",
	} {
		e, err := Parse(source)
		if err == nil {
			_, err = e.Condition(&Scope{Table: table, Ops: allOps})
		}
		require.ErrorContains(t, err, want, source)
		mistake, ok := errors.AsType[*Error](err)
		require.True(t, ok, "%T", err)
		require.Less(t, len(mistake.Error()), 1000)
	}
}

// TestRowsThatAreNotThere: rules of one kind of change cannot ask for a row that it does not have; in rules of several, it
// is NULL.
func TestRowsThatAreNotThere(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	for _, c := range []struct {
		ops          Ops
		source, want string
	}{
		{OpSet(canal.Insert), `old.name == "x"`, "an insert has no old row"},
		{OpSet(canal.Insert), `changed("name")`, "only updates change columns"},
		{OpSet(canal.Delete), `new.name == "x"`, "a deletion has no new row"},
		{OpSet(canal.Delete), `became("name", "x")`, "only updates change columns"},
		{OpSet(canal.Truncate), `row.name == "x"`, "TRUNCATE has no rows"},
	} {
		e, err := Parse(c.source)
		require.NoError(t, err)
		_, err = e.Condition(&Scope{Table: table, Ops: c.ops})
		require.ErrorContains(t, err, c.want)
	}
	update := testChange(table)
	insert := testRow(&canal.Row{Table: table, Op: canal.Insert, After: update.After})
	removal := testRow(&canal.Row{Table: table, Op: canal.Delete, Before: update.Before})
	for _, c := range []struct {
		row    *Row
		source string
		want   Truth
	}{
		{insert, `old.status == null`, True},
		{insert, `old.status != "paid"`, Unknown},
		{insert, `changed("status")`, True},
		{insert, `became("status", "paid")`, True},
		{insert, `row.status == "paid"`, True},
		{removal, `new.status == null`, True},
		{removal, `changed("status")`, True},
		{removal, `became("status", "paid")`, Unknown},
		{removal, `row.status == "new"`, True},
	} {
		require.Equal(t, c.want, evaluate(t, table, c.row, c.source), c.source)
	}
}

func evaluate(t *testing.T, table *canal.Table, row *Row, source string) Truth {
	t.Helper()
	truth, err := tryCondition(t, table, row, source)
	require.NoError(t, err, source)
	return truth
}

func tryCondition(t *testing.T, table *canal.Table, row *Row, source string) (Truth, error) {
	t.Helper()
	e, err := Parse(source)
	require.NoError(t, err, source)
	condition, err := e.Condition(&Scope{Table: table, Ops: allOps})
	require.NoError(t, err, source)
	return condition.Eval(row)
}

// TestAbsentColumns: a column that the binlog does not carry is an error, unless the expression asks for it first.
func TestAbsentColumns(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	absent := canal.Value{Kind: canal.KindAbsent}
	before := image(table, map[string]canal.Value{"id": canal.NewUint(1), "name": absent, "status": absent, "note": absent, "count": canal.NewInt(5)})
	after := image(table, map[string]canal.Value{"id": canal.NewUint(1), "name": absent, "status": of(canal.KindEnum, "paid"), "note": absent, "count": absent})
	row := testRow(&canal.Row{Table: table, Op: canal.Update, Before: before, After: after})
	for source, want := range map[string]Truth{
		`new.status == "paid"`: True, // set by the statement
		`new.count == 5`:       True, // what only the row before has did not change
		`changed("count")`:     False,
		`changed("name")`:      False, // in neither: not touched
		`present(new.status)`:  True, `present(old.status)`: False, `present(new.count)`: True, `present(new.name)`: False,
		`present(old.status) && old.status == "new"`:       False,
		`present(old.status) ? old.status == "new" : true`: True,
		`new.status == "paid" || old.status == "new"`:      True,
		`false && old.status == "new"`:                     False,
	} {
		require.Equal(t, want, evaluate(t, table, row, source), source)
	}
	for source, column := range map[string]string{
		`old.status == "new"`: "old.status", `new.name == "x"`: "new.name", `row.name == "x"`: "new.name",
		`changed("status")`: "old.status", `became("status", "paid")`: "old.status", `coalesce(old.name, "x") == "x"`: "old.name", `old.status == null`: "old.status",
	} {
		_, err := tryCondition(t, table, row, source)
		missing, ok := errors.AsType[*AbsentError](err)
		require.True(t, ok, source)
		require.Equal(t, column, missing.Image+"."+missing.Column)
		require.ErrorContains(t, err, "set binlog_row_image=FULL on the server, or ask first: present("+column+")")
	}
}

// TestErrorsHoldNoValues: what fails on a row says which part of the expression it is, and nothing of the row.
func TestErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	change := testChange(table)
	row := testRow(change)
	for source, want := range map[string]string{
		`number(old.name) > 1`:                     "in number(old.name): the text is no number",
		`json(old.name).x == 1`:                    "in json(old.name): the text is no JSON",
		`new.note.text`:                            "it is no condition, but a text",
		`new.note.lines * 2 > 1`:                   "a value is no number",
		`new.amount * new.amount * new.amount > 1`: "more than 65 digits",
		`new.rate / 1e-308 / 1e-308 > 1`:           "more than 65 digits",
	} {
		_, err := tryCondition(t, table, row, source)
		require.ErrorContains(t, err, want, source)
		require.NotContains(t, err.Error(), "Grüße")
	}
}

// TestMasks: what is shown is masked, wherever it comes up; what is asked is not.
func TestMasks(t *testing.T) {
	t.Parallel()
	table := testTable(t)
	row := testRow(testChange(table))
	masks := make([]Mask, len(table.Columns))
	masks[7] = func(b []byte, _ canal.Value) ([]byte, canal.Value) { return b, canal.NewText("***") }
	for _, source := range []string{`old.name`, `old["name"]`, `string(old.name)`, `lower(old.name)`, `concat(old.name)`, `coalesce(new.name, old.name)`, `row.name ?? old.name`} {
		e, err := Parse(source)
		require.NoError(t, err)
		program, err := e.Program(&Scope{Table: table, Ops: allOps, Masks: masks})
		require.NoError(t, err)
		v, err := program.Eval(row)
		require.NoError(t, err)
		require.Equal(t, "***", string(v.Bytes), source)
	}
	e, err := Parse(`old.name == "Grüße"`)
	require.NoError(t, err)
	program, err := e.Program(&Scope{Table: table, Ops: allOps, Masks: masks})
	require.NoError(t, err)
	v, err := program.Eval(row)
	require.NoError(t, err)
	require.Equal(t, "false", string(v.Bytes), "data cannot find a hidden value out")
	require.Equal(t, True, evaluate(t, table, row, `old.name == "Grüße"`))
}
