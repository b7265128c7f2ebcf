package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// statusLine is a writer that keeps one living line below what is written: it takes the
// line away before other output and puts it back after. Not on a terminal it is a plain
// writer. Safe for concurrent use.
type statusLine struct {
	mu       sync.Mutex
	out      io.Writer
	file     *os.File // out, where it is a terminal
	text     string
	midLine  bool // the last write ended without a line's end
	finished bool
}

func newStatusLine(out io.Writer) *statusLine {
	s := &statusLine{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.file = file
	}
	return s
}

// living reports whether there is a terminal to show a line on.
func (s *statusLine) living() bool { return s.file != nil }

const eraseLine = "\r\x1b[2K"

// Write puts p above the line.
func (s *statusLine) Write(p []byte) (int, error) { return s.writeTo(s.out, p) }

// above returns a writer to out that keeps the line below what is written, for an out that
// is the same terminal: events on standard output.
func (s *statusLine) above(out io.Writer) io.Writer {
	if file, ok := out.(*os.File); !ok || !s.living() || !term.IsTerminal(int(file.Fd())) {
		return out
	}
	return writerFunc(func(p []byte) (int, error) { return s.writeTo(out, p) })
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (s *statusLine) writeTo(out io.Writer, p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" && !s.midLine {
		if _, err := io.WriteString(s.out, eraseLine); err != nil {
			return 0, err
		}
	}
	n, err := out.Write(p)
	s.midLine = n > 0 && p[n-1] != '\n'
	if err == nil && s.text != "" && !s.midLine {
		_, err = io.WriteString(s.out, s.text)
	}
	return n, err
}

// show replaces the line, cut to the terminal's width so that it never wraps.
func (s *statusLine) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.midLine || s.finished {
		return
	}
	if width, _, err := term.GetSize(int(s.file.Fd())); err == nil && width > 1 {
		if runes := []rune(text); len(runes) >= width {
			text = string(runes[:width-2]) + "…"
		}
	}
	s.text = text
	_, _ = io.WriteString(s.out, eraseLine+text)
}

// clear takes the line away for good.
func (s *statusLine) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" {
		_, _ = io.WriteString(s.out, eraseLine)
	}
	s.text, s.finished = "", true
}

// progress is what the living line and the summaries in the log tell of a run.
type progress struct {
	Connected     bool
	Events        uint64        // published since the start
	Transactions  uint64        // durable since the start, with and without events
	Lag           time.Duration // age of the newest durable commit; 0 when nothing waits
	Position      string
	InFlightBytes int64
	LastError     string // of the source or the sink, empty while all is well
}

// Intervals between redraws of the line and between summaries in the log.
const (
	statusInterval  = 500 * time.Millisecond
	summaryInterval = 30 * time.Second
)

// reportProgress shows how a run goes until ctx ends: as a living line on a terminal, as
// a line in the log now and then elsewhere.
func (a *app) reportProgress(ctx context.Context, snapshot func() progress) {
	interval := summaryInterval
	if a.status.living() {
		interval = statusInterval
		defer a.status.clear()
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	last, at := snapshot(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			p := snapshot()
			rate := float64(p.Events-last.Events) / now.Sub(at).Seconds()
			last, at = p, now
			if a.status.living() {
				a.status.show(p.line(rate))
				continue
			}
			a.logger.Info("progress", "events", p.Events, "transactions", p.Transactions, "events_per_second", int64(rate),
				"lag", p.Lag.Round(time.Millisecond), "position", p.Position, "in_flight_bytes", p.InFlightBytes, "connected", p.Connected)
		}
	}
}

// line is the living line.
func (p progress) line(rate float64) string {
	parts := []string{
		fmt.Sprintf("%d events", p.Events),
		fmt.Sprintf("%.0f/s", rate),
		"lag " + shortDuration(p.Lag),
		shortBytes(p.InFlightBytes) + " in flight",
		"at " + p.Position, // may be long, and is cut off then
	}
	switch {
	case p.LastError != "":
		parts = append(parts[:3], p.LastError)
	case !p.Connected:
		parts = append(parts[:3], "not connected")
	}
	return strings.Join(parts, " · ")
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func shortBytes(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
