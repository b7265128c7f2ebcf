package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/binlogd/binlogd/canal"
)

const (
	// fileMode keeps table and server names from other users.
	fileMode   = 0o600
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
)

// File is a Store in one local file, with a lock file, the history and the schema history
// beside it. A Save is durable when it returns, and whole or not done after a crash or a
// loss of power at any moment: the record goes to a temporary file in the same directory,
// which is flushed to the disk and takes the name of the file before it. The entry of the
// history travels in the same file, and is brought into the history's own behind it.
type File struct {
	path   string
	name   string
	lock   *fileLock
	holder Holder
	author author
	log    historyFile
	// What is known of the files once something was saved, and journal is not nil.
	journal *journal
	pending []change // in the journal and not yet in the log
	before  *Record  // in the file; nil where there is none
}

var _ Store = (*File)(nil)

// OpenFile locks the checkpoint of the named pipeline at path, where no file need be
// yet; its directory must be there. The error is a *LockedError when another process,
// or another File of this one, holds it, and otherwise an *AccessError.
func OpenFile(path, name string) (*File, error) {
	f := newFile(path, name)
	holder, err := self()
	if err != nil {
		return nil, &AccessError{Op: "open", Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
	}
	lock, err := lockFile(f.path+lockSuffix, holder)
	if err != nil {
		if locked, ok := errors.AsType[*LockedError](err); ok {
			locked.Place = f.path
			return nil, locked
		}
		return nil, &AccessError{Op: "open", Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
	}
	// Left by a process that was killed while it saved. The holder of the lock alone
	// writes here, so nobody is at it.
	for _, left := range []string{f.path + tempSuffix, f.log.path + tempSuffix} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			_ = lock.release()
			return nil, &AccessError{Op: "open", Place: f.path, Remedy: accessRemedy(err, f.path), Err: err}
		}
	}
	f.lock, f.holder, f.author = lock, holder, author{holder: holder}
	return f, nil
}

// ViewFile shows the checkpoint of the named pipeline, or of any where name is empty, at path
// without locking it.
func ViewFile(path, name string) Reader { return newFile(path, name) }

func newFile(path, name string) *File {
	// One checkpoint must have one lock, whatever links lead to it.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return &File{path: path, name: name, log: historyFile{path: path + historySuffix}}
}

// ReadFile reads the checkpoint at path without locking it, also while a daemon holds
// and saves it. Errors are those of Store.Load, without *NameError.
func ReadFile(path string) (*Record, error) {
	r, _, err := readFile(path)
	return r, err
}

// readFile is ReadFile with the entry of the history beside the record; nil where there is none.
func readFile(path string) (*Record, *Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNotFound
	}
	if err != nil {
		return nil, nil, &AccessError{Op: "read", Place: path, Remedy: accessRemedy(err, path), Err: err}
	}
	return decode(data, path)
}

// Place implements Reader.
func (f *File) Place() string { return f.path }

// Load implements Reader.
func (f *File) Load(context.Context) (*Record, error) {
	r, err := ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	if f.name != "" && r.Name != f.name {
		return nil, &NameError{Place: f.path, Want: f.name, Have: r.Name}
	}
	return r, nil
}

// History implements Reader.
func (f *File) History(context.Context) ([]Entry, error) {
	// The record first: its entry is in the history's file later than the record in its own.
	_, saved, err := readFile(f.path)
	if err != nil && !errors.Is(err, ErrNotFound) {
		saved = nil // what led to a damaged record can still be read
	}
	parts, _, err := f.log.read()
	damage, damaged := errors.AsType[*HistoryError](err)
	if err != nil && !damaged {
		return nil, err
	}
	all, err := entries(parts, saved)
	if unreadable, ok := errors.AsType[*HistoryError](err); ok {
		unreadable.Place = f.log.path
		return all, unreadable
	}
	if damaged {
		return all, damage
	}
	return all, nil
}

// SchemaEntries implements Reader.
func (f *File) SchemaEntries(context.Context) ([]canal.SchemaEntry, error) {
	return ReadSchemas(f.path)
}

// Save implements Store.
func (f *File) Save(_ context.Context, r *Record) error {
	_, err := f.save(r, nil)
	return err
}

// Move implements Store.
func (f *File) Move(_ context.Context, r *Record, m Move) (Entry, error) { return f.save(r, &m) }

// save saves r with an entry of the history, which m describes if a person asked for it.
func (f *File) save(r *Record, m *Move) (Entry, error) {
	if f.journal == nil {
		before, saved, err := readFile(f.path)
		if err != nil && m != nil && !errors.Is(err, ErrNotFound) {
			return Entry{}, err // a move says from where
		}
		if err := f.openJournal(saved); err != nil {
			return Entry{}, err
		}
		f.before = before
	}
	r, e := f.author.entry(f.journal.next(), f.before, r, m)
	data, err := encode(r, e)
	if err != nil {
		return Entry{}, err
	}
	// What is still pending would be in no file any more.
	if err := f.bringIn(); err != nil {
		return Entry{}, err
	}
	if err := f.replace(data); err != nil {
		return Entry{}, &AccessError{Op: "save", Place: f.path, Remedy: accessRemedy(err, f.path) + "; the checkpoint before is intact", Err: err}
	}
	f.author.saved, f.before = true, &e.Record
	c, err := f.journal.append(e)
	if err != nil {
		return *e, err
	}
	f.pending = append(f.pending, c)
	return *e, f.bringIn()
}

// openJournal goes on from the history in the file, and from the entry beside the record
// where that did not get there.
func (f *File) openJournal(saved *Entry) error {
	parts, err := f.log.open()
	if _, damaged := errors.AsType[*HistoryError](err); err != nil && !damaged {
		return err
	}
	j, _ := openJournal(parts) // damage is History's to tell; the record does not need it
	if saved != nil && saved.number() >= j.next() {
		c, err := j.append(saved)
		if err != nil {
			return err
		}
		f.pending = append(f.pending, c)
	}
	f.journal = j
	return nil
}

// bringIn writes down what is pending.
func (f *File) bringIn() error {
	if len(f.pending) == 0 {
		return nil
	}
	if f.log.grown() {
		if err := f.log.rewrite(f.journal.parts()); err != nil {
			return err
		}
	} else if err := f.log.append(f.pending); err != nil {
		return err
	}
	f.pending = nil
	return nil
}

// replace makes data the content of the file, at once and durably.
func (f *File) replace(data []byte) error {
	temp := f.path + tempSuffix
	if err := writeDurably(temp, data); err != nil {
		_ = os.Remove(temp) // gives back the room on a full disk
		return err
	}
	if err := os.Rename(temp, f.path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	// The new name must survive a loss of power too.
	return syncDirectory(filepath.Dir(f.path))
}

// Close implements Reader.
func (f *File) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.release()
}

func writeDurably(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// accessRemedy says what to do about a failure of the file system.
func accessRemedy(err error, path string) string {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space for " + dir
	case errors.Is(err, syscall.EROFS):
		return "the file system of " + dir + " is mounted read-only: mount it writable, or set checkpoint.path to a writable directory"
	case errors.Is(err, fs.ErrPermission):
		return "let the user that runs binlogd read and write " + dir + ", or set checkpoint.path to another directory"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "create the directory " + dir + ", or set checkpoint.path to one that exists"
	case errors.Is(err, syscall.EISDIR):
		return "set checkpoint.path to a file, not to a directory"
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		return "the file system of " + dir + " cannot lock files: set checkpoint.path to a local disk"
	}
	return "look after " + dir + ", or set checkpoint.path to another directory"
}
