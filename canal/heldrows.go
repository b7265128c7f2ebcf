package canal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// heldRows are table maps and rows events that wait until it is known whether they count: in memory, and in a file from a limit on.
type heldRows struct {
	dir    string // of the file
	limit  int    // bytes that are kept in memory
	events []rawEvent
	size   int      // of the events, each as heldSize counts it
	spill  *os.File // unlinked; nil while the rows fit into memory
	writer *bufio.Writer
}

// heldPrefix is what stands before each event in the file: its length in four bytes, little-endian. The length in its header counts
// the checksum, which was cut off.
const heldPrefix = 4

// heldSize is the room that an event takes.
func heldSize(e []byte) int { return heldPrefix + len(e) }

// append keeps one more event.
func (h *heldRows) append(e rawEvent) error {
	h.size += heldSize(e)
	if h.spill == nil && h.size <= h.limit {
		h.events = append(h.events, e)
		return nil
	}
	if h.spill == nil {
		if err := h.open(); err != nil {
			return err
		}
		for _, kept := range h.events {
			if err := h.write(kept); err != nil {
				return err
			}
		}
		h.events = nil
	}
	return h.write(e)
}

func (h *heldRows) write(e rawEvent) error {
	var prefix [heldPrefix]byte
	binary.LittleEndian.PutUint32(prefix[:], uint32(len(e)))
	_, err := h.writer.Write(prefix[:])
	if err == nil {
		_, err = h.writer.Write(e)
	}
	if err != nil {
		return fmt.Errorf("keep rows that are not committed yet in %s: %w", h.dir, err)
	}
	return nil
}

// open makes the file. It needs no name: after a crash the server sends the rows again.
func (h *heldRows) open() error {
	f, err := os.CreateTemp(h.dir, "binlogd-rows-*")
	if err != nil {
		return fmt.Errorf("keep rows that are not committed yet: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(fmt.Errorf("keep rows that are not committed yet: %w", err), f.Close())
	}
	h.spill, h.writer = f, bufio.NewWriterSize(f, 64<<10)
	return nil
}

// truncate drops all but the first events, which take up size.
func (h *heldRows) truncate(size int) error {
	if size >= h.size {
		return nil
	}
	h.size = size
	if h.spill == nil {
		h.events = firstEvents(h.events, size)
		return nil
	}
	if err := h.writer.Flush(); err != nil {
		return fmt.Errorf("drop rows that were rolled back: %w", err)
	}
	if err := h.spill.Truncate(int64(size)); err != nil {
		return fmt.Errorf("drop rows that were rolled back: %w", err)
	}
	if _, err := h.spill.Seek(int64(size), io.SeekStart); err != nil {
		return fmt.Errorf("drop rows that were rolled back: %w", err)
	}
	return nil
}

// firstEvents are those that take up size.
func firstEvents[E ~[]byte](events []E, size int) []E {
	n := 0
	for n < len(events) && size > 0 {
		size -= heldSize(events[n])
		n++
	}
	clear(events[n:])
	return events[:n]
}

// each gives the events in order.
func (h *heldRows) each(f func(rawEvent) error) error {
	for _, e := range h.events {
		if err := f(e); err != nil {
			return err
		}
	}
	if h.spill == nil {
		return nil
	}
	if err := h.writer.Flush(); err != nil {
		return fmt.Errorf("read back rows that are committed now: %w", err)
	}
	if _, err := h.spill.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read back rows that are committed now: %w", err)
	}
	r := bufio.NewReaderSize(h.spill, 64<<10)
	for {
		var prefix [heldPrefix]byte
		if _, err := io.ReadFull(r, prefix[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read back rows that are committed now: %w", err)
		}
		e := make(rawEvent, binary.LittleEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(r, e); err != nil {
			return fmt.Errorf("read back rows that are committed now: %w", err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// close drops all of it.
func (h *heldRows) close() {
	if h.spill != nil {
		_ = h.spill.Close()
		h.spill = nil
	}
	h.events, h.size = nil, 0
}
