package mapping

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/binlogd/binlogd/canal"
)

// maxOutboxTypes bounds how many types of one outbox are remembered: rows name them.
const maxOutboxTypes = 1024

// Media types of what an outbox relays.
const (
	mediaJSON  = "application/json"
	mediaText  = "text/plain; charset=utf-8"
	mediaBytes = "application/octet-stream"
)

// appendRelayed appends the event of a row of an outbox: of an insert alone.
func (w *Worker) appendRelayed(dst []Event, p *plan, row *canal.Row) ([]Event, error) {
	if row.Op != canal.Insert {
		return dst, nil
	}
	c := changeOf(row)
	event, failure := w.relay(p, row, c)
	switch {
	case failure == nil:
		return append(dst, event), nil
	case !p.outbox.skipping:
		return dst, failure
	}
	w.skipped = append(w.skipped, Skip{Table: p.name, Transaction: w.transaction.name, Err: failure})
	return dst, nil
}

// relay makes the event of one message.
func (w *Worker) relay(p *plan, row *canal.Row, c change) (Event, *RuleError) {
	o := p.outbox
	kindName := ""
	fail := func(part string, err error) (Event, *RuleError) {
		return Event{}, &RuleError{Rule: o.at, Type: kindName, Part: part, Key: w.keyForMessage(p, c), Err: err}
	}
	topic, err := o.topicOf(row)
	if err != nil {
		return fail("topic", err)
	}
	kindName = topic
	kind, err := o.kindOf(row, topic, p.source)
	if err != nil {
		return fail("type", err)
	}
	kindName = kind.name
	if w.givenID, err = o.idOf(w.givenID[:0], row); err != nil {
		return fail("id", err)
	}
	defer func() { w.givenID = w.givenID[:0] }()
	headers, err := w.outboxHeaders(o, row)
	if err != nil {
		return fail("headers", err)
	}
	if err := w.writeKeyOf(p, p.key, c.shown); err != nil {
		return fail("key", err)
	}
	content, err := o.contentOf(&row.After[o.payloadAt])
	if err != nil {
		return fail("payload", err)
	}
	marks := w.writeEnvelope(p, kind, row, c)
	media := w.writeContent(&marks, content, &row.After[o.payloadAt])
	w.payload = append(w.payload, '}')
	event := w.finish(&p.output, p, kind.name, marks)
	if p.output.format == binaryFormat { // as it is, not as JSON shows it
		event.ContentType = media
		event.Payload = w.arena.keep(row.After[o.payloadAt].Bytes)
		if row.After[o.payloadAt].Bytes == nil {
			w.text, _ = appendKeyText(w.text[:0], row.After[o.payloadAt])
			event.Payload = w.arena.keep(w.text)
		}
	}
	event.Topic, event.Headers = topic, append(headers, event.Headers...)
	return event, nil
}

// text is the text of a column's value; ok is false where there is none.
func outboxText(v canal.Value) (text string, ok bool) {
	if v.Kind == canal.KindAbsent || v.Kind == canal.KindNull {
		return "", false
	}
	if v.Kind == canal.KindBinary {
		return string(v.Bytes), utf8.Valid(v.Bytes)
	}
	return string(appendText(nil, v)), true
}

func (o *outboxPlan) topicOf(row *canal.Row) (string, error) {
	topic, ok := outboxText(row.After[o.topicAt])
	if !ok {
		return "", fmt.Errorf("column %q holds none", o.topic)
	}
	if err := checkTopic(topic); err != nil {
		return "", err
	}
	if !o.allows(topic) {
		return "", fmt.Errorf("%q is not in allow_topics", topic)
	}
	return topic, nil
}

// kindOf is the type of a message: what its column says, or its topic.
func (o *outboxPlan) kindOf(row *canal.Row, topic, source string) (*kindPlan, error) {
	name := topic
	if o.kindAt >= 0 {
		text, ok := outboxText(row.After[o.kindAt])
		if !ok {
			return nil, fmt.Errorf("column %q holds none", o.kind)
		}
		name = text
	}
	if !typePattern.MatchString(name) {
		return nil, fmt.Errorf(`%.140q is none: up to 128 letters, digits, ".", "_", "-", ":" and "/" are allowed`, name)
	}
	if known, ok := o.kinds[name]; ok {
		return known, nil
	}
	if len(o.kinds) >= maxOutboxTypes {
		clear(o.kinds)
	}
	kind := planKind(name, source)
	o.kinds[name] = &kind
	return &kind, nil
}

// idOf appends the id that a column gives; nothing where none does.
func (o *outboxPlan) idOf(b []byte, row *canal.Row) ([]byte, error) {
	if o.id < 0 {
		return b, nil
	}
	v := row.After[o.id]
	if v.Kind == canal.KindAbsent || v.Kind == canal.KindNull {
		return b, fmt.Errorf("column %q holds none", o.ID)
	}
	b = appendText(b, v)
	if !outboxID.Match(b) {
		return b, fmt.Errorf(`%.80q is none: 1 to 64 letters, digits, ".", "_", ":" and "-" are allowed; leave id out to have ids derived`, b)
	}
	return b, nil
}

// outboxHeaders are the message's headers; those that are NULL are left out.
func (w *Worker) outboxHeaders(o *outboxPlan, row *canal.Row) (headers []Header, err error) {
	for i, h := range o.Headers.Columns {
		v := row.After[o.headers[i]]
		switch v.Kind {
		case canal.KindNull, canal.KindAbsent:
			continue
		case canal.KindBinary:
			w.text = append(w.text[:0], v.Bytes...)
		default:
			w.text = appendText(w.text[:0], v)
		}
		headers = append(headers, Header{Key: h.Name, Value: w.arena.keep(w.text)})
	}
	if o.headersAt < 0 {
		return headers, nil
	}
	v := row.After[o.headersAt]
	if v.Kind == canal.KindNull || v.Kind == canal.KindAbsent || len(bytes.TrimSpace(v.Bytes)) == 0 {
		return headers, nil
	}
	return appendHeaderObject(headers, v.Bytes)
}

// appendHeaderObject appends the members of a JSON object: texts as they are, other values as JSON shows them, without NULL.
func appendHeaderObject(headers []Header, object []byte) ([]Header, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	wrong := errors.New(`no JSON object: {"name": "value"} is needed`)
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, wrong
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, wrong
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, wrong
		}
		if string(value) == "null" {
			continue
		}
		key, _ := name.(string)
		if err := checkHeader(key); err != nil {
			return nil, fmt.Errorf("%.140q: %w", key, err)
		}
		var text string
		if json.Unmarshal(value, &text) == nil {
			value = json.RawMessage(text)
		}
		if headers = append(headers, Header{Key: key, Value: value}); len(headers) > maxHeaders {
			return nil, fmt.Errorf("more than %d", maxHeaders)
		}
	}
	if token, err := d.Token(); err != nil || token != json.Delim('}') || d.More() {
		return nil, wrong
	}
	return headers, nil
}

// contentOf says what a payload is: what content says; else JSON in JSON columns, bytes in columns without a character
// set, and in columns of text JSON where it is a whole object or array, and text otherwise.
func (o *outboxPlan) contentOf(v *canal.Value) (string, error) {
	if v.Kind == canal.KindAbsent {
		return "", fmt.Errorf("column %q: %w", o.Payload, ErrKeyNotCarried)
	}
	if v.Kind == canal.KindNull {
		return contentJSON, nil
	}
	switch {
	case o.Content == contentJSON:
		if v.Kind != canal.KindJSON && !json.Valid(v.Bytes) || !utf8.Valid(v.Bytes) {
			return "", fmt.Errorf("column %q holds no JSON", o.Payload)
		}
		return contentJSON, nil
	case o.Content != "":
		return o.Content, nil
	case v.Kind == canal.KindJSON:
		return contentJSON, nil
	case v.Kind == canal.KindBinary:
		return contentBytes, nil
	}
	if b := bytes.TrimLeft(v.Bytes, " \t\r\n"); len(b) > 0 && (b[0] == '{' || b[0] == '[') && json.Valid(b) {
		return contentJSON, nil
	}
	return contentText, nil
}

// writeContent appends data to w.payload, and returns its media type, which the envelope then names.
func (w *Worker) writeContent(m *marks, content string, v *canal.Value) (media string) {
	switch {
	case v.Kind == canal.KindNull:
		w.payload = append(w.payload, `,"data":null`...)
		return mediaJSON
	case content == contentJSON:
		w.payload = append(w.payload, `,"data":`...)
		if v.Bytes == nil {
			w.payload = appendValue(w.payload, v)
		} else {
			compact := bytes.NewBuffer(w.payload)
			_ = json.Compact(compact, v.Bytes) // is JSON; and has to be one line
			w.payload = compact.Bytes()
		}
		return mediaJSON
	case content == contentBytes:
		w.setMedia(m, mediaBytes)
		w.payload = append(w.payload, `,"data_base64":"`...)
		w.text = append(w.text[:0], v.Bytes...)
		if v.Bytes == nil {
			w.text = appendText(w.text, *v)
		}
		w.payload = base64.StdEncoding.AppendEncode(w.payload, w.text)
		w.payload = append(w.payload, '"')
		return mediaBytes
	}
	w.setMedia(m, mediaText)
	w.payload = append(w.payload, `,"data":`...)
	w.text, _ = appendKeyText(w.text[:0], *v)
	w.payload = appendString(w.payload, w.text)
	return mediaText
}

// setMedia replaces the media type of the data in the envelope.
func (w *Worker) setMedia(m *marks, media string) {
	at := m.timeEnd + len(`","datacontenttype":"`)
	tail := append([]byte(nil), w.payload[at+len(mediaJSON):]...)
	w.payload = append(append(w.payload[:at], media...), tail...)
	shift := len(media) - len(mediaJSON)
	m.sequence += shift
	m.sequenceEnd += shift
	m.dataAt += shift
}
