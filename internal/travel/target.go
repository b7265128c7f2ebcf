package travel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Target says where to move a checkpoint to, in one of several ways.
type Target struct {
	Kind TargetKind
	// Text is what was written: a GTID set, an event's id, an entry's id.
	Text         string
	Time         time.Time
	Transactions int
	File         string
	Offset       uint64
}

// TargetKind is the form of a Target.
type TargetKind uint8

// The forms of a Target, and what each means.
const (
	ToGTID         TargetKind = iota // the set counts as published
	ToTime                           // the first transaction committed at or after the time is the next
	ToEvent                          // the transaction of the event is the next
	ToTransactions                   // back over the last n transactions that had events
	ToEntry                          // the place of an entry of the checkpoint's history
	ToPosition                       // the transaction that begins at file and offset is the next
)

// ParsePosition reads FILE:OFFSET.
func ParsePosition(text string) (file string, offset uint64, err error) {
	if i := strings.LastIndexByte(text, ':'); i > 0 {
		if offset, err := strconv.ParseUint(text[i+1:], 10, 64); err == nil {
			return text[:i], max(offset, 4), nil
		}
	}
	return "", 0, fmt.Errorf("%q is no place in a binlog: write FILE:POS, such as binlog.000042:157", text)
}

// ParseTime reads a time: RFC 3339 with its zone; YYYY-MM-DD HH:MM or HH:MM:SS, with or without a fraction, in zone; or relative to now:
// -3h, -90m, -2d. zone is nil where none was stated.
func ParseTime(text string, zone *time.Location, now time.Time) (time.Time, error) {
	if strings.HasPrefix(text, "-") {
		ago, err := parseAgo(text[1:])
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is no time: %w", text, err)
		}
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1)); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		local := zone
		if local == nil {
			local = time.UTC
		}
		t, err := time.ParseInLocation(layout, strings.Replace(text, " ", "T", 1), local)
		switch {
		case err == nil && zone == nil:
			return time.Time{}, fmt.Errorf("%q does not say in which zone: add --zone UTC, --zone Local or --zone Europe/Berlin, or write %s", text, t.Format(time.RFC3339))
		case err == nil:
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-11-29T10:00:00Z, '2026-11-29 10:00' with --zone, or -3h", text)
}

// parseAgo reads a length of time; days, of 24 hours, and weeks are allowed too: 1w2d3h.
func parseAgo(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("write a length of time behind the minus sign, such as -3h or -2d")
	}
	ago := time.Duration(0)
	rest := text
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		head, tail, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(head, 64)
		if err != nil || n < 0 || n > 1e5 {
			return 0, fmt.Errorf("%q is no number of %s", head, map[string]string{"w": "weeks", "d": "days"}[unit.name])
		}
		ago += time.Duration(n * float64(unit.length))
		rest = tail
	}
	if rest == "" {
		return ago, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return 0, errors.New("write a length of time behind the minus sign, such as -3h or -2d")
	}
	return ago + d, nil
}
