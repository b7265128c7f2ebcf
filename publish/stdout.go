package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/binlogd/binlogd/mapping"
)

// StdoutOptions are the options of the stdout sink; there are none yet.
type StdoutOptions struct{}

// stdoutChunk is how many bytes of lines are gathered for one write.
const stdoutChunk = 64 << 10

// Stdout writes each event as one line. Durable means handed to the operating system:
// whoever reads the other end of a pipe must keep the events. A reader that has gone
// away (EPIPE) is a permanent error, a full disk behind a redirection is retryable; in
// neither case is a line torn by the retry.
type Stdout struct {
	// Writing happens in a goroutine of its own, because a write into a pipe that
	// nobody reads blocks for ever and a cancelled Publish must return.
	lines   chan []byte
	written chan writeResult

	buf     []byte // lines that are not written
	writing bool   // buf belongs to the goroutine
	torn    bool   // buf starts in the middle of a line
	batch   *Batch
	ends    []lineEnd // where lines of batch end in buf, in order
}

// lineEnd says that the line of batch.Events[event] ends before buf[at].
type lineEnd struct{ event, at int }

type writeResult struct {
	n   int
	err error
}

// NewStdout returns a sink that writes to w. Close does not close w.
func NewStdout(w io.Writer) *Stdout {
	s := &Stdout{lines: make(chan []byte), written: make(chan writeResult, 1)}
	go func() {
		defer close(s.written)
		for p := range s.lines {
			n, err := w.Write(p)
			if err == nil && n < len(p) {
				err = io.ErrShortWrite
			}
			s.written <- writeResult{n, err}
		}
	}()
	return s
}

// Publish writes the events of b and returns when the last write has.
func (s *Stdout) Publish(ctx context.Context, b *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.batch != b {
		s.batch, s.ends = b, s.ends[:0]
	}
	// What an earlier call left over goes out first: it may be the rest of a line.
	if err := s.flush(ctx); err != nil {
		return err
	}
	for i := range b.Events {
		if b.Confirmed(i) {
			continue
		}
		if err := checkLine(&b.Events[i]); err != nil {
			return errors.Join(s.flush(ctx), err)
		}
		s.buf = append(append(s.buf, b.Events[i].Payload...), '\n')
		s.ends = append(s.ends, lineEnd{i, len(s.buf)})
		if len(s.buf) >= stdoutChunk {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return s.flush(ctx)
}

// flush writes buf and confirms the events whose lines are out.
func (s *Stdout) flush(ctx context.Context) error {
	if len(s.buf) == 0 {
		return nil
	}
	if !s.writing {
		s.lines <- s.buf
		s.writing = true
	}
	var r writeResult
	select {
	case r = <-s.written:
	case <-ctx.Done():
		return fmt.Errorf("write events to standard output: %w", context.Cause(ctx))
	}
	s.writing = false

	done := 0
	for _, e := range s.ends {
		if e.at > r.n {
			break
		}
		s.batch.Confirm(e.event)
		done++
	}
	s.ends = append(s.ends[:0], s.ends[done:]...)
	if r.err == nil {
		s.buf, s.torn = s.buf[:0], false
		return nil
	}
	if r.n > 0 {
		s.torn = s.buf[r.n-1] != '\n'
	}
	if s.torn {
		// Keep the rest of that line, and forget the lines after it.
		end := r.n + bytes.IndexByte(s.buf[r.n:], '\n') + 1
		s.buf = append(s.buf[:0], s.buf[r.n:end]...)
		if s.ends = s.ends[:min(len(s.ends), 1)]; len(s.ends) == 1 {
			s.ends[0].at = len(s.buf)
		}
	} else {
		s.buf, s.ends = s.buf[:0], s.ends[:0]
	}
	err := fmt.Errorf("write events to standard output: %w", r.err)
	if errors.Is(r.err, syscall.EPIPE) || errors.Is(r.err, io.ErrClosedPipe) {
		return &PermanentError{Err: err, Remedy: "the program that reads the events has ended; start it again, and binlogd continues from its checkpoint"}
	}
	return err
}

// Ping returns nil: whether anybody reads shows only in writing.
func (s *Stdout) Ping(context.Context) error { return nil }

// Close lets go of the writer. A write that is stuck is not waited for.
func (s *Stdout) Close() error {
	close(s.lines)
	if !s.writing {
		<-s.written
	}
	return nil
}

// checkLine refuses an event that would not be one line.
func checkLine(e *mapping.Event) error {
	if bytes.IndexByte(e.Payload, '\n') < 0 {
		return nil
	}
	return &PermanentError{
		Event:  e,
		Err:    errors.New("the payload holds a line break, so it cannot be written as one line"),
		Remedy: "this is a fault of the mapping; please report it with the table's rule",
	}
}
