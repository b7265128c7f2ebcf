package mapping

import (
	"fmt"
	"regexp"

	"github.com/binlogd/binlogd/canal"
)

// OutboxRule makes an entry relay the messages that an application writes into a table: each inserted row becomes one event
// whose topic, key, payload and headers are what its columns say. Updates and deletions of the table's rows, by which applications mark
// messages as sent or clear them away, give nothing. Beside these keys, the entry may have Topic, Key, Type, Envelope and
// OnError; Topic, Key and Type then name columns.
type OutboxRule struct {
	// Outbox is the pattern of the table.
	Outbox string `yaml:"outbox"`
	// ID is the column of the events' ids; they are derived as those of all other events when empty.
	ID string `yaml:"id"`
	// Payload is the column of what the events say.
	Payload string `yaml:"payload"`
	// Content says what payloads are: json, text or bytes. When empty the column's type and value tell; see contentOf.
	Content string `yaml:"content"`
	// Headers are columns whose values become headers.
	Headers OutboxHeaders `yaml:"headers"`
	// AllowTopics are patterns of the topics that rows may name: * stands for any characters, ? for one, {a,b} for one of several.
	AllowTopics []string `yaml:"allow_topics"`
}

// OutboxHeaders are a column that holds a JSON object of headers, or headers with a column each.
type OutboxHeaders struct {
	Column  string
	Columns []HeaderColumn
}

// HeaderColumn is a header and the column of its value.
type HeaderColumn struct{ Name, Column string }

// The values of OutboxRule.Content.
const (
	contentJSON  = "json"
	contentText  = "text"
	contentBytes = "bytes"
)

func (o *OutboxRule) isZero() bool {
	return o.Outbox == "" && o.ID == "" && o.Payload == "" && o.Content == "" && o.Headers.isZero() && o.AllowTopics == nil
}

func (h *OutboxHeaders) isZero() bool { return h.Column == "" && len(h.Columns) == 0 }

// outbox is an OutboxRule, read.
type outbox struct {
	OutboxRule
	topic    string // the column
	kind     string // the column; empty: the topic is the type
	allowed  []glob
	skipping bool
}

// readOutbox reads an entry that is an outbox. i is its index in events.
func (r *ruleReader) readOutbox(i int, t *TableRule) *entry {
	at := fmt.Sprintf("events[%d]", i)
	o := &outbox{OutboxRule: t.OutboxRule, topic: t.Topic, kind: t.Type}
	e := &entry{at: at, key: t.Key, outbox: o, output: r.readOutput(at, t)}
	if t.Envelope == EnvelopeRow || t.Tombstones {
		r.mistake(at, "envelope: row and tombstones do not go with an outbox: write envelope: binary to have payloads relayed without what surrounds them")
	}
	if t.Outbox == "" {
		r.mistake(at+".outbox", "missing: id, payload, content, headers and allow_topics belong to an outbox: write its table, outbox: shop.message_box")
	} else {
		e.pattern = r.readPattern(at+".outbox", t.Outbox, "shop.message_box")
	}
	if t.Table != "" || t.Root != "" || t.Aggregate != "" || t.Include != nil || t.MaxSize != 0 || len(t.On) > 0 || t.When != "" ||
		t.Emit != nil || t.Mask != nil || t.Topics != nil || !t.Columns.isZero() {
		r.mistake(at, "an outbox is relayed as it is: of the other keys, topic, key, type, envelope and on_error go with it")
	}
	if o.topic == "" {
		r.mistake(at+".topic", "missing: write the column that holds the topic, such as topic: topic")
	}
	if o.Payload == "" {
		r.mistake(at+".payload", "missing: write the column that holds what is published, such as payload: payload")
	}
	switch o.Content {
	case "", contentJSON, contentText, contentBytes:
	default:
		r.mistake(at+".content", "write json, text or bytes, or leave it out to have the column's type decide")
	}
	r.checkOutboxHeaders(at+".headers", o.Headers)
	if len(o.AllowTopics) == 0 {
		r.mistake(at+".allow_topics", "missing: a row could name any topic; list those that it may name, such as allow_topics: [order.*, stock.deducted]")
	}
	if len(o.AllowTopics) > maxTopics {
		r.mistake(at+".allow_topics", "%d topics: at most %d are allowed", len(o.AllowTopics), maxTopics)
	}
	for j, text := range o.AllowTopics {
		g, err := parseGlob(text)
		if err != nil {
			r.mistake(fmt.Sprintf("%s.allow_topics[%d]", at, j), "%v", err)
		}
		o.allowed = append(o.allowed, g)
	}
	r.checkKeyColumns(at+".key", t.Key)
	o.skipping = r.readOnError(at+".on_error", t.OnError)
	return e
}

func (r *ruleReader) checkOutboxHeaders(key string, headers OutboxHeaders) {
	if len(headers.Columns) > maxHeaders {
		r.mistake(key, "%d headers: at most %d are allowed", len(headers.Columns), maxHeaders)
	}
	for _, h := range headers.Columns {
		if err := checkHeader(h.Name); err != nil {
			r.mistake(key+"."+h.Name, "%v", err)
		}
		if h.Column == "" {
			r.mistake(key+"."+h.Name, "empty: write the column that holds the header's value")
		}
	}
}

// parseGlob reads a pattern of topics. A dot is a character like any other.
func parseGlob(text string) (glob, error) {
	p := patternParser{rest: text, dots: true}
	g, err := p.text("")
	switch {
	case err != nil:
		return g, err
	case p.rest != "":
		return g, fmt.Errorf(`%q: "}" without "{"`, text)
	case len(g.nodes) == 0:
		return g, fmt.Errorf("%q allows no topic: write one, such as order.*", text)
	}
	return g, nil
}

// allows reports whether rows may name a topic.
func (o *outbox) allows(topic string) bool {
	for _, g := range o.allowed {
		if g.matches(topic) {
			return true
		}
	}
	return false
}

// outboxID is what a column may hold that gives the ids: they stand in headers and in unique keys of consumers.
var outboxID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:-]{0,63}$`)

// outboxPlan is an outbox, worked out for one table: indexes of columns, -1 where there is none.
type outboxPlan struct {
	*outbox
	at                   string
	id, topicAt, kindAt  int
	payloadAt, headersAt int
	headers              []int // by the index of Headers.Columns
	kinds                map[string]*kindPlan
}

// planOutbox works the outbox of an entry out for the table of p.
func (p *plan) planOutbox(e *entry) error {
	o := &outboxPlan{outbox: e.outbox, at: e.at, id: -1, kindAt: -1, headersAt: -1, kinds: map[string]*kindPlan{}}
	var err error
	column := func(key, name string, into *int) {
		if name == "" || err != nil {
			return
		}
		if *into = columnIndex(p.table, name); *into < 0 {
			err = unknownColumn(p.table, e.at+"."+key, name)
		}
	}
	column("id", o.ID, &o.id)
	column("topic", o.topic, &o.topicAt)
	column("type", o.kind, &o.kindAt)
	column("payload", o.Payload, &o.payloadAt)
	column("headers", o.Headers.Column, &o.headersAt)
	for _, h := range o.Headers.Columns {
		i := -1
		column("headers."+h.Name, h.Column, &i)
		o.headers = append(o.headers, i)
	}
	if err != nil {
		return err
	}
	if kind, known := p.table.Columns[o.payloadAt].ValueKind(); known && kind == canal.KindBinary && o.Content == contentText {
		return &OptionError{Key: e.at + ".content", Problem: fmt.Sprintf("column %q of table %s.%s holds bytes without a character set: write json or bytes", o.Payload, p.table.Database, p.table.Name)}
	}
	p.outbox = o
	return nil
}
