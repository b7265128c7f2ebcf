package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
)

// run maps the transaction of a test and says how the events differ from those expected; empty where they do not.
func (s *samples) run(test *sampleTest) (string, error) {
	events, err := s.mapChanges(test)
	if test.Error != "" {
		switch {
		case err == nil:
			return fmt.Sprintf("  expected an error with %q, and the rules made %s\n", test.Error, plural(len(events), "event")), nil
		case !strings.Contains(err.Error(), test.Error):
			return fmt.Sprintf("  expected an error with %q, and got:\n    %v\n", test.Error, err), nil
		}
		return "", nil
	}
	if err != nil {
		return fmt.Sprintf("  the rules stop:\n    %v\n", err), nil
	}
	var want, got []string
	for i := range max(len(events), len(test.Expect)) {
		shape := &expectedEvent{Type: "x", Topic: "x", Key: "x", Data: sampleJSON{json.RawMessage("{}")}} // of what nobody expects
		if i < len(test.Expect) {
			shape = &test.Expect[i]
			want = append(want, shape.lines()...)
		}
		if i < len(events) {
			lines, err := shape.linesOf(&events[i])
			if err != nil {
				return "", err
			}
			got = append(got, lines...)
		}
	}
	return lineDiff(want, got), nil
}

// mapChanges maps a test's changes as one transaction.
func (s *samples) mapChanges(test *sampleTest) ([]mapping.Event, error) {
	rows, transaction, err := s.transaction(test)
	if err != nil {
		return nil, err
	}
	worker := s.mapper.NewWorker()
	if err := worker.Begin(transaction); err != nil {
		return nil, err
	}
	var events []mapping.Event
	for _, row := range rows {
		if events, err = worker.Append(events, row); err != nil {
			return nil, err
		}
	}
	return worker.End(events, 0)
}

// transaction is a test's changes, numbered as the decoder does. The binlog's other tables do not count.
func (s *samples) transaction(test *sampleTest) (rows []*canal.Row, t *canal.Transaction, err error) {
	ordinals := map[*canal.Table]uint64{}
	for i := range test.Changes {
		row, err := test.Changes[i].row(s.Tables)
		if err != nil {
			return nil, nil, err
		}
		if !s.mapper.Captured(row.Table.Database, row.Table.Name) {
			continue
		}
		ordinals[row.Table]++
		row.Ordinal, row.Place = ordinals[row.Table], uint64(i+1)
		rows = append(rows, row)
	}
	t = &canal.Transaction{GTID: canal.GTID{Flavor: canal.MySQL, UUID: [16]byte{15: 1}, Number: 1}, Number: 1, CommittedAt: sampleCommit, Last: true}
	return rows, t, nil
}

// lines show an expected event.
func (e *expectedEvent) lines() []string {
	return e.show(e.Type, e.Topic, e.Key, e.Subject, e.ID, e.Headers.raw, e.Data.raw)
}

// linesOf show of an event what e expects something of.
func (e *expectedEvent) linesOf(event *mapping.Event) ([]string, error) {
	shown := struct {
		Subject string
		Data    json.RawMessage
		Base64  json.RawMessage `json:"data_base64"`
	}{Data: event.Payload}
	if event.ContentType == "" && event.Payload != nil {
		if err := json.Unmarshal(event.Payload, &shown); err != nil {
			return nil, fmt.Errorf("show event %s: %w", event.ID, err)
		}
	}
	data := shown.Data
	if shown.Base64 != nil {
		data = shown.Base64
	}
	if !json.Valid(data) {
		data, _ = json.Marshal(string(data)) // a text, which cannot fail
	}
	headers := map[string]string{}
	for _, h := range event.Headers {
		headers[h.Key] = string(h.Value)
	}
	shownHeaders, err := json.Marshal(headers)
	if err != nil {
		return nil, err
	}
	return e.show(event.Type, event.Topic, string(event.Key), shown.Subject, event.ID, shownHeaders, data), nil
}

// show writes the members that e has, with values in the place of its own.
func (e *expectedEvent) show(kind, topic, key, subject, id string, headers, data json.RawMessage) []string {
	lines := []string{"- type: " + kind}
	for _, m := range []struct{ name, expected, value string }{
		{"topic", e.Topic, topic}, {"key", e.Key, key}, {"subject", e.Subject, subject}, {"id", e.ID, id},
	} {
		if m.expected != "" {
			lines = append(lines, "  "+m.name+": "+m.value)
		}
	}
	for _, m := range []struct {
		name            string
		expected, value json.RawMessage
	}{{"headers", e.Headers.raw, headers}, {"data", e.Data.raw, data}} {
		if m.expected != nil {
			text := strings.Split(indented(m.value), "\n")
			text[0] = m.name + ": " + text[0]
			for _, line := range text {
				lines = append(lines, "  "+line)
			}
		}
	}
	return lines
}

// indented is JSON with a line for each member, which are in the order of their names; numbers keep their digits.
func indented(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return string(raw)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return string(raw)
	}
	return strings.TrimRight(b.String(), "\n")
}

// lineDiff shows lines of want that are missing with -, and those of got that are too many with +; empty where both are equal.
func lineDiff(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	// common[i][j] is how many lines want[i:] and got[j:] have in common, in order.
	common := make([][]int, len(want)+1)
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i, wanted := range slices.Backward(want) {
		for j, line := range slices.Backward(got) {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); wanted == line {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var b strings.Builder
	b.WriteString("  - expected, + what the rules make\n")
	for i, j := 0, 0; i < len(want) || j < len(got); {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			b.WriteString("      " + want[i] + "\n")
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			b.WriteString("    - " + want[i] + "\n")
			i++
		default:
			b.WriteString("    + " + got[j] + "\n")
			j++
		}
	}
	return b.String()
}
