package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/binlogd/binlogd/mapping"
)

// longestValue is how many characters of a value a line shows.
const longestValue = 60

// style is how lines look. Its strings are terminal sequences, or empty.
type style struct {
	reset, dim, bold         string
	created, updated, gone   string
	columnChanged, was, will string
}

func newStyle(colors bool) style {
	if !colors {
		return style{}
	}
	const csi = "\x1b["
	return style{
		reset: csi + "0m", dim: csi + "2m", bold: csi + "1m",
		created: csi + "32m", updated: csi + "33m", gone: csi + "31m",
		columnChanged: csi + "1;33m", was: csi + "31m", will: csi + "32m",
	}
}

// member is one column of an event, in the table's order.
type member struct {
	name  string
	value json.RawMessage
}

// line appends the line of e to b:
//
//	10:00:00.123 orders.updated 1001  status: "pending" → "paid"  amount: "19.90"
func (s style) line(b []byte, e *mapping.Event) ([]byte, error) {
	event, err := contentOf(e)
	if err != nil {
		return b, fmt.Errorf("show event %s: %w", e.ID, err)
	}
	b = s.paint(b, s.dim, e.OccurredAt.In(time.Local).Format("15:04:05.000"))
	b = append(b, ' ')
	b = s.paint(b, s.ofType(e.Type), printable(e.Type))
	if event.Subject != "" {
		b = append(b, ' ')
		b = s.paint(b, s.bold, printable(event.Subject))
	}
	b = append(b, ' ')
	for _, m := range event.Data.Row {
		old, changed := event.Data.Old.find(m.name)
		b = append(b, ' ')
		switch {
		case changed:
			b = s.paint(b, s.columnChanged, printable(m.name)+":")
			b = append(b, ' ')
			b = s.paint(b, s.was, shorten(old))
			b = append(b, " → "...)
			b = s.paint(b, s.will, shorten(m.value))
		case len(event.Data.Old) > 0: // what an update left alone
			b = s.paint(b, s.dim, printable(m.name)+": "+shorten(m.value))
		default:
			b = append(b, printable(m.name)+": "+shorten(m.value)...)
		}
		b = append(b, ' ')
	}
	return append(bytes.TrimRight(b, " "), '\n'), nil
}

// content is what a line shows of an event.
type content struct {
	Subject string
	Data    struct{ Row, Old members }
}

// contentOf reads an event. What rules made of a row is shown as a row is; what is no object, as a column called data.
func contentOf(e *mapping.Event) (c content, err error) {
	shown := struct {
		Subject string
		Data    json.RawMessage
		Base64  json.RawMessage `json:"data_base64"`
	}{Subject: string(e.Key), Data: e.Payload}
	if e.ContentType == "" && e.Payload != nil {
		shown.Subject = ""
		if err := json.Unmarshal(e.Payload, &shown); err != nil {
			return c, err
		}
	}
	c.Subject = shown.Subject
	data := shown.Data
	if shown.Base64 != nil {
		data = shown.Base64
	}
	if len(data) == 0 {
		return c, nil
	}
	var all members
	if json.Unmarshal(data, &c.Data) == nil && c.Data.Row != nil {
		return c, nil
	}
	c.Data.Row, c.Data.Old = nil, nil
	if json.Unmarshal(data, &all) != nil {
		if !json.Valid(data) {
			data, _ = json.Marshal(string(data)) // of a text, which cannot fail
		}
		all = members{{"data", data}}
	}
	c.Data.Row = all
	return c, nil
}

// ofType is the colour of a type of event.
func (s style) ofType(name string) string {
	switch {
	case strings.HasSuffix(name, ".created"):
		return s.created
	case strings.HasSuffix(name, ".updated"):
		return s.updated
	}
	return s.gone
}

func (s style) paint(b []byte, color, text string) []byte {
	if color == "" {
		return append(b, text...)
	}
	b = append(b, color...)
	b = append(b, text...)
	return append(b, s.reset...)
}

// members are the columns of a JSON object, in their order.
type members []member

// UnmarshalJSON implements json.Unmarshaler.
func (m *members) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the opening brace
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		*m = append(*m, member{name: fmt.Sprint(name), value: value})
	}
	return nil
}

func (m members) find(name string) (json.RawMessage, bool) {
	for i := range m {
		if m[i].name == name {
			return m[i].value, true
		}
	}
	return nil, false
}

// shorten is a value on little room.
func shorten(value json.RawMessage) string {
	text := printable(string(value))
	if utf8.RuneCountInString(text) <= longestValue {
		return text
	}
	return string([]rune(text)[:longestValue-1]) + "…"
}

// printable keeps what a row holds from steering the terminal.
func printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
