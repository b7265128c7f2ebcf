package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/binlogd/binlogd/canal"
)

// A saved checkpoint is one JSON object, which people can read:
//
//	{
//	  "format": "binlogd-checkpoint",
//	  "version": 1,
//	  "checksum": "sha256:…",
//	  "record": {…},
//	  "entry": {…}
//	}
//
// The checksum is over the bytes of the record's value, from brace to brace, and those of
// the entry's behind it. The entry is the one of the history that was made when the record
// was saved, without the record: so one write does both, and whoever writes next brings the
// entry into the history where that was not done. It is missing in records that no history
// belongs to. The format is independent of Go's names: Record may change without it.
const (
	formatName     = "binlogd-checkpoint"
	formatVersion  = 1
	checksumPrefix = "sha256:"
)

type envelope struct {
	Format   string          `json:"format"`
	Version  int             `json:"version"`
	Checksum string          `json:"checksum"`
	Record   json.RawMessage `json:"record"`
	Entry    json.RawMessage `json:"entry,omitempty"`
}

type savedRecord struct {
	Name          string          `json:"name"`
	Server        savedServer     `json:"server"`
	Position      savedPosition   `json:"position"`
	Held          []savedPrepared `json:"held,omitempty"`
	Published     *savedPosition  `json:"published,omitempty"`
	Partial       *savedPartial   `json:"partial,omitempty"`
	SchemaVersion uint64          `json:"schema_version"`
	Counters      savedCounters   `json:"counters"`
	WrittenAt     time.Time       `json:"written_at"`
	WrittenBy     string          `json:"written_by"`
}

type savedEntry struct {
	ID     uint64       `json:"id"`
	At     time.Time    `json:"at"`
	Action Action       `json:"action"`
	Manual bool         `json:"manual,omitempty"`
	By     Holder       `json:"by"`
	Reason string       `json:"reason,omitempty"`
	Before *savedRecord `json:"before,omitempty"`
}

type savedServer struct {
	Flavor  string `json:"flavor"`
	UUID    string `json:"uuid,omitempty"`
	ID      uint32 `json:"id"`
	Version string `json:"version"`
}

type savedPosition struct {
	GTIDs  *string `json:"gtids"` // null where the server numbers none
	File   string  `json:"file"`
	Offset uint64  `json:"offset"`
}

type savedPrepared struct {
	XID    string `json:"xid"`
	GTID   string `json:"gtid,omitempty"`
	File   string `json:"file"`
	Offset uint64 `json:"offset"`
}

type savedPartial struct {
	GTID  string `json:"gtid,omitempty"`
	File  string `json:"file"`
	Start uint64 `json:"start"`
	Place uint64 `json:"place"`
}

type savedCounters struct {
	Transactions uint64 `json:"transactions"`
	Events       uint64 `json:"events"`
	Bytes        uint64 `json:"bytes"`
}

// Encode returns r as every store keeps it. All GTIDs must be of the flavor of
// r.Server.
func Encode(r *Record) ([]byte, error) { return encode(r, nil) }

// encode is Encode with the entry of the history that r is saved with, if there is one.
func encode(r *Record, e *Entry) ([]byte, error) {
	if err := checkFlavor(r); err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	// Indentation is part of what the checksum covers, so it is written first.
	record, err := json.MarshalIndent(toSaved(r), "  ", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	var entry []byte
	if e != nil {
		if entry, err = json.MarshalIndent(toSavedEntry(e), "  ", "  "); err != nil {
			return nil, fmt.Errorf("encode checkpoint: %w", err)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"format\": %q,\n  \"version\": %d,\n  \"checksum\": %q,\n  \"record\": %s",
		formatName, formatVersion, checksum(record, entry), record)
	if e != nil {
		fmt.Fprintf(&b, ",\n  \"entry\": %s", entry)
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// Decode reads what Encode wrote. place tells an operator where it was found. The error is
// a *CorruptError or a *NewerVersionError.
func Decode(data []byte, place string) (*Record, error) {
	r, _, err := decode(data, place)
	return r, err
}

// decode is Decode with the entry of the history that belongs to the record; nil where there is none.
func decode(data []byte, place string) (*Record, *Entry, error) {
	e, err := openEnvelope(data, place)
	if err != nil {
		return nil, nil, err
	}
	corrupt := func(err error) error { return &CorruptError{Place: place, Detail: "its record: " + err.Error()} }
	var saved savedRecord
	if err := unmarshalStrict(e.Record, &saved); err != nil {
		return nil, nil, corrupt(err)
	}
	r, err := fromSaved(&saved)
	if err != nil {
		return nil, nil, corrupt(err)
	}
	if e.Entry == nil {
		return r, nil, nil
	}
	var savedEntry savedEntry
	if err := unmarshalStrict(e.Entry, &savedEntry); err != nil {
		return nil, nil, corrupt(err)
	}
	entry, err := fromSavedEntry(&savedEntry, r)
	if err != nil {
		return nil, nil, corrupt(err)
	}
	return r, entry, nil
}

// openEnvelope makes sure that data is whole and of a version that is known.
func openEnvelope(data []byte, place string) (*envelope, error) {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{Place: place, Detail: fmt.Sprintf(format, args...)}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, corrupt("it is empty")
	}
	// The version comes first: a newer one may have other fields.
	var version struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, corrupt("it is not whole JSON (%v)", err)
	}
	if version.Format != formatName {
		return nil, corrupt("it is no checkpoint of binlogd: its format is %q instead of %q", version.Format, formatName)
	}
	if version.Version > formatVersion {
		return nil, &NewerVersionError{Place: place, Version: version.Version}
	}
	if version.Version < 1 {
		return nil, corrupt("version %d does not exist", version.Version)
	}
	var e envelope
	if err := unmarshalStrict(data, &e); err != nil {
		return nil, corrupt("%v", err)
	}
	if sum := checksum(e.Record, e.Entry); sum != e.Checksum {
		return nil, corrupt("its content does not match its checksum (%s, computed %s)", e.Checksum, sum)
	}
	return &e, nil
}

func checksum(record, entry []byte) string {
	h := sha256.New()
	h.Write(record)
	h.Write(entry)
	return checksumPrefix + hex.EncodeToString(h.Sum(nil))
}

// unmarshalStrict refuses fields that it does not know: saving the record again would
// lose them.
func unmarshalStrict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the end")
	}
	return nil
}

func checkFlavor(r *Record) error {
	positions := []*canal.Position{&r.Position}
	if r.Published != nil {
		positions = append(positions, r.Published)
	}
	for _, p := range positions {
		if p.GTIDs != nil && p.GTIDs.Flavor() != r.Server.Flavor {
			return fmt.Errorf("GTID set of %s for a server of %s", p.GTIDs.Flavor(), r.Server.Flavor)
		}
	}
	gtids := make([]canal.GTID, 0, len(r.Held)+1)
	for _, h := range r.Held {
		gtids = append(gtids, h.GTID)
	}
	if r.Partial != nil {
		gtids = append(gtids, r.Partial.GTID)
	}
	for _, g := range gtids {
		if !g.IsZero() && g.Flavor != r.Server.Flavor {
			return fmt.Errorf("GTID %s of %s for a server of %s", g, g.Flavor, r.Server.Flavor)
		}
	}
	return nil
}

func toSaved(r *Record) *savedRecord {
	s := &savedRecord{
		Name: r.Name,
		Server: savedServer{
			Flavor: r.Server.Flavor.String(), UUID: r.Server.UUID, ID: r.Server.ServerID, Version: r.Server.Version,
		},
		Position:      toSavedPosition(r.Position),
		SchemaVersion: r.SchemaVersion,
		Counters:      savedCounters(r.Counters),
		WrittenAt:     r.WrittenAt.UTC(),
		WrittenBy:     r.WrittenBy,
	}
	for _, h := range r.Held {
		s.Held = append(s.Held, savedPrepared{XID: h.XID, GTID: h.GTID.String(), File: h.File, Offset: h.Offset})
	}
	if r.Published != nil {
		p := toSavedPosition(*r.Published)
		s.Published = &p
	}
	if p := r.Partial; p != nil {
		s.Partial = &savedPartial{GTID: p.GTID.String(), File: p.File, Start: p.Start, Place: p.Place}
	}
	return s
}

func toSavedEntry(e *Entry) *savedEntry {
	s := &savedEntry{ID: e.number(), At: e.At.UTC(), Action: e.Action, Manual: e.Manual, By: e.By, Reason: e.Reason}
	if e.Before != nil {
		s.Before = toSaved(e.Before)
	}
	return s
}

func fromSavedEntry(s *savedEntry, r *Record) (*Entry, error) {
	e := &Entry{ID: entryID(s.ID), At: s.At, Action: s.Action, Manual: s.Manual, By: s.By, Reason: s.Reason, Record: *r}
	if s.Before != nil {
		before, err := fromSaved(s.Before)
		if err != nil {
			return nil, err
		}
		e.Before, e.From = before, &before.Position
	}
	return e, nil
}

func toSavedPosition(p canal.Position) savedPosition {
	s := savedPosition{File: p.File, Offset: p.Offset}
	if p.GTIDs != nil {
		gtids := p.GTIDs.String()
		s.GTIDs = &gtids
	}
	return s
}

func fromSaved(s *savedRecord) (*Record, error) {
	flavor, err := parseFlavor(s.Server.Flavor)
	if err != nil {
		return nil, err
	}
	r := &Record{
		Name: s.Name,
		Server: canal.Identity{
			Flavor: flavor, UUID: s.Server.UUID, ServerID: s.Server.ID, Version: s.Server.Version,
		},
		SchemaVersion: s.SchemaVersion,
		Counters:      Counters(s.Counters),
		WrittenAt:     s.WrittenAt,
		WrittenBy:     s.WrittenBy,
	}
	if r.Position, err = fromSavedPosition(flavor, s.Position); err != nil {
		return nil, err
	}
	for _, h := range s.Held {
		g, err := parseGTID(flavor, h.GTID)
		if err != nil {
			return nil, err
		}
		r.Held = append(r.Held, canal.Prepared{XID: h.XID, GTID: g, File: h.File, Offset: h.Offset})
	}
	if s.Published != nil {
		p, err := fromSavedPosition(flavor, *s.Published)
		if err != nil {
			return nil, err
		}
		r.Published = &p
	}
	if p := s.Partial; p != nil {
		g, err := parseGTID(flavor, p.GTID)
		if err != nil {
			return nil, err
		}
		r.Partial = &Partial{GTID: g, File: p.File, Start: p.Start, Place: p.Place}
	}
	return r, nil
}

func fromSavedPosition(f canal.Flavor, s savedPosition) (canal.Position, error) {
	p := canal.Position{File: s.File, Offset: s.Offset}
	if s.GTIDs == nil {
		return p, nil
	}
	var err error
	p.GTIDs, err = canal.ParseGTIDSet(f, *s.GTIDs)
	return p, err
}

// parseGTID reads what GTID.String gave; "" is the anonymous GTID.
func parseGTID(f canal.Flavor, s string) (canal.GTID, error) {
	if s == "" {
		return canal.GTID{}, nil
	}
	return canal.ParseGTID(f, s)
}

func parseFlavor(s string) (canal.Flavor, error) {
	for _, f := range []canal.Flavor{canal.MySQL, canal.MariaDB} {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("server flavor %q is neither mysql nor mariadb", s)
}
