package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// change says where one row change belongs: two changes of a transaction to one table
// by one operation are alike, and are counted.
type change struct {
	GTID  string
	Table string // without the database
	Op    op
}

type op string

const (
	created op = "created"
	updated op = "updated"
	deleted op = "deleted"
)

// event is one CloudEvent as it was read back from the sink.
type event struct {
	ID       string
	Type     string
	Table    string // without the database
	Op       op
	GTID     string
	Sequence string
	Key      string         // of the partition, and here of the row
	Row, Old map[string]any // numbers are json.Number
	Data     map[string]any // of business events, which have no row
	raw      []byte         // one line of JSON
}

// business reports whether the event is one of the shop's business rather than of a row.
func (e *event) business() bool { return e.Data != nil }

func (e *event) change() change { return change{GTID: e.GTID, Table: e.Table, Op: e.Op} }

// parseEvent reads one event. It takes nothing for granted that the summary relies on.
func parseEvent(line []byte) (*event, error) {
	var wire struct {
		SpecVersion  string          `json:"specversion"`
		ID           string          `json:"id"`
		Source       string          `json:"source"`
		Type         string          `json:"type"`
		GTID         string          `json:"gtid"`
		Sequence     string          `json:"sequence"`
		PartitionKey string          `json:"partitionkey"`
		Data         json.RawMessage `json:"data"`
	}
	if err := decodeJSON(line, &wire); err != nil {
		return nil, fmt.Errorf("read event %.120q: %w", line, err)
	}
	e := &event{
		ID: wire.ID, Type: wire.Type, GTID: wire.GTID, Sequence: wire.Sequence, Key: wire.PartitionKey, raw: line,
	}
	if businessTypes[wire.Type] {
		if err := decodeJSON(wire.Data, &e.Data); err != nil {
			return nil, fmt.Errorf("read event %s: data: %w", e.ID, err)
		}
		if wire.SpecVersion != "1.0" || e.ID == "" || e.GTID == "" || e.Sequence == "" || e.Key == "" || len(e.Data) == 0 {
			return nil, fmt.Errorf("read event %.120q: specversion 1.0, id, gtid, sequence, partitionkey or data is missing", line)
		}
		return e, nil
	}
	var data struct {
		Row map[string]any `json:"row"`
		Old map[string]any `json:"old"`
	}
	if err := decodeJSON(wire.Data, &data); err != nil {
		return nil, fmt.Errorf("read event %.120q: data: %w", line, err)
	}
	table, kind, found := strings.Cut(wire.Type, ".")
	if !found || !strings.HasSuffix(wire.Source, "/"+table) {
		return nil, fmt.Errorf("read event %s: type %q and source %q do not name one table", wire.ID, wire.Type, wire.Source)
	}
	e.Table, e.Op, e.Row, e.Old = table, op(kind), data.Row, data.Old
	switch {
	case wire.SpecVersion != "1.0":
		return nil, fmt.Errorf("read event %s: specversion is %q", e.ID, wire.SpecVersion)
	case e.Op != created && e.Op != updated && e.Op != deleted:
		return nil, fmt.Errorf("read event %s: unexpected type %q", e.ID, wire.Type)
	case e.ID == "" || e.GTID == "" || e.Sequence == "" || e.Key == "" || e.Row == nil:
		return nil, fmt.Errorf("read event %.120q: id, gtid, sequence, partitionkey or data.row is missing", line)
	}
	return e, nil
}

// decodeJSON decodes one JSON value and nothing after it, keeping numbers as written.
func decodeJSON(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}
