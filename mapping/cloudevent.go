package mapping

import (
	"time"

	"github.com/binlogd/binlogd/canal"
)

// Layouts of the commit time, as far as the servers carry it: MySQL has microseconds,
// MariaDB seconds.
const (
	microseconds = "2006-01-02T15:04:05.000000Z"
	seconds      = "2006-01-02T15:04:05Z"
)

// transaction is what the events of one transaction have in common.
type transaction struct {
	name        string // for messages: the GTID, or file and offset
	gtid        string // empty without one
	committedAt time.Time
	// id is the part of the ids before the hash, of hashWidth digits.
	id        []byte
	hashWidth int
	// hash begins the text that is hashed: version and tag.
	hash []byte
	// stamp is the events' text between subject and the sequence's second part; the
	// commit time is at stamp[timeAt:timeEnd], the sequence begins at sequenceAt.
	stamp                       []byte
	timeAt, timeEnd, sequenceAt int
}

func (x *transaction) begin(t *canal.Transaction) (err error) {
	x.name, x.gtid, x.hashWidth = transactionName(t), "", anonHashWidth
	if !t.GTID.IsZero() {
		x.gtid, x.hashWidth = x.name, hashWidth
	}
	x.committedAt = t.CommittedAt.UTC()
	if x.id, err = appendIDTransaction(x.id[:0], t); err != nil {
		return err
	}
	x.hash = appendIDText(x.hash[:0], idVersion)
	x.hash = appendIDText(x.hash, t.GTID.Tag)

	layout := microseconds
	if t.GTID.Flavor == canal.MariaDB {
		layout = seconds
	}
	b := append(x.stamp[:0], `,"time":"`...)
	x.timeAt = len(b)
	b = x.committedAt.AppendFormat(b, layout)
	x.timeEnd = len(b)
	b = append(b, `","datacontenttype":"application/json"`...)
	if x.gtid != "" {
		b = append(b, `,"gtid":"`...)
		b = append(b, x.gtid...)
		b = append(b, '"')
	}
	b = append(b, `,"sequence":"`...)
	x.sequenceAt = len(b)
	x.stamp, err = appendSequenceTransaction(b, t)
	return err
}

// transactionName is the GTID, or where an anonymous transaction begins.
func transactionName(t *canal.Transaction) string {
	if t.GTID.IsZero() {
		return t.File + ":" + string(appendPadded(nil, t.Start, 10, 1))
	}
	return t.GTID.String()
}

// marks are places in a payload: the strings of an Event are parts of it.
type marks struct {
	id, idEnd, time, timeEnd, sequence, sequenceEnd int
	dataAt                                          int // where data begins that is written next; it ends with the payload, but for a brace
}

// writePayload fills w.payload with the event of c as CloudEvents 1.0 JSON.
func (w *Worker) writePayload(p *plan, row *canal.Row, c change) (m marks) {
	m = w.writeEnvelope(p, &p.kinds[c.kind], row, c)
	b := w.payload
	b = append(b, `,"data":`...)
	b = p.appendDefault(b, p.shape, row, c)
	w.payload = append(b, '}')
	if cap(w.preimage) > maxScratch {
		w.preimage = nil
	}
	return m
}

// writeEnvelope begins w.payload with all but data, in the contract's order: specversion, id, source, type, subject, time,
// datacontenttype, gtid, sequence, partitionkey. It takes the key from w.keyJSON and the subject from w.subject.
//
// Left out are: subject without a key of columns; subject and partitionkey where the key is
// the empty text, which CloudEvents does not allow; gtid for anonymous transactions.
func (w *Worker) writeEnvelope(p *plan, kind *kindPlan, row *canal.Row, c change) (m marks) {
	x := &w.transaction
	keyed := len(w.key) > 0

	b := append(w.payload[:0], `{"specversion":"1.0","id":"`...)
	m.id = len(b)
	if len(w.givenID) > 0 {
		b = append(b, w.givenID...)
	} else {
		b = append(b, x.id...)
		w.preimage = appendIdentity(append(w.preimage[:0], x.hash...), p, kind, row.Ordinal, c.identity)
		b = appendIDHash(b, w.preimage, x.hashWidth)
	}
	m.idEnd = len(b)
	b = append(b, kind.envelope...)
	if len(w.subject) > 0 {
		b = append(b, `,"subject":`...)
		b = append(b, w.subject...)
	}
	m.time, m.timeEnd, m.sequence = len(b)+x.timeAt, len(b)+x.timeEnd, len(b)+x.sequenceAt
	b = append(b, x.stamp...)
	b = appendSequenceChange(b, row.Place, c.half)
	m.sequenceEnd = len(b)
	b = append(b, '"')
	if keyed {
		b = append(b, `,"partitionkey":`...)
		b = append(b, w.keyJSON...)
	}
	w.payload = b
	m.dataAt = len(b) + len(`,"data":`)
	return m
}

// appendDefault appends what the default mapping says of a change, as a JSON object.
func (p *plan) appendDefault(b []byte, s *shape, row *canal.Row, c change) []byte {
	start := len(b)
	if !p.output.flat {
		b = append(b, `{"row":`...)
	}
	b = p.appendImage(b, s, c.shown)
	if p.output.flat {
		if c.before == nil {
			return b
		}
		b = b[:len(b)-1]
	}
	if c.before != nil {
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = append(b, `"old":`...)
		b = p.appendChanged(b, s, c.before, row.After)
	}
	return append(b, '}')
}

// appendIdentity appends what is hashed after version and tag.
func appendIdentity(b []byte, p *plan, kind *kindPlan, ordinal uint64, row image) []byte {
	b = append(b, p.hashNames...)
	b = appendIDOrdinal(b, ordinal)
	b = append(b, kind.hash...)
	for _, i := range p.identity {
		b = appendIDValue(b, *row.at(i))
	}
	return b
}

// appendRow appends the columns that row carries, as a JSON object.
func (p *plan) appendRow(b []byte, row image) []byte {
	start := len(b)
	for i := range p.members {
		if v := row.at(i); v.Kind != canal.KindAbsent {
			b = p.appendMember(b, i, v)
		}
	}
	return closeObject(b, start)
}

// appendOld appends the former values of the columns that differ, as a JSON object.
func (p *plan) appendOld(b []byte, before, after []canal.Value) []byte {
	start := len(b)
	for i := range p.members {
		v := &before[i]
		if v.Kind != canal.KindAbsent && after[i].Kind != canal.KindAbsent && !v.Equal(after[i]) {
			b = p.appendMember(b, i, v)
		}
	}
	return closeObject(b, start)
}

// appendMember appends a comma, for which closeObject puts the brace where it is the
// first, and the member of column i.
func (p *plan) appendMember(b []byte, i int, v *canal.Value) []byte {
	return appendValue(append(b, p.members[i]...), v)
}

// closeObject ends the object whose members begin at start.
func closeObject(b []byte, start int) []byte {
	if len(b) == start {
		return append(b, '{', '}')
	}
	b[start] = '{'
	return append(b, '}')
}
