package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/binlogd/binlogd/canal"
)

// Reader shows the checkpoint of one pipeline, also while another process holds it.
type Reader interface {
	// Load returns the record that was saved last. The error is ErrNotFound where none
	// ever was; a *CorruptError, *NewerVersionError or *NameError where there is one that
	// must not be used; anything else is a failure to read. It never stands for a fresh
	// start that nobody asked for.
	Load(ctx context.Context) (*Record, error)
	// History returns what was saved before, newest first, the record of Load included.
	// Automatic entries are thinned out with age: all of the last hour, one a minute for
	// a day, one an hour before that. With a *HistoryError it still returns what can be read.
	History(ctx context.Context) ([]Entry, error)
	// SchemaEntries returns the schema history that belongs to the record, oldest first.
	SchemaEntries(ctx context.Context) ([]canal.SchemaEntry, error)
	// Survey says who holds the checkpoint, and what its server's settings may cost. The error
	// says why a run could not keep it there.
	Survey(ctx context.Context) (Survey, error)
	// Place names the checkpoint in messages: a path, an address.
	Place() string
	// Close gives up connections and, of a Store, the lock. It does not save.
	Close() error
}

// Store keeps the checkpoint of one pipeline. It is used by one goroutine at a time, and
// by one process: opening it a second time fails with a *LockedError, and one that lost
// its lease to another is told so by a *FencedError.
type Store interface {
	Reader
	// Save returns nil once r is durable in place of the record before, with an automatic
	// entry in the history. On an error the store holds the record before or r, whole in
	// either case, and Save may be called again. The store keeps the GTID sets of r, which
	// must not be changed any more.
	Save(ctx context.Context, r *Record) error
	// Move saves r with an entry of its own, both or neither. It fills in WrittenAt and
	// WrittenBy. On an error as for Save, History tells whether it was done.
	Move(ctx context.Context, r *Record, m Move) (Entry, error)
	// Schemas is the schema history as the pipeline writes it, for who holds the lock.
	Schemas() canal.SchemaHistory
}

// ErrNotFound says that no checkpoint was saved yet.
var ErrNotFound = errors.New("no checkpoint was saved yet")

// LockedError says that another process holds the checkpoint.
type LockedError struct {
	Place  string // of the checkpoint: a path, an address
	Holder Holder // zero where the holder did not say
}

func (e *LockedError) Error() string {
	holder := "another binlogd"
	if e.Holder != (Holder{}) {
		holder = e.Holder.String()
	}
	return fmt.Sprintf("checkpoint %s is held by %s; stop that one first, or give this one another name and checkpoint", e.Place, holder)
}

// FencedError says that another process took a checkpoint over, from this one, which had
// let its lease run out: it was stopped, suspended or cut off for that long.
type FencedError struct {
	Place  string // of the checkpoint: an address
	Holder Holder // who has it now; zero where that is not known
}

func (e *FencedError) Error() string {
	holder := "another binlogd"
	if e.Holder != (Holder{}) {
		holder = e.Holder.String()
	}
	return fmt.Sprintf("checkpoint %s was taken over by %s while this process did not answer for longer than checkpoint.lease; "+
		"nothing was saved over it and nothing is lost: let the other one go on, or stop it and start this one again", e.Place, holder)
}

// Elsewhere reports whether err means that another process holds the checkpoint.
func Elsewhere(err error) bool {
	var (
		locked *LockedError
		fenced *FencedError
	)
	return errors.As(err, &locked) || errors.As(err, &fenced)
}

// HistoryError says that a part of a checkpoint's history cannot be read. The checkpoint
// itself is not concerned.
type HistoryError struct {
	Place  string // of the history: a path, an address
	Detail string
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("history %s of the checkpoint is damaged: %s; what can be read of it is shown, and the checkpoint itself is whole", e.Place, e.Detail)
}

// CorruptError says that a checkpoint is there and damaged.
type CorruptError struct {
	Place  string // of the checkpoint: a path, an address
	Detail string // what is wrong with it
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint %s is damaged: %s; %s", e.Place, e.Detail, restoreRemedy)
}

// NewerVersionError says that a checkpoint was written in a format that this binlogd
// does not know yet.
type NewerVersionError struct {
	Place   string // of the checkpoint: a path, an address
	Version int    // of its format
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("checkpoint %s has format version %d, and this binlogd knows versions up to %d: a newer binlogd wrote it; "+
		"run that binlogd, or restore a copy from before the upgrade", e.Place, e.Version, formatVersion)
}

// NameError says that a checkpoint belongs to a pipeline of another name.
type NameError struct {
	Place string // of the checkpoint: a path, an address
	Want  string // the configured name
	Have  string // the name in the record
}

func (e *NameError) Error() string {
	return fmt.Sprintf("checkpoint %s belongs to the pipeline %q, and the configuration says name: %s; "+
		"set name: %s if it is the same pipeline, or give this one a checkpoint.path of its own", e.Place, e.Have, e.Want, e.Have)
}

// AccessError says that a store could not be read or written.
type AccessError struct {
	Op     string // "open", "read", "save"
	Place  string // of the checkpoint: a path, an address
	Remedy string
	Err    error
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("%s checkpoint %s: %v; %s", e.Op, e.Place, e.Err, e.Remedy)
}

func (e *AccessError) Unwrap() error { return e.Err }

// Unusable reports whether err means that the checkpoint cannot be read or written. A
// checkpoint that another process holds is not among these.
func Unusable(err error) bool {
	var (
		corrupt *CorruptError
		newer   *NewerVersionError
		name    *NameError
		access  *AccessError
		save    *SaveError
		schema  *SchemaError
	)
	return errors.As(err, &corrupt) || errors.As(err, &newer) || errors.As(err, &name) || errors.As(err, &access) || errors.As(err, &save) || errors.As(err, &schema)
}

// restoreRemedy is what to do about a checkpoint whose place is lost.
const restoreRemedy = "restore a copy of it; or, if you know the place, move it away and set source.start to that place; " +
	"or delete it to start afresh: changes between the lost place and the new start may then be missing or published again"
