package mapping

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// orderTable is a table of the usual types, of 12 columns.
func orderTable() *canal.Table {
	names := []string{
		"id", "order_no", "user_id", "status", "amount", "discount",
		"currency", "address", "remark", "created_at", "paid_at", "updated_at",
	}
	t := &canal.Table{Database: "shop", Name: "orders", PrimaryKey: []int{0}}
	for _, name := range names {
		t.Columns = append(t.Columns, canal.Column{Name: name})
	}
	return t
}

func orderImage(id uint64, status string) []canal.Value {
	return []canal.Value{
		canal.NewUint(id),
		canal.NewText("SO2026112900001001"),
		canal.NewUint(77120),
		canal.NewBytes(canal.KindEnum, []byte(status)),
		canal.NewBytes(canal.KindDecimal, []byte("1999.90")),
		canal.NewBytes(canal.KindDecimal, []byte("0.00")),
		canal.NewText("CNY"),
		canal.NewText("上海市浦东新区世纪大道 100 号, 12/F"),
		canal.NewText(`leave it "at the door", please`),
		canal.NewBytes(canal.KindDateTime, []byte("2026-11-29T10:00:00.123")),
		{Kind: canal.KindNull},
		canal.NewBytes(canal.KindInstant, []byte("2026-11-29T02:00:00.123456Z")),
	}
}

func BenchmarkAppend(b *testing.B) {
	insert := canal.Row{Table: orderTable(), Op: canal.Insert, After: orderImage(1001, "new")}
	update := canal.Row{Table: insert.Table, Op: canal.Update, Before: orderImage(1001, "new"), After: orderImage(1001, "paid")}
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.*"}}})
	require.NoError(b, err)

	for _, row := range []canal.Row{insert, update} {
		b.Run(row.Op.String(), func(b *testing.B) {
			w := m.NewWorker()
			require.NoError(b, w.Begin(mysqlTransaction(23)))
			var events []Event
			b.ReportAllocs()
			for b.Loop() {
				row.Ordinal++
				row.Place++
				events, err = w.Append(events[:0], &row)
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(events[0].Payload)), "B/event")
		})
	}
}

// BenchmarkBegin is what a transaction costs on top of its rows.
func BenchmarkBegin(b *testing.B) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.*"}}})
	require.NoError(b, err)
	w := m.NewWorker()
	t := mysqlTransaction(23)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Begin(t); err != nil {
			b.Fatal(err)
		}
	}
}
