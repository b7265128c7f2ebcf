package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// sink is where binlogd publishes to, looked at from the other side.
type sink interface {
	// config is the YAML below "publish:".
	config() string
	// count is the number of events in the sink.
	count(ctx context.Context) (int, error)
	// read returns all events, each table's in the order of the sink.
	read(ctx context.Context) ([]*event, error)
	// close gives up connections.
	close() error
}

// fileSink reads the lines of the embedded file sink.
type fileSink struct {
	path string

	lines  int   // whole lines before
	offset int64 // this place
}

func (s *fileSink) config() string { return fmt.Sprintf("file: {path: %q}", s.path) }

func (s *fileSink) count(context.Context) (int, error) {
	file, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // binlogd creates it
	}
	if err != nil {
		return 0, fmt.Errorf("open events: %w", err)
	}
	defer file.Close()
	// What stands after the last line's end may be cut off after a crash, and is not
	// counted.
	text, err := io.ReadAll(io.NewSectionReader(file, s.offset, 1<<40))
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	s.lines += bytes.Count(text, []byte("\n"))
	s.offset += int64(bytes.LastIndexByte(text, '\n') + 1)
	return s.lines, nil
}

func (s *fileSink) read(context.Context) ([]*event, error) {
	text, err := os.ReadFile(s.path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("read events: the last line of %s is torn", s.path)
	}
	var events []*event
	for line := range bytes.Lines(text) {
		e, err := parseEvent(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func (s *fileSink) close() error { return nil }
