package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

func newWorker(t *testing.T, rules ...TableRule) *Worker {
	t.Helper()
	m, err := New(Options{Name: "shop", Tables: rules})
	require.NoError(t, err)
	w := m.NewWorker()
	require.NoError(t, w.Begin(mysqlTransaction(1)))
	return w
}

// copied is an event with memory of its own.
func copied(e Event) Event {
	e.ID, e.Time, e.Sequence = strings.Clone(e.ID), strings.Clone(e.Time), strings.Clone(e.Sequence)
	e.Key, e.Payload = bytes.Clone(e.Key), bytes.Clone(e.Payload)
	return e
}

// TestEventsOutliveTheWorkersNextSteps: rows of all sizes, also around those of a chunk, keep
// their bytes while the worker, the decoder's buffers and the receivers go on.
func TestEventsOutliveTheWorkersNextSteps(t *testing.T) {
	w := newWorker(t, TableRule{Table: "*.*"})
	wide := table("shop", "wide", []int{0}, "id", "body")
	var events, want []Event
	body := make([]byte, 2*maxScratch)
	for i := range 400 {
		size := i * 37
		switch {
		case i%50 == 7:
			size = ownChunk + i - 200
		case i%100 == 9:
			size = maxScratch + i
		}
		for j := range body[:size] {
			body[j] = 'a' + byte(i%26)
		}
		row := inserted(wide, number(int64(i)), of(canal.KindText, ""))
		row.After[1].Bytes = body[:size]
		row.Ordinal, row.Place = uint64(i+1), uint64(i+1)
		before := len(events)
		var err error
		events, err = w.Append(events, &row)
		require.NoError(t, err)
		require.Len(t, events, before+1)
		e := events[before]
		want = append(want, copied(e))
		require.Equal(t, len(e.Payload), cap(e.Payload))
		require.Equal(t, len(e.Key), cap(e.Key))
		require.Contains(t, string(e.Payload), string(body[:size]))
		require.NoError(t, w.Begin(mysqlTransaction(uint64(i+2))))
	}
	require.Equal(t, want, events)
}

// TestEmptyKeysAreNotNil: a sink tells an empty key from none.
func TestEmptyKeysAreNotNil(t *testing.T) {
	w := newWorker(t, TableRule{Table: "*.*"})
	row := inserted(table("shop", "wide", []int{0}, "id", "body"), text(""), text(strings.Repeat("x", ownChunk)))
	events, err := w.Append(nil, &row)
	require.NoError(t, err)
	require.NotNil(t, events[0].Key)
	require.Empty(t, events[0].Key)
}

// TestStringsShareThePayload: no copies are made of what the payload holds already.
func TestStringsShareThePayload(t *testing.T) {
	w := newWorker(t, TableRule{Table: "*.*"})
	row := inserted(keyed("kc"), number(1), number(1))
	events, err := w.Append(nil, &row)
	require.NoError(t, err)
	e := events[0]
	for _, s := range []string{e.ID, e.Time, e.Sequence} {
		at := bytes.Index(e.Payload, []byte(s))
		require.Positive(t, at)
		require.Same(t, &e.Payload[at], unsafe.StringData(s))
	}
}

func TestAppendAllocatesChunksOnly(t *testing.T) {
	w := newWorker(t, TableRule{Table: "shop.*"})
	insert := canal.Row{Table: orderTable(), Op: canal.Insert, After: orderImage(1001, "new")}
	events := make([]Event, 0, 1)
	var err error
	perRow := testing.AllocsPerRun(5000, func() {
		insert.Ordinal++
		events, err = w.Append(events[:0], &insert)
	})
	require.NoError(t, err)
	require.Zero(t, perRow)
}

func TestUncapturedTablesGiveNothing(t *testing.T) {
	w := newWorker(t, TableRule{Table: "shop.orders"})
	for range 2 {
		row := inserted(keyed("other"), number(1), number(1))
		events, err := w.Append(nil, &row)
		require.NoError(t, err)
		require.Empty(t, events)
	}
}

// TestPlansFollowTheSchema: after an ALTER a row comes with another Table, and is mapped by it;
// another Table that says the same makes no new plan.
func TestPlansFollowTheSchema(t *testing.T) {
	w := newWorker(t, TableRule{Table: "*.*"})
	row := func(r canal.Row) string {
		events, err := w.Append(nil, &r)
		require.NoError(t, err)
		require.Len(t, events, 1)
		_, key, found := strings.Cut(string(events[0].Payload), `"partitionkey":`)
		require.True(t, found)
		return `"partitionkey":` + key
	}
	old := table("shop", "t", []int{0}, "id", "v")
	require.Equal(t, `"partitionkey":"1","data":{"row":{"id":1,"v":2}}}`, row(inserted(old, number(1), number(2))))
	first := w.last
	require.Equal(t, `"partitionkey":"1","data":{"row":{"id":1,"v":2}}}`, row(inserted(table("shop", "t", []int{0}, "id", "v"), number(1), number(2))))
	require.Same(t, first, w.last)

	renamed := table("shop", "t", []int{0}, "id", "w")
	require.Equal(t, `"partitionkey":"1","data":{"row":{"id":1,"w":2}}}`, row(inserted(renamed, number(1), number(2))))
	moved := table("shop", "t", []int{1}, "id", "w")
	require.Equal(t, `"partitionkey":"2","data":{"row":{"id":1,"w":2}}}`, row(inserted(moved, number(1), number(2))))
	require.Equal(t, `"partitionkey":"1","data":{"row":{"id":1,"v":2}}}`, row(inserted(old, number(1), number(2))))
}

func TestManyTablesKeepFewPlans(t *testing.T) {
	w := newWorker(t, TableRule{Table: "*.*"})
	for i := range 3 * maxPlans {
		row := inserted(keyed(fmt.Sprint("t", i)), number(1), number(1))
		events, err := w.Append(nil, &row)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("shop.t%d", i), events[0].Topic)
	}
	require.LessOrEqual(t, len(w.plans), maxPlans)
}

// TestErrorsKeepWhatWasThere: an error names place and remedy and adds no event, not even the
// first half of a key change.
func TestErrorsKeepWhatWasThere(t *testing.T) {
	items := table("shop", "items", []int{0, 1}, "order_id", "line", "sku")
	for _, c := range []struct {
		name  string
		rules []TableRule
		row   canal.Row
		want  []string
	}{
		{
			"key not carried", nil,
			inserted(items, number(1), absent, text("x")),
			[]string{`column "line"`, "does not carry", "binlog_row_image=FULL"},
		},
		{
			"second half",
			[]TableRule{{Table: "*.*", Key: []string{"sku"}}},
			changed(items, values(number(1), number(1), text("x")), values(number(1), number(2), absent)),
			nil, // the before image has it
		},
		{
			"configured key not carried",
			[]TableRule{{Table: "*.*", Key: []string{"sku"}}},
			changed(items, values(number(1), number(1), absent), values(number(1), number(2), text("x"))),
			[]string{`column "sku"`, "does not carry"},
		},
		{
			"no such column",
			[]TableRule{{Table: "a.b"}, {Table: "*.*", Key: []string{"region"}}},
			inserted(items, number(1), number(1), text("x")),
			[]string{"events[1].key", `no column "region"`, "order_id, line, sku"},
		},
		{
			"no topic", nil,
			inserted(table("shop", "täbelle", nil, "a"), number(1)),
			[]string{"events[0].topic", "'ä'"},
		},
		{
			"too few values", nil,
			inserted(items, number(1)),
			[]string{"an insert of 3 columns came with 0 values before and 1 after it"},
		},
		{
			"no before image", nil,
			changed(items, nil, values(number(1), number(1), text("x"))),
			[]string{"an update of 3 columns came with 0 values before and 3 after it"},
		},
		{
			"unknown operation", nil,
			canal.Row{Table: items, Op: 9},
			[]string{"unknown operation 9"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.rules == nil {
				c.rules = []TableRule{{Table: "*.*"}}
			}
			w := newWorker(t, c.rules...)
			c.row.Ordinal = 42
			events := []Event{{ID: "earlier"}}
			got, err := w.Append(events, &c.row)
			if c.want == nil {
				require.NoError(t, err)
				require.Len(t, got, 3)
				return
			}
			require.Equal(t, events, got)
			for _, want := range append(c.want, "map change 42 of table shop."+c.row.Table.Name, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1") {
				require.ErrorContains(t, err, want)
			}
			if strings.Contains(c.name, "not carried") {
				require.ErrorIs(t, err, ErrKeyNotCarried)
			}
		})
	}
}

// TestOldComparesExactly: "old" has what differs to the last bit, and nothing else.
func TestOldComparesExactly(t *testing.T) {
	pairs := []struct {
		before, after canal.Value
		differs       bool
	}{
		{number(1), number(1), false},
		{number(1), canal.NewInt(2), true},
		{canal.NewDouble(0), canal.NewDouble(negativeZero()), true},
		{of(canal.KindDecimal, "1.0"), of(canal.KindDecimal, "1.00"), true},
		{text(""), null, true},
		{null, null, false},
		{null, text("null"), true},
		{text("a"), text("A"), true},
		{text("a"), text("a "), true},
		{of(canal.KindBinary, "a\x00"), of(canal.KindBinary, "a"), true},
		{of(canal.KindJSON, `{"a":1}`), of(canal.KindJSON, `{"a": 1}`), true},
		{absent, text("a"), false},
		{text("a"), absent, false},
	}
	wide := table("shop", "wide", nil)
	var before, after []canal.Value
	var want []string
	for i, p := range pairs {
		name := fmt.Sprint("c", i)
		wide.Columns = append(wide.Columns, canal.Column{Name: name})
		before, after = append(before, p.before), append(after, p.after)
		if p.differs {
			want = append(want, name)
		}
	}
	row := changed(wide, before, after)
	events, err := newWorker(t, TableRule{Table: "*.*"}).Append(nil, &row)
	require.NoError(t, err)
	var got struct {
		Data struct{ Row, Old json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(events[0].Payload, &got))
	require.Equal(t, want, topMembers(t, got.Data.Old))
	require.Len(t, topMembers(t, got.Data.Row), len(pairs))
}
