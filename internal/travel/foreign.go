package travel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// Foreign is a place as another change-data tool keeps it.
type Foreign struct {
	Owner  string // the connector, client or destination that it belongs to
	GTIDs  string // the set that is done; empty where the tool counts by file and offset
	File   string
	Offset uint64
}

// ParseDebezium reads the offset file of Debezium's MySQL or MariaDB connector: a Java object stream of a map whose keys and values are
// JSON (org.apache.kafka.connect.storage.FileOffsetBackingStore), or such JSON alone. What it holds of an unfinished transaction
// (event, row) is passed over: that transaction comes again from its beginning.
func ParseDebezium(data []byte) ([]Foreign, error) {
	var found []Foreign
	owner := ""
	for i := 0; i < len(data); i++ {
		if data[i] != '[' && data[i] != '{' {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(data[i:]))
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			continue // a byte of the stream that looks like the beginning of JSON
		}
		var key []json.RawMessage
		var value struct {
			File  string  `json:"file"`
			Pos   *uint64 `json:"pos"`
			GTIDs string  `json:"gtids"`
		}
		switch {
		case json.Unmarshal(raw, &key) == nil && len(key) == 2:
			owner = strings.Trim(string(key[0]), `"`)
		case json.Unmarshal(raw, &value) == nil && value.Pos != nil && value.File != "":
			found = append(found, Foreign{Owner: owner, GTIDs: value.GTIDs, File: value.File, Offset: *value.Pos})
		default:
			continue
		}
		i += int(decoder.InputOffset()) - 1
	}
	if len(found) == 0 {
		return nil, errors.New("it holds no offset of a MySQL or MariaDB connector (an object with file and pos)")
	}
	return found, nil
}

// ParseCanal reads the meta.dat of Alibaba's Canal. Its position is that of the last event that was taken, perhaps inside a transaction,
// and its GTID set holds that transaction already: so file and offset count.
func ParseCanal(data []byte) ([]Foreign, error) {
	var meta struct {
		Destination string `json:"destination"`
		Clients     []struct {
			Identity struct {
				ID          int    `json:"clientId"`
				Destination string `json:"destination"`
			} `json:"clientIdentity"`
			Cursor struct {
				Position struct {
					File   string `json:"journalName"`
					Offset uint64 `json:"position"`
				} `json:"postion"` //nolint:misspell // as Canal spells it
			} `json:"cursor"`
		} `json:"clientDatas"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, fmt.Errorf("it is no meta.dat of Canal: %w", err)
	}
	var found []Foreign
	for _, c := range meta.Clients {
		if p := c.Cursor.Position; p.File != "" {
			found = append(found, Foreign{Owner: fmt.Sprintf("%s/%d", c.Identity.Destination, c.Identity.ID), File: p.File, Offset: p.Offset})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it holds no position of a client (clientDatas with a journalName)")
	}
	return found, nil
}

// Choose takes the place of one owner; owner may be empty where there is only one.
func Choose(places []Foreign, owner string) (Foreign, error) {
	var names []string
	for _, p := range places {
		if p.Owner == owner || owner == "" && len(places) == 1 {
			return p, nil
		}
		if !slices.Contains(names, p.Owner) {
			names = append(names, p.Owner)
		}
	}
	if owner == "" {
		return Foreign{}, fmt.Errorf("it holds several places: name one with --owner: %s", strings.Join(names, ", "))
	}
	return Foreign{}, fmt.Errorf("it holds no place of %q: name one of %s", owner, strings.Join(names, ", "))
}

// TakeOver finds the first checkpoint of a pipeline that goes on where another tool stopped: nothing in between is left out, and of a
// transaction in whose middle it stopped all comes again.
func (s *Setup) TakeOver(ctx context.Context, from Foreign) (*checkpoint.Record, *canal.Spot, error) {
	b, err := s.openBinlogs(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = b.Close() }() // it only reads
	record := &checkpoint.Record{Name: s.Name, Server: b.Server()}
	if from.GTIDs != "" && b.Numbered() {
		set, err := canal.ParseGTIDSet(b.Server().Flavor, from.GTIDs)
		if err != nil {
			return nil, nil, &canal.ConfigError{Err: fmt.Errorf("read the GTID set of the place: %w", err), Remedy: "check that source.address is the server that the other tool reads"}
		}
		f := &finder{binlogs: b, before: &checkpoint.Record{Position: canal.Position{GTIDs: set}}}
		point, err := f.toSet(ctx, from.GTIDs)
		if err != nil {
			return nil, nil, err
		}
		record.Position, record.Held, record.Published = point.record.Position, point.record.Held, point.record.Published
		return record, point.spot, nil
	}
	spot, err := b.AtOrBefore(ctx, from.File, from.Offset)
	if err != nil {
		return nil, nil, err
	}
	record.Position, record.Held, record.Published = spot.Resume.Position, spot.Resume.Held, spot.Resume.Published
	return record, spot, nil
}
