package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FileOptions are the options of the file sink.
type FileOptions struct {
	Path string `yaml:"path"` // created where it does not exist; its directory must
}

// Validate returns an error that names the YAML key at fault.
func (o *FileOptions) Validate() error {
	if o.Path == "" {
		return errors.New("publish.file.path: is missing; write the file that events go to, for example events.jsonl")
	}
	return nil
}

// fileChunk is how many bytes of lines are gathered for one write.
const fileChunk = 256 << 10

// File appends each event as one line of JSON. Durable means synced to the disk. The
// file holds whole lines only, in the order of publishing: what a crash or a full disk
// left behind of a line that was never confirmed is cut off.
//
// The file may be moved away (log rotation); the next batch starts a new one.
type File struct {
	path   string
	logger *slog.Logger

	file *os.File
	size int64  // everything below is synced and ends with a line's end
	torn bool   // there may be bytes beyond size that are not confirmed
	buf  []byte // lines gathered for one write
}

// OpenFile opens, locks and repairs the file. Two processes cannot publish into one file.
func OpenFile(o FileOptions, logger *slog.Logger) (*File, error) {
	f := &File{path: o.Path, logger: logger}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o640)
	if err != nil {
		return fileError(fmt.Errorf("open publish.file.path: %w", err))
	}
	if err := f.adopt(file); err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// adopt makes file the one that is published into: locked, repaired, known to its directory.
func (f *File) adopt(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fileError(fmt.Errorf("open publish.file.path: %w", err))
	}
	if !info.Mode().IsRegular() {
		return &PermanentError{
			Err:    fmt.Errorf("open publish.file.path: %s is not a regular file", f.path),
			Remedy: "name a file, or write `publish: {stdout: {}}` and redirect standard output",
		}
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &PermanentError{
			Err:    fmt.Errorf("lock %s: %w", f.path, err),
			Remedy: "another process publishes into it; stop that one or give this one another publish.file.path",
		}
	}
	size, err := wholeLines(file, info.Size())
	if err != nil {
		return fileError(fmt.Errorf("read the end of %s: %w", f.path, err))
	}
	if size < info.Size() {
		f.logger.Warn("the file ends inside a line that was never confirmed; the line is cut off and its event published again",
			"file", f.path, "bytes", info.Size()-size)
		if err := file.Truncate(size); err != nil {
			return fileError(fmt.Errorf("cut the torn line off %s: %w", f.path, err))
		}
	}
	// A process that was killed may have left whole lines that are not on the disk yet.
	if err := file.Sync(); err != nil {
		return fileError(fmt.Errorf("sync %s: %w", f.path, err))
	}
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return fileError(err)
	}
	f.file, f.size, f.torn = file, size, false
	return nil
}

// Publish appends the events of b and syncs the file.
func (f *File) Publish(ctx context.Context, b *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.follow(); err != nil {
		return err
	}
	last, err := f.append(b)
	if err == nil || permanent(err) {
		// Also where one event is refused: those before it are whole lines.
		if syncErr := f.file.Sync(); syncErr != nil {
			err = fileError(fmt.Errorf("sync %s: %w", f.path, syncErr))
		}
	}
	if err != nil && !permanent(err) {
		return errors.Join(err, f.cut())
	}
	info, statErr := f.file.Stat()
	if statErr != nil {
		return fileError(fmt.Errorf("publish into %s: %w", f.path, statErr))
	}
	f.size, f.torn = info.Size(), false
	for i := range last {
		b.Confirm(i)
	}
	return err
}

// append writes the lines of the unconfirmed events. All events before the index that
// it returns are written.
func (f *File) append(b *Batch) (int, error) {
	f.buf = f.buf[:0]
	f.torn = true
	for i := range b.Events {
		if b.Confirmed(i) {
			continue
		}
		if err := checkLine(&b.Events[i]); err != nil {
			if writeErr := f.write(); writeErr != nil {
				return 0, writeErr
			}
			return i, err
		}
		f.buf = append(append(f.buf, b.Events[i].Payload...), '\n')
		if len(f.buf) >= fileChunk {
			if err := f.write(); err != nil {
				return 0, err
			}
		}
	}
	return len(b.Events), f.write()
}

func (f *File) write() error {
	_, err := f.file.Write(f.buf)
	f.buf = f.buf[:0]
	if err != nil {
		return fileError(fmt.Errorf("write to %s: %w", f.path, err))
	}
	return nil
}

// cut removes what is not confirmed, so that readers see whole lines only and the retry
// starts where the confirmed lines end. After a failed sync, writing anew is also the only
// way: the kernel may have dropped the pages that it could not write.
func (f *File) cut() error {
	if err := f.file.Truncate(f.size); err != nil {
		return fmt.Errorf("cut unconfirmed lines off %s: %w", f.path, err)
	}
	f.torn = false
	return nil
}

// follow gets ready for a batch: it finishes a cut that failed, and opens a new file
// where somebody has moved this one away or emptied it.
func (f *File) follow() error {
	if f.file == nil { // an earlier attempt to open the new file failed
		return f.open()
	}
	here, err := f.file.Stat()
	if err != nil {
		return fileError(fmt.Errorf("publish into %s: %w", f.path, err))
	}
	there, err := os.Stat(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(fmt.Errorf("publish into %s: %w", f.path, err))
	}
	if f.torn && here.Size() > f.size {
		if err := f.cut(); err != nil {
			return fileError(err)
		}
	}
	if err != nil || !os.SameFile(here, there) {
		f.logger.Info("the file was moved away; a new one is started", "file", f.path)
		closeErr := f.file.Close()
		f.file = nil
		return errors.Join(closeErr, f.open())
	}
	if here.Size() < f.size {
		f.logger.Warn("the file was cut by somebody else; publishing goes on at its end", "file", f.path, "bytes", f.size-here.Size())
		return f.adopt(f.file)
	}
	return nil
}

// Ping reports whether the file can be written to and the disk has room.
func (f *File) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.file == nil {
		return f.open()
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.file.Fd()), &s); err != nil {
		return fileError(fmt.Errorf("look at the disk of %s: %w", f.path, err))
	}
	if s.Blocks > 0 && s.Bavail == 0 {
		return fileError(fmt.Errorf("look at the disk of %s: %w", f.path, unix.ENOSPC))
	}
	return nil
}

// Close cuts off what is not confirmed and closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	var err error
	if f.torn {
		err = f.cut()
	}
	err = errors.Join(err, f.file.Close())
	f.file = nil
	return err
}

// wholeLines returns the length of the whole lines in a file of size bytes.
func wholeLines(file *os.File, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(block)))
		if _, err := file.ReadAt(block[:end-start], start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:end-start], '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}

// fileError adds the remedy to a failure, and marks those that time does not mend.
func fileError(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		return fmt.Errorf("%w; make room, and publishing goes on by itself", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return &PermanentError{Err: err, Remedy: "let the user that binlogd runs as write to the file and its directory, or change publish.file.path"}
	case errors.Is(err, fs.ErrNotExist):
		return &PermanentError{Err: err, Remedy: "create the directory, or change publish.file.path"}
	default:
		return err
	}
}
