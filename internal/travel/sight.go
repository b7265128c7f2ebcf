package travel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// sighting is an event, seen in its transaction.
type sighting struct {
	event mapping.Event
	table string // database.table
	op    canal.Op
	entry int // of the configuration's events section
	place uint64
	// before and after are the row's images as JSON objects; nil where there is none, or where the binlog does not carry it.
	before, after json.RawMessage
}

// sight reads the one transaction at a spot and looks for an event in it.
func (s *Setup) sight(ctx context.Context, b *canal.Binlogs, spot *canal.Spot, history *scratchHistory, r *checkpoint.Record, id string) (*sighting, error) {
	until := canal.Position{File: spot.File, Offset: spot.Offset + 1}
	if spot.Read != nil {
		until.GTIDs = spot.Read.Clone()
		until.GTIDs.Add(spot.Next.GTID)
	}
	from := spot.Resume
	from.Server, from.SchemaVersion = b.Server(), r.SchemaVersion
	source, err := canal.OpenSource(ctx, canal.SourceOptions{
		Connect: s.Connect, MaxInFlight: s.MaxInFlight, Heartbeat: time.Second, Captured: s.Mapper.Captured, From: from, Until: &until,
		History: history.copy(), Logger: s.quiet(),
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	decoder := canal.NewDecoder(canal.DecoderOptions{Captured: s.Mapper.Captured, Schemas: s.Schemas, InvalidText: s.InvalidText})
	look := &lookout{id: id, mapper: s.Mapper, worker: s.Mapper.NewWorker()}
	for {
		segment, err := source.Next(ctx)
		if errors.Is(err, canal.ErrReached) {
			return look.seen, nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range segment.Transactions {
			if t.File != spot.Next.File && t.GTID.IsZero() || t.GTID != spot.Next.GTID || t.GTID.IsZero() && t.Start != spot.Next.Offset || t.Idle {
				continue
			}
			if err := look.through(ctx, decoder, t); err != nil {
				segment.Release()
				return nil, err
			}
		}
		segment.Release()
	}
}

// lookout looks for an event.
type lookout struct {
	id     string
	mapper *mapping.Mapper
	worker *mapping.Worker
	seen   *sighting
}

func (l *lookout) through(ctx context.Context, decoder *canal.Decoder, t *canal.Transaction) error {
	rows := decoder.Rows(ctx, t)
	begun := false
	for rows.Next() {
		if !begun {
			if err := l.worker.Begin(t); err != nil {
				return err
			}
			begun = true
		}
		events, err := l.worker.Append(nil, rows.Row())
		if err != nil {
			return err
		}
		for i := range events {
			if events[i].ID != l.id {
				continue
			}
			if l.seen, err = l.sighting(t, rows.Row(), &events[i]); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

func (l *lookout) sighting(t *canal.Transaction, row *canal.Row, e *mapping.Event) (*sighting, error) {
	entry, _ := l.mapper.Match(row.Table.Database, row.Table.Name)
	seen := &sighting{event: cloneEvent(e), table: row.Table.Database + "." + row.Table.Name, op: row.Op, place: row.Place, entry: entry}
	if row.Op == canal.Truncate {
		return seen, nil
	}
	shows, err := mapping.New(mapping.Options{Name: "trace", Tables: []mapping.TableRule{{Table: "*.*", Topic: "trace"}}})
	if err != nil {
		return nil, err
	}
	show := func(row canal.Row) ([]json.RawMessage, error) {
		worker := shows.NewWorker()
		if err := worker.Begin(t); err != nil {
			return nil, err
		}
		events, err := worker.Append(nil, &row)
		if err != nil {
			return nil, err
		}
		var images []json.RawMessage
		for i := range events {
			var shown struct {
				Data struct {
					Row json.RawMessage `json:"row"`
				} `json:"data"`
			}
			if err := json.Unmarshal(events[i].Payload, &shown); err != nil {
				return nil, fmt.Errorf("show the row: %w", err)
			}
			images = append(images, shown.Data.Row)
		}
		return images, nil
	}
	images, err := show(*row)
	if err != nil {
		return nil, err
	}
	switch {
	case row.Op == canal.Insert:
		seen.after = images[0]
	case row.Op == canal.Delete:
		seen.before = images[0]
	case len(images) == 2: // the primary key changed
		seen.before, seen.after = images[0], images[1]
	default:
		seen.after = images[0]
		gone := *row
		gone.Op, gone.After = canal.Delete, nil
		if images, err := show(gone); err == nil { // the binlog may carry too little of it
			seen.before = images[0]
		}
	}
	return seen, nil
}

// cloneEvent shares no memory with e.
func cloneEvent(e *mapping.Event) mapping.Event {
	c := *e
	c.ID, c.Type, c.Source, c.Topic = strings.Clone(e.ID), strings.Clone(e.Type), strings.Clone(e.Source), strings.Clone(e.Topic)
	c.Time, c.Sequence, c.Table, c.GTID = strings.Clone(e.Time), strings.Clone(e.Sequence), strings.Clone(e.Table), strings.Clone(e.GTID)
	c.Key, c.Payload, c.Headers = bytes.Clone(e.Key), bytes.Clone(e.Payload), slices.Clone(e.Headers)
	return c
}
