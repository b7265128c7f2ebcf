package mapping

import (
	"fmt"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// appendTruncation appends the event that says that a table was emptied: "orders.truncated", with data {} and
// the table's full name as its key. Its id is made of the transaction, the table, the ordinal and the type alone; it comes on the
// same topic as the events of the table's rows. Where the table has rules, it is what those with on: truncate say.
func (w *Worker) appendTruncation(dst []Event, row *canal.Row) ([]Event, error) {
	table := row.Table
	i, captured := w.mapper.Match(table.Database, table.Name)
	if !captured {
		return dst, nil
	}
	events, err := w.truncation(dst, w.mapper.entries[i], row)
	if err != nil {
		return dst, fmt.Errorf("map the truncation of table %s.%s in transaction %s: %w", table.Database, table.Name, w.transaction.name, err)
	}
	return events, nil
}

func (w *Worker) truncation(dst []Event, e *entry, row *canal.Row) ([]Event, error) {
	if e.outbox != nil {
		return dst, nil // it was cleared
	}
	topic, err := e.topicOf(e.topic, row.Table.Database, row.Table.Name)
	if err != nil {
		return dst, err
	}
	p := w.mapper.planTable(row.Table, e, topic)
	if e.rules != nil {
		// The table comes without its columns: only rules of truncations can be compiled, and they need none.
		if p.emitters, err = e.emitters(p, expression.OpSet(canal.Truncate)); err != nil {
			return dst, err
		}
		return w.appendRules(dst, p, row)
	}
	w.writeTableKey(p)
	kind := planKind(p.logical+"."+truncated.String(), p.source)
	marks := w.writeEnvelope(p, &kind, row, change{kind: truncated})
	w.payload = append(w.payload, `,"data":{}}`...)
	return append(dst, w.finish(&p.output, p, kind.name, marks)), nil
}
