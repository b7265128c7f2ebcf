package pipeline_test

import (
	"context"
	"errors"

	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// haltingSink is a sink of two lanes, that the keys are divided between. It confirms the second lane before the first; and of every
// third batch it refuses the first lane for some attempts.
type haltingSink struct {
	publish.Sink
	batches  int
	current  *publish.Batch
	refusals int // still to come for current
}

var errLaneClosed = errors.New("the first lane is closed for a moment")

// laneOf is the lane, 0 or 1, of a key, in every process the same.
func laneOf(key string) int { return int(key[len(key)-1]) % 2 }

func (s *haltingSink) Publish(ctx context.Context, b *publish.Batch) error {
	if s.current != b {
		s.current, s.refusals = b, 0
		if s.batches++; s.batches%3 == 0 {
			s.refusals = 3
		}
	}
	if err := s.lane(ctx, b, 1); err != nil {
		return err
	}
	if s.refusals > 0 {
		s.refusals--
		return errLaneClosed
	}
	return s.lane(ctx, b, 0)
}

// lane publishes the unconfirmed events of one lane.
func (s *haltingSink) lane(ctx context.Context, b *publish.Batch, lane int) error {
	var events []mapping.Event
	var places []int // of events in b
	for i := range b.Events {
		if !b.Confirmed(i) && laneOf(string(b.Events[i].Key)) == lane {
			events, places = append(events, b.Events[i]), append(places, i)
		}
	}
	if len(events) == 0 {
		return nil
	}
	part := publish.NewBatch(events)
	err := s.Sink.Publish(ctx, part)
	for i, place := range places {
		if part.Confirmed(i) {
			b.Confirm(place)
		}
	}
	return err
}

// lanes divides a run of events into the lanes' runs.
func lanes(events []event) [][]event {
	runs := make([][]event, 2)
	for _, e := range events {
		lane := laneOf(e.PartitionKey)
		runs[lane] = append(runs[lane], e)
	}
	return runs
}
