package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/binlogd/binlogd/canal"
)

// schemaSuffix is behind the checkpoint's path.
const schemaSuffix = ".schema"

// SchemaFile keeps the schema history of a checkpoint in a file beside it, a line for each entry. Whoever holds the
// checkpoint's lock may write it. An entry is durable when Append returns; what a crash leaves of a last line is cut off.
type SchemaFile struct {
	path string

	mu    sync.Mutex
	ready bool // the file ends with a whole line
}

var _ canal.SchemaHistory = (*SchemaFile)(nil)

// Schemas implements Store. It is a *SchemaFile.
func (f *File) Schemas() canal.SchemaHistory { return &SchemaFile{path: f.path + schemaSuffix} }

// ReadSchemas reads the schema history beside the checkpoint at path, also while a daemon writes it. It is empty where there
// is none.
func ReadSchemas(path string) ([]canal.SchemaEntry, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	entries, _, err := (&SchemaFile{path: path + schemaSuffix}).read()
	return entries, err
}

// Load implements canal.SchemaHistory. A history that has grown long is made shorter.
func (f *SchemaFile) Load(_ context.Context, need uint64) ([]canal.SchemaEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if need == 0 { // it belongs to another checkpoint, which is gone
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, f.access("write", err)
		}
		f.ready = true
		return nil, nil
	}
	entries, whole, err := f.read()
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 && entries[len(entries)-1].Version < need {
		return nil, &SchemaError{Place: f.path, Detail: fmt.Sprintf("it ends with entry %d, and the checkpoint needs entry %d", entries[len(entries)-1].Version, need)}
	}
	if kept := compact(entries); len(kept) < len(entries) {
		if err := f.rewrite(kept); err != nil {
			return nil, f.access("write", err)
		}
		entries = kept
	} else if err := f.cut(whole); err != nil {
		return nil, f.access("write", err)
	}
	f.ready = true
	return entries, nil
}

// Append implements canal.SchemaHistory.
func (f *SchemaFile) Append(_ context.Context, entries []canal.SchemaEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		_, whole, err := f.read()
		if err != nil {
			return err
		}
		if err := f.cut(whole); err != nil {
			return f.access("write", err)
		}
	}
	f.ready = false // until all of it is there
	if err := f.append(entries); err != nil {
		return f.access("write", err)
	}
	f.ready = true
	return nil
}

func (f *SchemaFile) append(entries []canal.SchemaEntry) (err error) {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := writeSchemas(file, entries, info.Size() == 0); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if info.Size() == 0 {
		return syncDirectory(filepath.Dir(f.path))
	}
	return nil
}

// read gives all entries, and how many bytes the whole lines take.
func (f *SchemaFile) read() (entries []canal.SchemaEntry, whole int64, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, f.access("read", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end was never confirmed
			return entries, whole, nil
		}
		if err != nil {
			return nil, 0, f.access("read", err)
		}
		if number == 1 {
			if err := checkSchemaHeader(line, f.path); err != nil {
				return nil, 0, err
			}
		} else {
			entry, err := decodeSchemaLine(line)
			if err != nil {
				return nil, 0, &SchemaError{Place: f.path, Detail: fmt.Sprintf("line %d: %v", number, err)}
			}
			if n := len(entries); n > 0 && entry.Version <= entries[n-1].Version {
				return nil, 0, &SchemaError{Place: f.path, Detail: fmt.Sprintf("line %d: entry %d comes after entry %d", number, entry.Version, entries[n-1].Version)}
			}
			entries = append(entries, entry)
		}
		whole += int64(len(line))
	}
}

// cut takes away what stands behind the whole lines.
func (f *SchemaFile) cut(whole int64) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == whole {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Truncate(f.path, whole)
}

// rewrite makes entries the whole history, at once and durably.
func (f *SchemaFile) rewrite(entries []canal.SchemaEntry) error {
	var b bytes.Buffer
	if err := writeSchemas(&b, entries, true); err != nil {
		return err
	}
	return (&File{path: f.path}).replace(b.Bytes())
}

func (f *SchemaFile) access(op string, err error) error {
	return &AccessError{Op: op, Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
}

// Sizes, in entries, of a history: above the first it is made shorter, so that it goes back by the second.
const (
	longHistory  = 20_000
	shortHistory = 10_000
)

// compact leaves out entries that are far back and were followed by others of their table. What is in force stays whatever its
// age.
func compact(entries []canal.SchemaEntry) []canal.SchemaEntry {
	type name struct{ database, table string }
	last := make(map[name]uint64, len(entries))
	settled := canal.Settle(entries)
	for _, e := range settled {
		last[name{e.Database, e.Table}] = e.Version
	}
	superseded := len(entries) - len(last)
	if superseded < longHistory {
		return entries
	}
	newest := entries[len(entries)-1].Version
	kept := make([]canal.SchemaEntry, 0, len(last)+shortHistory)
	for _, e := range entries {
		gone := e.Schema == nil && e.Unknown == "" && e.Table != ""
		if e.Version+shortHistory > newest || last[name{e.Database, e.Table}] == e.Version && !gone {
			kept = append(kept, e)
		}
	}
	return kept
}

// SchemaError says that the schema history is there and damaged.
type SchemaError struct {
	Place  string
	Detail string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("schema history %s is damaged: %s; restore a copy of it, or move it away: the schemas are then read from the server anew, "+
		"and rows that were written before a later ALTER TABLE end the run unless the server sends full metadata", e.Place, e.Detail)
}
