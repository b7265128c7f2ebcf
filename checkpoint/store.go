package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps the checkpoint of one pipeline. It is used by one goroutine at a time,
// and by one process: opening it a second time fails with a *LockedError.
type Store interface {
	// Load returns the record that was saved last. The error is ErrNotFound where none
	// ever was; a *CorruptError, *NewerVersionError or *NameError where there is one that
	// must not be used; anything else is a failure to read. It never stands for a fresh
	// start that nobody asked for.
	Load(ctx context.Context) (*Record, error)
	// Save returns nil once r is durable in place of the record before. On an error the
	// store holds the record before or r, whole in either case, and Save may be called
	// again.
	Save(ctx context.Context, r *Record) error
	// Close gives up the lock. It does not save.
	Close() error
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

// Holder is the process that holds a checkpoint.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

func (h Holder) String() string {
	return fmt.Sprintf("process %d on host %s since %s", h.PID, h.Host, h.Since.Format(time.RFC3339))
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
