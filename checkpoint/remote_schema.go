package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/binlogd/binlogd/canal"
)

// Schema history on a server: parts of gzipped lines (schema_format.go, without the first
// line), each under the version of its first entry.
const (
	schemaPartBytes = 256 << 10 // of lines in a part; a single larger entry has one of its own
	// manySchemaParts is how many parts beyond those that the size asks for are put together.
	manySchemaParts = 64
)

// SchemaEntries implements Reader.
func (v *view) SchemaEntries(ctx context.Context) ([]canal.SchemaEntry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries, _, err := v.readSchemas(ctx)
	return entries, err
}

// readSchemas gives all entries, and the keys of the parts that they are in.
func (v *view) readSchemas(ctx context.Context) (entries []canal.SchemaEntry, keys []uint64, err error) {
	parts, err := v.backend.parts(ctx, schemaShelf)
	if err != nil {
		return nil, nil, v.access("read", err)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Key, b.Key) })
	for _, p := range parts {
		some, err := unpackSchemas(p.Data)
		if err != nil {
			return nil, nil, &SchemaError{Place: v.Place(), Detail: fmt.Sprintf("what begins with entry %d: %v", p.Key, err)}
		}
		entries, keys = append(entries, some...), append(keys, p.Key)
	}
	for i := 1; i < len(entries); i++ {
		if entries[i].Version <= entries[i-1].Version {
			return nil, nil, &SchemaError{Place: v.Place(), Detail: fmt.Sprintf("entry %d comes after entry %d", entries[i].Version, entries[i-1].Version)}
		}
	}
	return entries, keys, nil
}

// Schemas implements Store.
func (r *remote) Schemas() canal.SchemaHistory { return (*remoteSchemas)(r) }

// remoteSchemas is the schema history beside a checkpoint on a server.
type remoteSchemas remote

// Load implements canal.SchemaHistory. A history that has grown long, or into many parts, is
// written anew.
func (s *remoteSchemas) Load(ctx context.Context, need uint64) ([]canal.SchemaEntry, error) {
	r := (*remote)(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, keys, err := r.readSchemas(ctx)
	if need == 0 { // it belongs to another checkpoint, which is gone
		if _, damaged := errors.AsType[*SchemaError](err); err != nil && !damaged {
			return nil, err
		}
		if err != nil {
			if keys, err = r.schemaKeys(ctx); err != nil {
				return nil, err
			}
		}
		if len(keys) == 0 {
			return nil, nil
		}
		return nil, r.writeSchemas(ctx, keys, nil)
	}
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if newest := entries[len(entries)-1].Version; newest < need {
		return nil, &SchemaError{Place: r.Place(), Detail: fmt.Sprintf("it ends with entry %d, and the checkpoint needs entry %d", newest, need)}
	}
	kept := compact(entries)
	packed, err := packSchemas(kept)
	if err != nil {
		return nil, err
	}
	if len(kept) < len(entries) || len(keys) > len(packed)+manySchemaParts {
		return kept, r.writeSchemas(ctx, keys, packed)
	}
	return entries, nil
}

// Append implements canal.SchemaHistory.
func (s *remoteSchemas) Append(ctx context.Context, entries []canal.SchemaEntry) error {
	r := (*remote)(s)
	packed, err := packSchemas(entries)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeSchemas(ctx, nil, packed)
}

func (r *remote) schemaKeys(ctx context.Context) ([]uint64, error) {
	parts, err := r.backend.parts(ctx, schemaShelf)
	if err != nil {
		return nil, r.access("read", err)
	}
	keys := make([]uint64, len(parts))
	for i, p := range parts {
		keys[i] = p.Key
	}
	return keys, nil
}

// writeSchemas puts parts in the place of those with keys.
func (r *remote) writeSchemas(ctx context.Context, keys []uint64, parts []part) error {
	if r.lost != nil {
		return r.lost
	}
	c := change{Put: parts}
	for _, key := range keys {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.Key == key }) {
			c.Drop = append(c.Drop, key)
		}
	}
	return r.commit(ctx, batch{schema: c})
}

// packSchemas makes parts of entries.
func packSchemas(entries []canal.SchemaEntry) ([]part, error) {
	var parts []part
	var lines bytes.Buffer
	var key uint64
	flush := func() error {
		if lines.Len() == 0 {
			return nil
		}
		var packed bytes.Buffer
		to := gzip.NewWriter(&packed)
		if _, err := to.Write(lines.Bytes()); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
		parts = append(parts, part{Key: key, Data: packed.Bytes()})
		lines.Reset()
		return nil
	}
	for i := range entries {
		if lines.Len() == 0 {
			key = entries[i].Version
		}
		if err := writeSchemas(&lines, entries[i:i+1], false); err != nil {
			return nil, err
		}
		if lines.Len() >= schemaPartBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return parts, flush()
}

func unpackSchemas(data []byte) ([]canal.SchemaEntry, error) {
	from, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var entries []canal.SchemaEntry
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entry, err := decodeSchemaLine(line)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
}
