package mapping

import (
	"encoding/json"

	"github.com/binlogd/binlogd/canal"
)

// format is how an event becomes the payload of a message, and what stands beside it. Each event is written as a CloudEvent
// in JSON first; a format takes from it what it needs, so that ids, times and sequences are the same in all.
type format interface {
	// carry sets what of an event depends on the format: Payload, ContentType and further headers. written is the CloudEvent,
	// data its part that marks show.
	carry(e *Event, written, data []byte, attributes attributes)
}

// output is how the events of an entry leave.
type output struct {
	format     format
	flat       bool // rows are shown without what surrounds them
	keyAsJSON  bool
	tombstones bool
}

// attributes are those of an event that stand in no field of Event.
type attributes struct{ subject, partitionKey string }

// Formats, by their names in the configuration.
var (
	structuredFormat format = structured{}
	binaryFormat     format = kafkaBinary{}
	rowFormat        format = plainRow{}
)

// The values of TableRule.Envelope.
const (
	EnvelopeCloudEvents = "cloudevents" // the default: CloudEvents 1.0 in structured mode
	EnvelopeBinary      = "binary"      // CloudEvents 1.0 in Kafka's binary mode
	EnvelopeRow         = "row"         // the row, with old
)

// The values of TableRule.KeyFormat.
const (
	KeyText = "text" // the default
	KeyJSON = "json" // an object of the key's columns
)

// readOutput reads how the events of an entry leave.
func (r *ruleReader) readOutput(at string, t *TableRule) output {
	o := output{format: structuredFormat, tombstones: t.Tombstones}
	switch t.Envelope {
	case "", EnvelopeCloudEvents:
	case EnvelopeBinary:
		o.format = binaryFormat
	case EnvelopeRow:
		o.format, o.flat = rowFormat, true
	default:
		r.mistake(at+".envelope", "%q is none: write cloudevents, binary or row", t.Envelope)
	}
	switch t.KeyFormat {
	case "", KeyText:
	case KeyJSON:
		o.keyAsJSON = true
	default:
		r.mistake(at+".key_format", "%q is none: write text or json", t.KeyFormat)
	}
	return o
}

// structured is the event as CloudEvents 1.0 JSON.
type structured struct{}

func (structured) carry(e *Event, written, _ []byte, _ attributes) { e.Payload = written }

// kafkaBinary is CloudEvents' binary mode of Kafka: the data is the payload, and what surrounds it are headers that begin with
// ce_. The sink writes those that every event has; here are the others.
type kafkaBinary struct{}

func (kafkaBinary) carry(e *Event, _, data []byte, a attributes) {
	e.Payload, e.ContentType = data, mediaJSON
	add := func(name, value string) {
		if value != "" {
			e.Headers = append(e.Headers, Header{Key: name, Value: []byte(value)})
		}
	}
	add("ce_subject", a.subject)
	add("ce_gtid", e.GTID)
	add("ce_sequence", e.Sequence)
	add("ce_partitionkey", a.partitionKey)
}

// plainRow is the row itself: a member for each column, and "old" with the former values of an update. Where a rule says what
// data is, it is that.
type plainRow struct{}

func (plainRow) carry(e *Event, _, data []byte, _ attributes) {
	e.Payload, e.ContentType = data, mediaJSON
}

// finish makes the event whose CloudEvent stands in w.payload.
func (w *Worker) finish(o *output, p *plan, kind string, m marks) Event {
	data := m.dataAt
	written := w.seal()
	event := w.event(p, kind, written, m)
	if o.keyAsJSON {
		event.Key = w.arena.keep(w.appendKeyObject(p))
	}
	if o.format == structuredFormat {
		return event // as it is, without what reshape allocates
	}
	return w.reshape(o, event, written, data)
}

// reshape gives an event the payload of another format. data is where the event's data begins in written.
func (w *Worker) reshape(o *output, event Event, written []byte, data int) Event {
	a := attributes{partitionKey: string(w.key)}
	if len(w.subject) > 0 {
		_ = json.Unmarshal(w.subject, &a.subject) // is a JSON string
	}
	o.format.carry(&event, written, written[data:len(written)-1:len(written)-1], a)
	return event
}

// appendKeyObject gives the key that was written last as JSON: an object of its columns, or what an expression gave.
func (w *Worker) appendKeyObject(p *plan) []byte {
	if len(w.keyColumns) == 0 {
		return w.keyJSON
	}
	b := append(w.text[:0], '{')
	for n, i := range w.keyColumns {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, []byte(p.table.Columns[i].Name)), ':')
		v := *w.keyRow.at(i)
		if p.masks != nil && p.masks[i] != nil && v.Kind != canal.KindNull {
			w.masked, v = p.masks[i](w.masked[:0], v)
		}
		b = appendValue(b, &v)
	}
	w.text = append(b, '}')
	return w.text
}

// tombstone follows the event of a deletion under the same key: a record without a value, by which a compacted topic forgets it.
func (w *Worker) tombstone(o *output, p *plan, kind *kindPlan, row *canal.Row, c change) Event {
	c.half += tombstoneHalf
	of := planKind(kind.name+".tombstone", p.source)
	event := w.finish(&output{format: structuredFormat, keyAsJSON: o.keyAsJSON}, p, of.name, w.writeEnvelope(p, &of, row, c))
	event.Payload = nil
	return event
}

// tombstoneHalf keeps tombstones behind the events of the default mapping.
const tombstoneHalf = 2
