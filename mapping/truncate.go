package mapping

import (
	"fmt"

	"github.com/binlogd/binlogd/canal"
)

// appendTruncation appends the event that says that a table was emptied: "orders.truncated", with data {} and
// the table's full name as its key. Its id is made of the transaction, the table, the ordinal and the type alone; it comes on the
// same topic as the events of the table's rows.
func (w *Worker) appendTruncation(dst []Event, row *canal.Row) ([]Event, error) {
	table := row.Table
	if !w.mapper.Captured(table.Database, table.Name) {
		return dst, nil
	}
	topic, err := w.mapper.Topic(table.Database, table.Name)
	if err != nil {
		return dst, fmt.Errorf("map the truncation of table %s.%s in transaction %s: %w", table.Database, table.Name, w.transaction.name, err)
	}
	p := w.mapper.planTable(table, topic)
	w.key = append(w.key[:0], p.name...)
	w.keyJSON = appendString(w.keyJSON[:0], w.key)
	kind := planKind(table.Name+"."+truncated.String(), p.source)
	marks := w.writeEnvelope(p, &kind, row, change{kind: truncated})
	w.payload = append(w.payload, `,"data":{}}`...)
	payload := w.seal()
	return append(dst, w.event(p, kind.name, payload, marks)), nil
}
