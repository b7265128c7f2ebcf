package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/binlogd/binlogd/canal"
)

// An exported checkpoint is one JSON object with all that a store keeps of a pipeline:
//
//	{
//	  "format": "binlogd-export",
//	  "version": 1,
//	  "name": "shop",
//	  "exported_at": "…",
//	  "exported_from": "mysql://…",
//	  "checkpoint": {…},   as every store keeps it, with its checksum
//	  "history": [{…}],    oldest first, as blocks hold it (history_pack.go)
//	  "schemas": [{…}]     the schema history (schema_format.go)
//	}
const (
	exportFormat  = "binlogd-export"
	exportVersion = 1
)

// Exported is a checkpoint outside of any store.
type Exported struct {
	Name    string
	At      time.Time
	From    string // the place of the store that it was in
	Record  *Record
	History []Entry // oldest first
	Schemas []canal.SchemaEntry
	entry   *Entry // beside the record
}

type savedExport struct {
	Format     string            `json:"format"`
	Version    int               `json:"version"`
	Name       string            `json:"name"`
	At         time.Time         `json:"exported_at"`
	From       string            `json:"exported_from"`
	Checkpoint json.RawMessage   `json:"checkpoint"`
	History    []json.RawMessage `json:"history"`
	Schemas    []*savedSchema    `json:"schemas"`
}

// Export reads all that a store keeps, also while another process holds it. With a
// *HistoryError it exports what can be read.
func Export(ctx context.Context, from Reader) (*Exported, error) {
	// The schemas last: they may be newer than the record, and never older.
	record, err := from.Load(ctx)
	if err != nil {
		return nil, err
	}
	history, damage := from.History(ctx)
	if _, ok := errors.AsType[*HistoryError](damage); damage != nil && !ok {
		return nil, damage
	}
	slices.Reverse(history)
	// What was saved since the record was read is not part of it.
	last := slices.IndexFunc(history, func(e Entry) bool { return e.Record.WrittenAt.After(record.WrittenAt) })
	if last >= 0 {
		history = history[:last]
	}
	schemas, err := from.SchemaEntries(ctx)
	if err != nil {
		return nil, err
	}
	e := &Exported{Name: record.Name, At: time.Now().UTC(), From: from.Place(), Record: record, History: history, Schemas: schemas}
	if n := len(history); n > 0 {
		e.entry = &history[n-1]
	}
	return e, damage
}

// Encode returns the JSON object.
func (e *Exported) Encode() ([]byte, error) {
	record, err := encode(e.Record, e.entry)
	if err != nil {
		return nil, err
	}
	s := savedExport{Format: exportFormat, Version: exportVersion, Name: e.Name, At: e.At, From: e.From, Checkpoint: record, History: []json.RawMessage{}, Schemas: []*savedSchema{}}
	if len(e.History) > 0 {
		lines, err := pack(e.History, nil)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(lines) {
			s.History = append(s.History, bytes.TrimSpace(line))
		}
	}
	for i := range e.Schemas {
		s.Schemas = append(s.Schemas, toSavedSchema(&e.Schemas[i]))
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(&s); err != nil {
		return nil, fmt.Errorf("encode the export: %w", err)
	}
	return b.Bytes(), nil
}

// DecodeExport reads what Encode wrote. place tells an operator where it was found. The error is a
// *CorruptError or a *NewerVersionError.
func DecodeExport(data []byte, place string) (*Exported, error) {
	corrupt := func(format string, args ...any) (*Exported, error) {
		return nil, &CorruptError{Place: place, Detail: fmt.Sprintf(format, args...)}
	}
	var s savedExport
	if err := json.Unmarshal(data, &s); err != nil {
		return corrupt("it is not whole JSON (%v)", err)
	}
	if s.Format != exportFormat {
		return corrupt("it is no export of binlogd: its format is %q instead of %q", s.Format, exportFormat)
	}
	if s.Version > exportVersion {
		return nil, &NewerVersionError{Place: place, Version: s.Version}
	}
	// The checksum is over the record as it was indented.
	indented, err := reindent(s.Checkpoint)
	if err != nil {
		return corrupt("its checkpoint: %v", err)
	}
	record, entry, err := decode(indented, place)
	if err != nil {
		return nil, err
	}
	e := &Exported{Name: s.Name, At: s.At, From: s.From, Record: record, entry: entry}
	if len(s.History) > 0 {
		var lines []byte
		for _, line := range s.History {
			lines = append(append(lines, line...), '\n')
		}
		if e.History, err = unpack(lines, nil); err != nil {
			return corrupt("its history: %v", err)
		}
	}
	for _, saved := range s.Schemas {
		schema, err := fromSavedSchema(saved)
		if err != nil {
			return corrupt("its schema history: %v", err)
		}
		e.Schemas = append(e.Schemas, schema)
	}
	if n := len(e.Schemas); record.SchemaVersion > 0 && (n == 0 || e.Schemas[n-1].Version < record.SchemaVersion) {
		return corrupt("its schema history ends before entry %d, which its checkpoint needs", record.SchemaVersion)
	}
	return e, nil
}

// reindent puts an envelope into the shape that its checksum was made of: JSON inside JSON
// loses its line breaks.
func reindent(envelope []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, envelope, "", "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// importer is a store that takes a whole export at once.
type importer interface {
	adopt(ctx context.Context, e *Exported, m Move) (Entry, error)
}

// Import makes an export the content of a store, in place of what is there, with an entry of its
// own in the history.
func Import(ctx context.Context, to Store, e *Exported, m Move) (Entry, error) {
	i, ok := to.(importer)
	if !ok {
		return Entry{}, fmt.Errorf("a checkpoint cannot be imported into %s", to.Place())
	}
	return i.adopt(ctx, e, m)
}

// adoptedJournal is the history of an export, before anything is added.
func adoptedJournal(e *Exported) (*journal, error) {
	j := &journal{}
	for some := range slices.Chunk(e.History, blockEntries) {
		b, err := packBlock(some, 0)
		if err != nil {
			return nil, err
		}
		j.blocks, j.last = append(j.blocks, b), &some[len(some)-1]
	}
	if e.entry != nil && e.entry.number() >= j.next() {
		j.last = e.entry
	}
	return j, nil
}

// adopt writes everything at once.
func (r *remote) adopt(ctx context.Context, e *Exported, m Move) (Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return Entry{}, r.lost
	}
	before, _, err := r.load(ctx)
	if _, away := errors.AsType[*AccessError](err); away {
		return Entry{}, err
	}
	r.journal = nil
	j, err := adoptedJournal(e)
	if err != nil {
		return Entry{}, err
	}
	record, entry := r.author.entry(j.next(), before, e.Record, &m)
	data, err := encode(record, entry)
	if err != nil {
		return Entry{}, err
	}
	if _, err := j.append(entry); err != nil {
		return Entry{}, err
	}
	schemas, err := packSchemas(e.Schemas)
	if err != nil {
		return Entry{}, err
	}
	b := batch{record: data, history: change{Put: j.parts()}, schema: change{Put: schemas}}
	for s, c := range map[shelf]*change{historyShelf: &b.history, schemaShelf: &b.schema} {
		old, err := r.backend.parts(ctx, s)
		if err != nil {
			return Entry{}, r.access("read", err)
		}
		for _, p := range old {
			if !slices.ContainsFunc(c.Put, func(q part) bool { return q.Key == p.Key }) {
				c.Drop = append(c.Drop, p.Key)
			}
		}
	}
	if err := r.commit(ctx, b); err != nil {
		return Entry{}, err
	}
	r.journal, r.before, r.author.saved = j, &entry.Record, true
	return *entry, nil
}

// adopt takes the schema history away first and puts the new one down last, so that a crash between
// leaves none rather than one that belongs to another record.
func (f *File) adopt(_ context.Context, e *Exported, m Move) (Entry, error) {
	before, err := ReadFile(f.path)
	if _, away := errors.AsType[*AccessError](err); away {
		return Entry{}, err
	}
	j, err := adoptedJournal(e)
	if err != nil {
		return Entry{}, err
	}
	record, entry := f.author.entry(j.next(), before, e.Record, &m)
	data, err := encode(record, entry)
	if err != nil {
		return Entry{}, err
	}
	if _, err := j.append(entry); err != nil {
		return Entry{}, err
	}
	schemas := &SchemaFile{path: f.path + schemaSuffix}
	if err := os.Remove(schemas.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, schemas.access("write", err)
	}
	f.journal, f.pending = nil, nil
	if err := f.replace(data); err != nil {
		return Entry{}, &AccessError{Op: "save", Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
	}
	if err := f.log.rewrite(j.parts()); err != nil {
		return Entry{}, err
	}
	if err := schemas.rewrite(e.Schemas); err != nil {
		return Entry{}, schemas.access("write", err)
	}
	f.journal, f.before, f.author.saved = j, &entry.Record, true
	return *entry, nil
}
