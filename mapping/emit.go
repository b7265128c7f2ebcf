package mapping

import (
	"errors"
	"fmt"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// RuleError is a rule that cannot be applied to a change. It holds no values but the key, as events show it.
type RuleError struct {
	Rule string // its key in the YAML document, "events[0].emit[1]"
	Type string // of its events
	Part string // of the rule: when, data, key, …
	Key  string // of the change: the one that its event would have had, or that of the table
	Err  error
}

func (e *RuleError) Error() string {
	of := ""
	if e.Type != "" { // an outbox's row has its type from a column
		of = " (" + e.Type + ")"
	}
	return fmt.Sprintf("rule %s.%s%s, key %q: %v; mend the rule, or write on_error: skip to count and log such changes instead", e.Rule, e.Part, of, e.Key, e.Err)
}

func (e *RuleError) Unwrap() error { return e.Err }

// Skip is a change that gave no event because a rule failed and says on_error: skip.
type Skip struct {
	Table, Transaction string
	Err                *RuleError
}

// maxEventsPerChange is how many events the sequence has room for.
const maxEventsPerChange = len(sequenceDigits)

// appendRules appends the events that the rules make of a change. An update that changes the primary key is an update
// like any other: rules see the row before and after it, and the key is the new one.
func (w *Worker) appendRules(dst []Event, p *plan, row *canal.Row) ([]Event, error) {
	c := changeOf(row)
	w.prepareRow(p, row)
	events := dst
	for _, e := range p.emitters {
		if !e.rule.ops.Has(row.Op) {
			continue
		}
		event, fired, failure := w.emit(p, e, row, c)
		switch {
		case failure != nil && !e.rule.skipping:
			return dst, failure
		case failure != nil:
			w.skipped = append(w.skipped, Skip{Table: p.name, Transaction: w.transaction.name, Err: failure})
		case fired:
			events = append(events, event)
			c.half++
			if p.output.tombstones && c.kind == deleted {
				tombstone := w.tombstone(&p.output, p, &e.kind, row, change{kind: c.kind, half: c.half - tombstoneHalf, shown: c.shown, identity: c.identity})
				tombstone.Topic = event.Topic
				events = append(events, tombstone)
				c.half++
			}
			if int(c.half) >= maxEventsPerChange {
				return dst, fmt.Errorf("more than %d rules of one entry make events of one change: make fewer of them, or of narrower conditions", maxEventsPerChange-1)
			}
		}
	}
	return events, nil
}

// Skipped gives the changes that were skipped since it was last asked.
func (w *Worker) Skipped() []Skip {
	skipped := w.skipped
	w.skipped = nil
	return skipped
}

// changeOf is a change as rules see it.
func changeOf(row *canal.Row) change {
	before, after := image{top: row.Before}, image{top: row.After, beneath: row.Before}
	switch row.Op {
	case canal.Insert:
		after.beneath = nil
		return change{kind: created, shown: after, identity: after}
	case canal.Delete:
		return change{kind: deleted, shown: before, identity: before}
	case canal.Truncate:
		return change{kind: truncated}
	case canal.Update:
	}
	return change{kind: updated, shown: after, identity: before, before: row.Before}
}

// prepareRow sets what expressions are evaluated over.
func (w *Worker) prepareRow(p *plan, row *canal.Row) {
	w.row.Reset(row)
	w.row.Set(expression.Database, canal.NewBytes(canal.KindText, p.texts.database))
	w.row.Set(expression.TableName, canal.NewBytes(canal.KindText, p.texts.table))
	w.row.Set(expression.Shard, canal.NewBytes(canal.KindText, p.texts.shard))
	w.row.Set(expression.Operation, canal.NewBytes(canal.KindText, operationTexts[row.Op]))
}

// operationTexts are the kinds of changes as op shows them.
var operationTexts = [...][]byte{
	canal.Insert: []byte("insert"), canal.Update: []byte("update"), canal.Delete: []byte("delete"), canal.Truncate: []byte("truncate"),
}

// prepareTransaction sets what expressions know of the transaction.
func (w *Worker) prepareTransaction() {
	x := &w.transaction
	w.row.Set(expression.CommittedAt, canal.NewBytes(canal.KindInstant, x.stamp[x.timeAt:x.timeEnd]))
	gtid := canal.Value{Kind: canal.KindNull}
	if x.gtid != "" {
		gtid = canal.NewText(x.gtid)
	}
	w.row.Set(expression.GTID, gtid)
}

// emit makes the event of one rule, if its condition is true.
func (w *Worker) emit(p *plan, e *emitter, row *canal.Row, c change) (event Event, fired bool, failure *RuleError) {
	fail := func(part string, err error) (Event, bool, *RuleError) {
		return Event{}, false, &RuleError{Rule: e.rule.at, Type: e.rule.Type, Part: part, Key: w.keyForMessage(p, c), Err: err}
	}
	if e.when != nil {
		truth, err := e.when.Eval(&w.row)
		if err != nil {
			return fail("when", err)
		}
		if truth != expression.True {
			return Event{}, false, nil
		}
	}
	topic, err := w.topicOf(e)
	if err != nil {
		return fail("topic", err)
	}
	headers, err := w.headersOf(e)
	if err != nil {
		return fail("headers", err)
	}
	if err := w.writeRuleKey(p, e, c); err != nil {
		return fail("key", err)
	}
	if err := w.writeSubject(e); err != nil {
		return fail("subject", err)
	}
	marks := w.writeEnvelope(p, &e.kind, row, c)
	if err := w.writeData(p, e, row, c); err != nil {
		return fail("data", err)
	}
	event = w.finish(&p.output, p, e.kind.name, marks)
	event.Topic, event.Headers = topic, append(headers, event.Headers...)
	return event, true, nil
}

// keyForMessage is the key of the change's table, as messages show it.
func (w *Worker) keyForMessage(p *plan, c change) string {
	if c.kind == truncated || w.writeKey(p, c.shown) != nil {
		return p.name
	}
	return string(w.key)
}

var errOtherTopic = errors.New("it gives a topic that is not in topics")

// topicOf is the rule's topic: one of its list where it is made of values.
func (w *Worker) topicOf(e *emitter) (string, error) {
	if e.topicOf == nil {
		return e.topic, nil
	}
	b := w.text[:0]
	for _, part := range e.topicOf.parts {
		if part.value == nil {
			b = append(b, part.text...)
			continue
		}
		v, err := part.value.Eval(&w.row)
		if err != nil {
			return "", err
		}
		b, _ = appendKeyText(b, v)
	}
	w.text = b
	topic, ok := e.topicOf.topics[string(b)]
	if !ok {
		return "", fmt.Errorf("%s: %w", e.topicOf.template, errOtherTopic)
	}
	return topic, nil
}

// headersOf are the rule's headers; those that are NULL are left out.
func (w *Worker) headersOf(e *emitter) ([]Header, error) {
	if len(e.headers) == 0 {
		return nil, nil
	}
	headers := make([]Header, 0, len(e.headers))
	for _, h := range e.headers {
		v, err := h.value.Eval(&w.row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		if v.Kind != canal.KindNull {
			w.text, _ = appendKeyText(w.text[:0], v)
			headers = append(headers, Header{Key: h.name, Value: w.arena.keep(w.text)})
		}
	}
	return headers, nil
}

// writeRuleKey fills w.key, w.keyJSON and w.subject as writeKey does.
func (w *Worker) writeRuleKey(p *plan, e *emitter, c change) error {
	switch {
	case e.keyOf != nil:
		v, err := e.keyOf.Eval(&w.row)
		if err != nil {
			return err
		}
		w.key, _ = appendKeyText(w.key[:0], v)
		w.keyJSON = appendString(w.keyJSON[:0], w.key)
		w.subject, w.keyColumns = w.keyJSON, nil
		return nil
	case c.kind == truncated:
		w.writeTableKey(p)
		return nil
	}
	return w.writeKeyOf(p, e.key, c.shown)
}

// writeSubject fills w.subject where the rule says what it is; NULL leaves it out.
func (w *Worker) writeSubject(e *emitter) error {
	if e.subject == nil {
		return nil
	}
	v, err := e.subject.Eval(&w.row)
	if err != nil {
		return err
	}
	w.subject = nil
	if v.Kind != canal.KindNull {
		w.text, _ = appendKeyText(w.text[:0], v)
		if len(w.text) > 0 {
			w.subjectJSON = appendString(w.subjectJSON[:0], w.text)
			w.subject = w.subjectJSON
		}
	}
	return nil
}

// writeData ends w.payload with data.
func (w *Worker) writeData(p *plan, e *emitter, row *canal.Row, c change) error {
	b := append(w.payload, `,"data":`...)
	switch {
	case e.data == nil && c.kind == truncated:
		b = append(b, '{', '}')
	case e.data == nil:
		b = p.appendDefault(b, e.shape, row, c)
	default:
		for i := range e.data.steps {
			step := &e.data.steps[i]
			b = append(b, step.before...)
			if step.value == nil {
				b = p.appendNamedImage(b, e.shape, step.image, row, c)
				continue
			}
			v, err := step.value.Eval(&w.row)
			if err != nil {
				return err
			}
			b = appendResult(b, v)
		}
		b = append(b, e.data.tail...)
	}
	w.payload = append(b, '}')
	return nil
}

// appendResult appends the value of an expression as JSON.
func appendResult(b []byte, v canal.Value) []byte {
	if v.Kind == expression.KindBool {
		return append(b, v.Bytes...)
	}
	return appendValue(b, &v)
}

// appendNamedImage appends one of the change's rows as a JSON object; null where there is none.
func (p *plan) appendNamedImage(b []byte, s *shape, name string, row *canal.Row, c change) []byte {
	of := c.shown
	switch {
	case c.kind == truncated, name == "old" && row.Before == nil, name == "new" && row.After == nil:
		return append(b, "null"...)
	case name == "old":
		of = image{top: row.Before}
	}
	return p.appendImage(b, s, of)
}

// appendImage appends a row in a shape, or in the table's own.
func (p *plan) appendImage(b []byte, s *shape, row image) []byte {
	if s != nil {
		return s.appendRow(b, row)
	}
	return p.appendRow(b, row)
}

// appendChanged appends the former values of what changed in a shape, or in the table's own.
func (p *plan) appendChanged(b []byte, s *shape, before, after []canal.Value) []byte {
	if s != nil {
		return s.appendOld(b, before, after)
	}
	return p.appendOld(b, before, after)
}
