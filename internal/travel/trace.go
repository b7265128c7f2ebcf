package travel

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// Trace is where an event comes from.
type Trace struct {
	Transaction canal.Begins
	// Published reports whether the checkpoint holds the transaction.
	Published bool
	// Event is the event as this configuration publishes it; nil where it makes none with that id of the transaction.
	Event *mapping.Event
	Table string // database.table
	Op    string // insert, update, delete or truncate
	Place uint64 // of the row's change in its transaction, from 1
	// Entry is the index of the configuration's entry that decides about the table.
	Entry int
	// Before and After are the row's images as JSON objects; nil where there is none.
	Before, After json.RawMessage
}

// openPast opens the server's binlogs, and gives what the pipeline's checkpoint, which may hold nothing, says of them.
func (s *Setup) openPast(ctx context.Context, history checkpoint.Reader) (record *checkpoint.Record, entries []canal.SchemaEntry, binlogs *canal.Binlogs, err error) {
	record, err = history.Load(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		record, err = &checkpoint.Record{}, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if entries, err = history.SchemaEntries(ctx); err != nil {
		return nil, nil, nil, err
	}
	binlogs, err = s.openBinlogs(ctx)
	return record, entries, binlogs, err
}

// Trace takes an event's id back to its transaction. history is the pipeline's checkpoint, which may hold none.
func (s *Setup) Trace(ctx context.Context, history checkpoint.Reader, id string) (*Trace, error) {
	record, entries, binlogs, err := s.openPast(ctx, history)
	if err != nil {
		return nil, err
	}
	defer func() { _ = binlogs.Close() }() // it only reads
	spot, seen, err := s.locateEvent(ctx, binlogs, newScratchHistory(entries), record, id)
	if err != nil {
		return nil, err
	}
	t := &Trace{Transaction: *spot.Next, Entry: -1}
	if set, place := published(record); set != nil {
		t.Published = set.Contains(spot.Next.GTID)
	} else {
		t.Published = (canal.Position{File: spot.File, Offset: spot.Offset}).Precedes(place)
	}
	if seen != nil {
		t.Event, t.Table, t.Op, t.Place, t.Entry = &seen.event, seen.table, seen.op.String(), seen.place, seen.entry
		t.Before, t.After = seen.before, seen.after
	}
	return t, nil
}
