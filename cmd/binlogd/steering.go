package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/admin"
)

// steering lets the admin server change something between two transactions: it ends the run in order, as SIGTERM would, makes the
// change, and runs again from what the checkpoint says then.
type steering struct {
	turns chan *turn
}

// turn is one change, and how to say what became of it.
type turn struct {
	change func(ctx context.Context) (string, error)
	done   chan outcome // has room for the one
}

type outcome struct {
	answer string
	err    error
}

func newSteering() *steering { return &steering{turns: make(chan *turn)} }

var errNotRunning = errors.New("binlogd is stopping")

// run runs until ctx ends or run ends by itself.
func (s *steering) run(ctx context.Context, run func(context.Context) error) error {
	for {
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- run(running) }()
		select {
		case err := <-ended:
			stop()
			return err
		case t := <-s.turns:
			stop()
			if err := <-ended; err != nil || ctx.Err() != nil {
				t.done <- outcome{err: errors.Join(errNotRunning, err)}
				return err
			}
			answer, err := t.change(ctx)
			t.done <- outcome{answer, err}
		}
	}
}

// turn makes a change while nothing runs, and gives its answer.
func (s *steering) turn(ctx context.Context, change func(ctx context.Context) (string, error)) (string, error) {
	t := &turn{change: change, done: make(chan outcome, 1)}
	select {
	case s.turns <- t:
	case <-ctx.Done():
		return "", fmt.Errorf("%w: %w", errNotRunning, ctx.Err())
	}
	select {
	case o := <-t.done:
		return o.answer, o.err
	case <-ctx.Done(): // it is being done all the same
		return "", ctx.Err()
	}
}

// moveCheckpoint carries out a move that was planned outside while this process went on.
func moveCheckpoint(ctx context.Context, store checkpoint.Store, request admin.MoveRequest) (string, error) {
	after, err := checkpoint.Decode([]byte(request.Record), "in the request")
	if err != nil {
		return "", err
	}
	now, err := store.Load(ctx)
	if err != nil {
		return "", err
	}
	if after.Name != now.Name {
		return "", &checkpoint.NameError{Place: store.Place(), Want: now.Name, Have: after.Name}
	}
	after.Counters = now.Counters
	if !request.Forward {
		after.SchemaVersion = now.SchemaVersion
	}
	entry, err := store.Move(ctx, after, checkpoint.Move{Action: checkpoint.Action(request.Action), Reason: request.Reason, By: checkpoint.Holder(request.By)})
	return entry.ID, err
}
