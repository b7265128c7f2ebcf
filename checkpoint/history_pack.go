package checkpoint

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/binlogd/binlogd/canal"
)

// A part of a history is lines of JSON, one for each entry. A line tells an entry whole, or
// by what differs from the entry before it:
//
//	{"i":1041,"t":1795990000123456789,"a":"start","b":{"pid":…},"f":{…the record…}}
//	{"i":1042,"t":1795990000623456789,"d":{"g":"3e11fa47-…:24-31","o":4711,"c":[8,16,4120]}}
//
// Of a block the first line is its head, and the rest is compressed (gzip, RFC 1952):
//
//	{"block":1,"n":256,"last_id":1296,"first":…,"last":…,"level":0}
type packedEntry struct {
	ID     uint64       `json:"i"`
	At     int64        `json:"t"`           // Unix time in nanoseconds
	Action Action       `json:"a,omitempty"` // save where it is left out
	Manual bool         `json:"m,omitempty"`
	By     *Holder      `json:"b,omitempty"` // the entry's before where it is left out
	Reason string       `json:"r,omitempty"`
	Before *savedRecord `json:"w,omitempty"`
	Record *savedRecord `json:"f,omitempty"`
	Delta  *packedDelta `json:"d,omitempty"` // where Record is left out
}

// packedDelta is what most saves change. File and offset are those of the position.
type packedDelta struct {
	Added  string    `json:"g,omitempty"` // to the GTID set (MySQL)
	GTIDs  string    `json:"s,omitempty"` // the whole set (MariaDB)
	File   string    `json:"n,omitempty"`
	Offset uint64    `json:"o"`
	Counts [3]uint64 `json:"c"` // transactions, events and bytes more
}

// blockHead is what is to be known of a block without unpacking it.
type blockHead struct {
	Format  int       `json:"block"`
	Entries int       `json:"n"`
	LastID  uint64    `json:"last_id"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	// Level is 0 with all entries, 1 with those of each minute, 2 with those of each hour.
	Level int `json:"level"`
}

const (
	blockFormat = 1
	blockPrefix = `{"block":`
)

func isBlock(data []byte) bool { return bytes.HasPrefix(data, []byte(blockPrefix)) }

// pack writes entries, oldest first, as lines. before is the entry before them, if they
// may be told by it.
func pack(entries []Entry, before *Entry) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	for i := range entries {
		e := &entries[i]
		p := packedEntry{ID: e.number(), At: e.At.UnixNano(), Action: e.Action, Manual: e.Manual, Reason: e.Reason}
		if p.Action == ActionSave {
			p.Action = ""
		}
		if before == nil || before.By != e.By {
			p.By = &e.By
		}
		if e.Before != nil {
			if err := checkFlavor(e.Before); err != nil {
				return nil, fmt.Errorf("pack history: %w", err)
			}
			p.Before = toSaved(e.Before)
		}
		if p.Delta = difference(before, e); p.Delta == nil {
			if err := checkFlavor(&e.Record); err != nil {
				return nil, fmt.Errorf("pack history: %w", err)
			}
			p.Record = toSaved(&e.Record)
		}
		if err := to.Encode(p); err != nil {
			return nil, fmt.Errorf("pack history: %w", err)
		}
		before = e
	}
	return b.Bytes(), nil
}

// difference is nil where e is to be told whole.
func difference(before, e *Entry) *packedDelta {
	if before == nil || e.Before != nil {
		return nil
	}
	a, b := &before.Record, &e.Record
	plain := func(r *Record) bool { return len(r.Held) == 0 && r.Published == nil && r.Partial == nil }
	same := plain(a) && plain(b) && a.Name == b.Name && a.Server == b.Server && a.SchemaVersion == b.SchemaVersion && a.WrittenBy == b.WrittenBy
	if !same || !b.WrittenAt.Equal(e.At) || (a.Position.GTIDs == nil) != (b.Position.GTIDs == nil) {
		return nil
	}
	if b.Counters.Transactions < a.Counters.Transactions || b.Counters.Events < a.Counters.Events || b.Counters.Bytes < a.Counters.Bytes {
		return nil
	}
	d := &packedDelta{Offset: b.Position.Offset, Counts: [3]uint64{
		b.Counters.Transactions - a.Counters.Transactions, b.Counters.Events - a.Counters.Events, b.Counters.Bytes - a.Counters.Bytes,
	}}
	if b.Position.File != a.Position.File {
		if d.File = b.Position.File; d.File == "" {
			return nil
		}
	}
	switch have, had := b.Position.GTIDs, a.Position.GTIDs; {
	case have == nil:
	case have.Flavor() != had.Flavor():
		return nil
	case have.Flavor() == canal.MariaDB:
		if d.GTIDs = have.String(); d.GTIDs == "" {
			return nil
		}
	case !have.ContainsSet(had):
		return nil
	default:
		d.Added = have.Subtract(had).String()
	}
	return d
}

// unpack reads a part, oldest entry first. before is the entry before it.
func unpack(data []byte, before *Entry) ([]Entry, error) {
	from := io.Reader(bytes.NewReader(data))
	if isBlock(data) {
		_, packed, err := readHead(data)
		if err != nil {
			return nil, err
		}
		if from, err = gzip.NewReader(bytes.NewReader(packed)); err != nil {
			return nil, err
		}
	}
	var entries []Entry
	if before != nil && isBlock(data) {
		before = nil
	}
	for lines := json.NewDecoder(from); ; {
		var p packedEntry
		switch err := lines.Decode(&p); {
		case errors.Is(err, io.EOF) && len(entries) > 0:
			return entries, nil
		case err != nil:
			return nil, err
		}
		if len(entries) == 0 && before != nil && before.number()+1 != p.ID {
			before = nil // one between them is lost
		}
		e, err := p.unpack(before)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", p.ID, err)
		}
		entries = append(entries, e)
		before = &e
	}
}

// unpackAll reads parts of which each is told by the one before it.
func unpackAll(parts []part) ([]Entry, error) {
	var all []Entry
	var before *Entry
	for _, p := range parts {
		some, err := unpack(p.Data, before)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		before = &all[len(all)-1]
	}
	return all, nil
}

func (p *packedEntry) unpack(before *Entry) (Entry, error) {
	e := Entry{ID: entryID(p.ID), At: time.Unix(0, p.At).UTC(), Action: p.Action, Manual: p.Manual, Reason: p.Reason}
	if e.Action == "" {
		e.Action = ActionSave
	}
	switch {
	case p.By != nil:
		e.By = *p.By
	case before != nil:
		e.By = before.By
	}
	if p.Before != nil {
		r, err := fromSaved(p.Before)
		if err != nil {
			return e, err
		}
		e.Before, e.From = r, &r.Position
	}
	switch {
	case p.Record != nil:
		r, err := fromSaved(p.Record)
		if err != nil {
			return e, err
		}
		e.Record = *r
	case p.Delta == nil || before == nil:
		return e, errors.New("the entry that it is told by is missing")
	default:
		e.Record = before.Record
		e.Record.WrittenAt = e.At
		return e, p.Delta.apply(&e.Record)
	}
	return e, nil
}

// apply changes r, which shares with the entry before what is not changed here.
func (d *packedDelta) apply(r *Record) error {
	if d.File != "" {
		r.Position.File = d.File
	}
	r.Position.Offset = d.Offset
	r.Counters.Transactions += d.Counts[0]
	r.Counters.Events += d.Counts[1]
	r.Counters.Bytes += d.Counts[2]
	if d.GTIDs != "" {
		set, err := canal.ParseGTIDSet(r.Server.Flavor, d.GTIDs)
		r.Position.GTIDs = set
		return err
	}
	if d.Added != "" {
		added, err := canal.ParseGTIDSet(r.Server.Flavor, d.Added)
		if err != nil {
			return err
		}
		if r.Position.GTIDs == nil {
			return errors.New("GTIDs are added where there were none")
		}
		r.Position.GTIDs = r.Position.GTIDs.Union(added)
	}
	return nil
}

// packBlock makes a block of entries, of which there is at least one.
func packBlock(entries []Entry, level int) (block, error) {
	first, last := &entries[0], &entries[len(entries)-1]
	h := blockHead{Format: blockFormat, Entries: len(entries), LastID: last.number(), First: first.At, Last: last.At, Level: level}
	head, err := json.Marshal(h)
	if err != nil {
		return block{}, fmt.Errorf("pack history: %w", err)
	}
	lines, err := pack(entries, nil)
	if err != nil {
		return block{}, err
	}
	b := bytes.NewBuffer(append(head, '\n'))
	to, err := gzip.NewWriterLevel(b, gzip.BestCompression)
	if err != nil {
		return block{}, err
	}
	if _, err := to.Write(lines); err != nil {
		return block{}, err
	}
	if err := to.Close(); err != nil {
		return block{}, err
	}
	return block{part: part{Key: first.number(), Data: b.Bytes()}, head: h}, nil
}

// readHead takes a block apart.
func readHead(data []byte) (head blockHead, packed []byte, err error) {
	line, packed, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return head, nil, errors.New("its head is not whole")
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return head, nil, err
	}
	if head.Format != blockFormat {
		return head, nil, fmt.Errorf("its format is %d, and this binlogd knows %d", head.Format, blockFormat)
	}
	return head, packed, nil
}
