package expression

import (
	"errors"
	"testing"

	"github.com/binlogd/binlogd/canal"
)

// FuzzExpression: no text makes the compiler or an evaluation panic or hang; mistakes are *Error; what a compiled
// expression gives is a value, also of rows without columns' values.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`old.status != "paid" && new.status == "paid"`, `became("status", "paid") || changed("amount")`, `new.amount * 1.1 > 18446744073709551615`,
		`"a" in new.flags and new.note.lines[0].sku == "A"`, `new.name matches "^(a|b)+$" ? lower(new.name) : null ?? "x"`, `new.at >= "2026-11-29 10:00:00"`,
		`present(new.name) ? substring(new.name, -3, 2) : string(1 / 0)`, `-new.id % 3 in [1, 2.5, null]`, `date(new.seen) == json("{}").a`, "((((", `new["odd name"] | string()`,
		`let x = 1; x`, `filter(new.note, # > 1)`, `new?.name?.x`, "`raw` == 'q\\'uote'", `{"a": 1}`, `1.5e300 ** 2`, `if true { 1 } else { 2 }`, `::lower("x")`,
	} {
		f.Add(seed)
	}
	table := testTable(f)
	update := testChange(table)
	rows := []*Row{testRow(update), testRow(&canal.Row{Table: table, Op: canal.Insert, After: update.After}), testRow(&canal.Row{Table: table, Op: canal.Delete, Before: update.Before})}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := Parse(source)
		if err != nil {
			mustBeMistake(t, err)
			return
		}
		scope := &Scope{Table: table, Ops: allOps}
		if condition, err := e.Condition(scope); err != nil {
			mustBeMistake(t, err)
		} else {
			for _, row := range rows {
				if truth, err := condition.Eval(row); err == nil && truth > Unknown {
					t.Fatalf("%q is %d", source, truth)
				}
			}
		}
		program, err := e.Program(scope)
		if err != nil {
			mustBeMistake(t, err)
			return
		}
		for _, row := range rows {
			if v, err := program.Eval(row); err == nil && v.Kind == canal.KindAbsent {
				t.Fatalf("%q is absent", source)
			}
		}
	})
}

func mustBeMistake(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Fatalf("%T: %v", err, err)
	}
}
