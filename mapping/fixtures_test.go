package mapping

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/binlogd/binlogd/canal"
)

var (
	sourceUUID = [16]byte(uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562"))
	commitTime = time.Date(2026, 11, 29, 22, 36, 56, 557484000, time.UTC)
)

func mysqlTransaction(number uint64) *canal.Transaction {
	return &canal.Transaction{
		GTID:        canal.GTID{Flavor: canal.MySQL, UUID: sourceUUID, Number: number},
		CommittedAt: commitTime,
		Number:      number + 100,
		Last:        true,
	}
}

func mariadbTransaction(number uint64) *canal.Transaction {
	return &canal.Transaction{
		GTID:        canal.GTID{Flavor: canal.MariaDB, Domain: 1, ServerID: 4711, Number: number},
		CommittedAt: commitTime.Truncate(time.Second),
		Number:      number,
		Last:        true,
	}
}

func anonymousTransaction(file string, start uint64) *canal.Transaction {
	return &canal.Transaction{
		Server:      sourceUUID,
		File:        file,
		Start:       start,
		CommittedAt: commitTime,
		Last:        true,
	}
}

// table describes a table by its columns' names; primary are indexes.
func table(database, name string, primary []int, columns ...string) *canal.Table {
	t := &canal.Table{Database: database, Name: name, PrimaryKey: primary}
	for _, column := range columns {
		t.Columns = append(t.Columns, canal.Column{Name: column})
	}
	return t
}

// Values, by kind.
var null, absent = canal.Value{Kind: canal.KindNull}, canal.Value{Kind: canal.KindAbsent}

func number(n int64) canal.Value            { return canal.NewInt(n) }
func text(s string) canal.Value             { return canal.NewText(s) }
func of(k canal.Kind, s string) canal.Value { return canal.NewBytes(k, []byte(s)) }

func values(v ...canal.Value) []canal.Value { return v }

// numbered numbers rows as the decoder does: ordinals by table, places by transaction.
func numbered(rows ...canal.Row) []canal.Row {
	ordinals := map[tableName]uint64{}
	for i := range rows {
		name := tableName{rows[i].Table.Database, rows[i].Table.Name}
		ordinals[name]++
		rows[i].Ordinal, rows[i].Place = ordinals[name], uint64(i+1)
	}
	return rows
}

func inserted(t *canal.Table, after ...canal.Value) canal.Row {
	return canal.Row{Table: t, Op: canal.Insert, After: after}
}

func removed(t *canal.Table, before ...canal.Value) canal.Row {
	return canal.Row{Table: t, Op: canal.Delete, Before: before}
}

func changed(t *canal.Table, before, after []canal.Value) canal.Row {
	return canal.Row{Table: t, Op: canal.Update, Before: before, After: after}
}

// negativeZero cannot be written as a constant.
func negativeZero() float64 { return math.Copysign(0, -1) }
