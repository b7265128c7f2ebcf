package checkpoint

import (
	"context"
	"errors"

	"github.com/binlogd/binlogd/canal"
)

// None is a Store that keeps nothing: each run begins anew.
type None struct{}

var _ Store = None{}

// Load implements Reader.
func (None) Load(context.Context) (*Record, error) { return nil, ErrNotFound }

// History implements Reader.
func (None) History(context.Context) ([]Entry, error) { return nil, nil }

// SchemaEntries implements Reader.
func (None) SchemaEntries(context.Context) ([]canal.SchemaEntry, error) { return nil, nil }

// Place implements Reader.
func (None) Place() string { return "none" }

// Save implements Store.
func (None) Save(context.Context, *Record) error { return nil }

// Move implements Store: there is nothing to move.
func (None) Move(context.Context, *Record, Move) (Entry, error) {
	return Entry{}, errors.New("no checkpoint is kept that could be moved")
}

// Schemas implements Store: a pipeline without a history keeps one while it runs.
func (None) Schemas() canal.SchemaHistory { return nil }

// Close implements Reader.
func (None) Close() error { return nil }
