package checkpoint

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// fileLock is an exclusive lock that the kernel gives up when the process ends, however
// it ends. The lock's file says who holds it, and stays: removing it would let two
// processes lock two files of one name.
type fileLock struct {
	file *os.File
}

// lockFile takes the lock. The error is a *LockedError without a Place when another
// open file holds it.
func lockFile(path string, by Holder) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		holder := readHolder(f)
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Holder: holder}
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	if err := writeHolder(f, by); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &fileLock{file: f}, nil
}

// release gives the lock up by name: closing alone would leave it to whoever inherited the open file, as a process that is
// just being started has for a moment.
func (l *fileLock) release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func writeHolder(f *os.File, h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(text, '\n'), 0)
	return err
}

// readHolder returns the zero Holder where the holder has not written itself down whole:
// knowing it is a courtesy.
func readHolder(f *os.File) Holder {
	var h Holder
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}
