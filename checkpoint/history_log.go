package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// historySuffix is behind the checkpoint's path.
const historySuffix = ".history"

// A history file is lines of JSON. The first names the format, each other one holds a
// change, and before it the checksum (CRC-32C) of the change's bytes:
//
//	{"format":"binlogd-checkpoint-history","version":1}
//	{"sum":"9a8b7c6d","change":{"drop":[41,42],"put":[{"Key":40,"Data":"…"}]}}
//
// Lines are added; once those that no longer count take historySlack, the file is written
// anew without them.
const (
	historyFormat        = "binlogd-checkpoint-history"
	historyFormatVersion = 1
	changePrefix         = `","change":`
	historySlack         = 256 << 10 // bytes
)

// historyFile keeps the parts of a history in a file beside the checkpoint. What a crash
// leaves of a last line is cut off, and what is damaged elsewhere is left out.
type historyFile struct {
	path string
	size int64 // of the file; all its lines are whole
	live int64 // of it, when it was written anew
}

// read gives the parts, and how many bytes the lines take up to the end of the last whole
// one. Damage is a *HistoryError, with the parts that can be read.
func (f *historyFile) read() (parts []part, whole int64, err error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, f.access("read", err)
	}
	defer file.Close()
	live := map[uint64]part{}
	var damage error
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end was never confirmed
			return slices.SortedFunc(maps.Values(live), func(a, b part) int { return cmp.Compare(a.Key, b.Key) }), whole, damage
		}
		if err != nil {
			return nil, 0, f.access("read", err)
		}
		whole += int64(len(line))
		if number == 1 {
			if err := checkHistoryHeader(line, f.path); err != nil {
				damage = err
			}
			continue
		}
		c, err := decodeChange(line)
		if err != nil {
			damage = &HistoryError{Place: f.path, Detail: fmt.Sprintf("line %d: %v", number, err)}
			continue
		}
		for _, key := range c.Drop {
			delete(live, key)
		}
		for _, p := range c.Put {
			live[p.Key] = p
		}
	}
}

// open reads the parts for who is going to append.
func (f *historyFile) open() ([]part, error) {
	parts, whole, err := f.read()
	if _, damaged := errors.AsType[*HistoryError](err); err != nil && !damaged {
		return nil, err
	}
	if info, statErr := os.Stat(f.path); statErr == nil && info.Size() != whole {
		if truncErr := os.Truncate(f.path, whole); truncErr != nil {
			return nil, f.access("write", truncErr)
		}
	}
	f.size, f.live = whole, 0
	return parts, err
}

// append adds changes durably.
func (f *historyFile) append(changes []change) (err error) {
	var b []byte
	if f.size == 0 {
		b = historyHeader()
	}
	for i := range changes {
		if b, err = appendChange(b, &changes[i]); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return f.access("write", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			err = f.access("write", closeErr)
		}
	}()
	// Behind the whole lines, over what a failed attempt may have left.
	if _, err = file.WriteAt(b, f.size); err == nil {
		err = file.Truncate(f.size + int64(len(b)))
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil && f.size == 0 {
		err = syncDirectory(filepath.Dir(f.path))
	}
	if err != nil {
		_ = file.Truncate(f.size) // gives back the room on a full disk
		return f.access("write", err)
	}
	f.size += int64(len(b))
	return nil
}

// grown reports whether it is time to write the file anew.
func (f *historyFile) grown() bool { return f.size > f.live+historySlack }

// rewrite makes parts the whole history, at once and durably.
func (f *historyFile) rewrite(parts []part) error {
	b, err := appendChange(historyHeader(), &change{Put: parts})
	if err != nil {
		return err
	}
	if err := (&File{path: f.path}).replace(b); err != nil {
		return f.access("write", err)
	}
	f.size, f.live = int64(len(b)), int64(len(b))
	return nil
}

func (f *historyFile) access(op string, err error) error {
	return &AccessError{Op: op, Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
}

func historyHeader() []byte {
	return fmt.Appendf(nil, "{\"format\":%q,\"version\":%d}\n", historyFormat, historyFormatVersion)
}

func checkHistoryHeader(line []byte, place string) error {
	var header struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &header); err != nil || header.Format != historyFormat || header.Version != historyFormatVersion {
		return &HistoryError{Place: place, Detail: "its first line is not that of a history that this binlogd knows"}
	}
	return nil
}

func appendChange(b []byte, c *change) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	return fmt.Appendf(b, "%s%08x%s%s}\n", sumPrefix, crc32.Checksum(text, castagnoli), changePrefix, text), nil
}

func decodeChange(line []byte) (*change, error) {
	text := strings.TrimSuffix(string(line), "}\n")
	sum, body, found := strings.Cut(strings.TrimPrefix(text, sumPrefix), changePrefix)
	want, err := strconv.ParseUint(sum, 16, 32)
	if !found || err != nil || !strings.HasPrefix(text, sumPrefix) {
		return nil, errors.New("it is no change")
	}
	if have := crc32.Checksum([]byte(body), castagnoli); uint64(have) != want {
		return nil, fmt.Errorf("its content does not match its checksum (%08x, computed %08x)", want, have)
	}
	c := &change{}
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	return c, d.Decode(c)
}
