package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// fileMode keeps table and server names from other users.
	fileMode   = 0o600
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
)

// File is a Store in one local file, and a lock file beside it. A Save is durable when
// it returns, and whole or not done after a crash or a loss of power at any moment: the
// record goes to a temporary file in the same directory, which is flushed to the disk
// and takes the name of the file before it.
type File struct {
	path string
	name string
	lock *fileLock
}

var _ Store = (*File)(nil)

// OpenFile locks the checkpoint of the named pipeline at path, where no file need be
// yet; its directory must be there. The error is a *LockedError when another process,
// or another File of this one, holds it, and otherwise an *AccessError.
func OpenFile(path, name string) (*File, error) {
	// One checkpoint must have one lock, whatever links lead to it.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	lock, err := lockFile(path + lockSuffix)
	if err != nil {
		if locked, ok := errors.AsType[*LockedError](err); ok {
			locked.Place = path
			return nil, locked
		}
		return nil, &AccessError{Op: "open", Place: path, Remedy: accessRemedy(err, path), Err: err}
	}
	// Left by a process that was killed while it saved. The holder of the lock alone
	// writes here, so nobody is at it.
	if err := os.Remove(path + tempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = lock.release()
		return nil, &AccessError{Op: "open", Place: path, Remedy: accessRemedy(err, path), Err: err}
	}
	return &File{path: path, name: name, lock: lock}, nil
}

// ReadFile reads the checkpoint at path without locking it, also while a daemon holds
// and saves it. Errors are those of Store.Load, without *NameError.
func ReadFile(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, &AccessError{Op: "read", Place: path, Remedy: accessRemedy(err, path), Err: err}
	}
	return Decode(data, path)
}

// Load implements Store.
func (f *File) Load(context.Context) (*Record, error) {
	r, err := ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	if r.Name != f.name {
		return nil, &NameError{Place: f.path, Want: f.name, Have: r.Name}
	}
	return r, nil
}

// Save implements Store.
func (f *File) Save(_ context.Context, r *Record) error {
	data, err := Encode(r)
	if err != nil {
		return err
	}
	if err := f.replace(data); err != nil {
		return &AccessError{Op: "save", Place: f.path, Remedy: accessRemedy(err, f.path) + "; the checkpoint before is intact", Err: err}
	}
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

// Close implements Store.
func (f *File) Close() error { return f.lock.release() }

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
