package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Start is where to begin where no checkpoint exists yet.
type Start struct {
	Kind StartKind
	// Set is the GTID set of StartGTID, as text: which kind of GTIDs it has, the server decides.
	Set    string
	File   string
	Offset uint64
	Time   time.Time
}

// StartKind is the form of a Start.
type StartKind uint8

// The forms of a Start.
const (
	StartLatest StartKind = iota
	StartEarliest
	StartGTID
	StartFile
	StartTime
)

// ParseStart reads a value of source.start: latest, earliest, gtid:SET, file:NAME:POS or time:RFC3339.
func ParseStart(text string) (Start, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "", "latest":
		return Start{}, nil
	case "earliest":
		return Start{Kind: StartEarliest}, nil
	case "gtid":
		if _, err := ParseGTIDSet(MySQL, rest); err == nil {
			return Start{Kind: StartGTID, Set: rest}, nil
		}
		if _, err := ParseGTIDSet(MariaDB, rest); err == nil {
			return Start{Kind: StartGTID, Set: rest}, nil
		}
		return Start{}, fmt.Errorf("source.start: %q is no GTID set: write gtid:UUID:1-N (MySQL) or gtid:DOMAIN-SERVER-NUMBER (MariaDB)", rest)
	case "file":
		i := strings.LastIndexByte(rest, ':')
		if i > 0 {
			if offset, err := strconv.ParseUint(rest[i+1:], 10, 64); err == nil {
				return Start{Kind: StartFile, File: rest[:i], Offset: max(offset, 4)}, nil
			}
		}
		return Start{}, fmt.Errorf("source.start: %q is no place in a binlog: write file:NAME:POS, such as file:binlog.000042:157", text)
	case "time":
		t, err := time.Parse(time.RFC3339Nano, rest)
		if err != nil {
			return Start{}, fmt.Errorf("source.start: %q is no time: write time:2026-11-29T10:00:00Z", rest)
		}
		return Start{Kind: StartTime, Time: t}, nil
	}
	return Start{}, fmt.Errorf("source.start: %q is unknown: write latest, earliest, gtid:SET, file:NAME:POS or time:RFC3339", text)
}

// Locate finds the place that a Start means on the server.
func Locate(ctx context.Context, o ConnectOptions, start Start) (Resume, error) {
	b, err := OpenBinlogs(ctx, o, nil)
	if err != nil {
		return Resume{}, err
	}
	defer func() { _ = b.Close() }()
	resume, err := b.locate(ctx, start)
	if err != nil {
		return Resume{}, err
	}
	resume.Server = b.server
	return resume, nil
}

func (b *Binlogs) locate(ctx context.Context, start Start) (Resume, error) {
	var spot *Spot
	var err error
	switch start.Kind {
	case StartLatest:
		end, err := b.End(ctx)
		return Resume{Position: end}, err
	case StartGTID:
		set, err := b.startSet(start)
		return Resume{Position: Position{GTIDs: set}}, err
	case StartEarliest:
		spot, err = b.Oldest(ctx)
	case StartFile:
		spot, err = b.At(ctx, start.File, start.Offset)
	case StartTime:
		spot, err = b.Since(ctx, start.Time)
	default:
		err = fmt.Errorf("start of kind %d", start.Kind)
	}
	if err != nil {
		return Resume{}, fmt.Errorf("source.start: %w", err)
	}
	return spot.Resume, nil
}

func (b *Binlogs) startSet(start Start) (*GTIDSet, error) {
	if !b.numbered {
		return nil, &ConfigError{Err: errors.New("source.start names a GTID set, but the server runs with gtid_mode=OFF"), Remedy: "write file:NAME:POS, time:RFC3339, earliest or latest"}
	}
	set, err := ParseGTIDSet(b.server.Flavor, start.Set)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("source.start: %w", err), Remedy: "write a GTID set of the server's kind: " + b.server.Flavor.String()}
	}
	return set, nil
}
