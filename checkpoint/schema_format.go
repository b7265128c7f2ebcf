package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/binlogd/binlogd/canal"
)

// A schema history is lines of JSON, which people can read. The first names the format, each other one holds an entry
// and, before it, the checksum (CRC-32C) of the entry's bytes:
//
//	{"format":"binlogd-schema-history","version":1}
//	{"sum":"9a8b7c6d","entry":{"version":1,"database":"shop","table":"orders",…}}
//
// The format is independent of Go's names: canal.SchemaEntry may change without it.
const (
	schemaFormat        = "binlogd-schema-history"
	schemaFormatVersion = 1
	sumPrefix           = `{"sum":"`
	entryPrefix         = `","entry":`
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type savedSchema struct {
	Version    uint64        `json:"version"`
	Replaces   uint64        `json:"replaces,omitempty"`
	Database   string        `json:"database"`
	Table      string        `json:"table,omitempty"`
	Charset    string        `json:"charset,omitempty"`
	Columns    []savedColumn `json:"columns,omitempty"`
	PrimaryKey []string      `json:"primary_key,omitempty"`
	Unique     []savedKey    `json:"unique,omitempty"`
	// UniqueKnown tells no unique keys from a history that was written before they were kept.
	UniqueKnown bool           `json:"unique_known,omitempty"`
	RowEnd      string         `json:"row_end,omitempty"`
	Unknown     string         `json:"unknown,omitempty"`
	Origin      string         `json:"origin"`
	Flavor      string         `json:"flavor,omitempty"` // of the GTIDs
	Start       *savedPosition `json:"start,omitempty"`
	GTID        string         `json:"gtid,omitempty"`
	File        string         `json:"file,omitempty"`
	Offset      uint64         `json:"offset,omitempty"`
	Until       *savedPosition `json:"until,omitempty"`
	Statement   string         `json:"statement,omitempty"`
}

type savedColumn struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Charset   string `json:"charset,omitempty"`
	Invisible bool   `json:"invisible,omitempty"`
	NotNull   bool   `json:"not_null,omitempty"`
	Virtual   bool   `json:"virtual,omitempty"`
}

type savedKey struct {
	Name  string         `json:"name"`
	Parts []savedKeyPart `json:"parts"`
	Hash  bool           `json:"hash,omitempty"`
	Made  bool           `json:"made,omitempty"` // the name, by the server
}

type savedKeyPart struct {
	Column string `json:"column,omitempty"`
	Prefix int    `json:"prefix,omitempty"`
}

// writeSchemas writes a line for each entry, after the header where the history begins.
func writeSchemas(w io.Writer, entries []canal.SchemaEntry, begin bool) error {
	var b []byte
	if begin {
		b = fmt.Appendf(b, "{\"format\":%q,\"version\":%d}\n", schemaFormat, schemaFormatVersion)
	}
	for i := range entries {
		entry, err := json.Marshal(toSavedSchema(&entries[i]))
		if err != nil {
			return fmt.Errorf("encode schema of %s.%s: %w", entries[i].Database, entries[i].Table, err)
		}
		b = fmt.Appendf(b, "%s%08x%s%s}\n", sumPrefix, crc32.Checksum(entry, castagnoli), entryPrefix, entry)
	}
	_, err := w.Write(b)
	return err
}

func checkSchemaHeader(line []byte, place string) error {
	var header struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &header); err != nil || header.Format != schemaFormat || header.Version < 1 {
		return &SchemaError{Place: place, Detail: "its first line is not that of a schema history"}
	}
	if header.Version > schemaFormatVersion {
		return &NewerVersionError{Place: place, Version: header.Version}
	}
	return nil
}

func decodeSchemaLine(line []byte) (canal.SchemaEntry, error) {
	text := strings.TrimSuffix(string(line), "}\n")
	sum, entry, found := strings.Cut(strings.TrimPrefix(text, sumPrefix), entryPrefix)
	want, err := strconv.ParseUint(sum, 16, 32)
	if !found || err != nil || !strings.HasPrefix(text, sumPrefix) {
		return canal.SchemaEntry{}, errors.New("it is no entry")
	}
	if have := crc32.Checksum([]byte(entry), castagnoli); uint64(have) != want {
		return canal.SchemaEntry{}, fmt.Errorf("its content does not match its checksum (%08x, computed %08x)", want, have)
	}
	var saved savedSchema
	if err := unmarshalStrict([]byte(entry), &saved); err != nil {
		return canal.SchemaEntry{}, err
	}
	return fromSavedSchema(&saved)
}

func toSavedSchema(e *canal.SchemaEntry) *savedSchema {
	s := &savedSchema{
		Version: e.Version, Replaces: e.Replaces, Database: e.Database, Table: e.Table, Charset: e.Charset,
		Unknown: e.Unknown, Origin: string(e.Origin), GTID: e.GTID.String(), File: e.File, Offset: e.Offset, Statement: e.Statement,
	}
	if e.Schema != nil {
		s.Charset, s.PrimaryKey, s.RowEnd = e.Schema.Charset, e.Schema.PrimaryKey, e.Schema.RowEnd
		for _, c := range e.Schema.Columns {
			s.Columns = append(s.Columns, savedColumn(c))
		}
		s.UniqueKnown = e.Schema.UniqueKnown
		for _, key := range e.Schema.Unique {
			saved := savedKey{Name: key.Name, Hash: key.Hash, Made: key.Made}
			for _, part := range key.Parts {
				saved.Parts = append(saved.Parts, savedKeyPart(part))
			}
			s.Unique = append(s.Unique, saved)
		}
	}
	if !e.GTID.IsZero() {
		s.Flavor = e.GTID.Flavor.String()
	}
	s.Start, s.Until = s.position(e.Start), s.position(e.Until)
	return s
}

func (s *savedSchema) position(p *canal.Position) *savedPosition {
	if p == nil {
		return nil
	}
	if p.GTIDs != nil {
		s.Flavor = p.GTIDs.Flavor().String()
	}
	saved := toSavedPosition(*p)
	return &saved
}

func fromSavedSchema(s *savedSchema) (canal.SchemaEntry, error) {
	e := canal.SchemaEntry{
		Version: s.Version, Replaces: s.Replaces, Database: s.Database, Table: s.Table,
		Unknown: s.Unknown, Origin: canal.SchemaOrigin(s.Origin), File: s.File, Offset: s.Offset, Statement: s.Statement,
	}
	if s.Table == "" {
		e.Charset = s.Charset
	}
	if len(s.Columns) > 0 {
		e.Schema = &canal.Schema{Charset: s.Charset, PrimaryKey: s.PrimaryKey, RowEnd: s.RowEnd, Columns: make([]canal.SchemaColumn, len(s.Columns))}
		for i, c := range s.Columns {
			e.Schema.Columns[i] = canal.SchemaColumn(c)
		}
		e.Schema.UniqueKnown = s.UniqueKnown
		for _, saved := range s.Unique {
			key := canal.UniqueKey{Name: saved.Name, Hash: saved.Hash, Made: saved.Made}
			for _, part := range saved.Parts {
				key.Parts = append(key.Parts, canal.KeyPart(part))
			}
			e.Schema.Unique = append(e.Schema.Unique, key)
		}
	}
	var flavor canal.Flavor
	var err error
	if s.Flavor != "" {
		if flavor, err = parseFlavor(s.Flavor); err != nil {
			return e, err
		}
	}
	if e.GTID, err = parseGTID(flavor, s.GTID); err != nil {
		return e, err
	}
	if e.Start, err = optionalPosition(flavor, s.Start); err != nil {
		return e, err
	}
	e.Until, err = optionalPosition(flavor, s.Until)
	return e, err
}

func optionalPosition(flavor canal.Flavor, s *savedPosition) (*canal.Position, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	p, err := fromSavedPosition(flavor, *s)
	return &p, err
}
