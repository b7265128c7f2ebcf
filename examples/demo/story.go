package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// story tells a person what happens, step by step, and how long it took.
type story struct {
	out   io.Writer
	color bool

	number int
	since  time.Time // the step began
}

const width = 100 // columns up to and including the times at the right

// step begins a step: what is done, and why it matters.
func (s *story) step(title, why string) {
	s.number++
	s.since = time.Now()
	fmt.Fprintf(s.out, "\n%s %s\n", s.paint("1;36", fmt.Sprintf("%2d", s.number)), s.paint("1", title))
	if why != "" {
		fmt.Fprintf(s.out, "   %s\n", s.paint("2", why))
	}
}

// done notes something achieved, with the seconds since the step began.
func (s *story) done(format string, args ...any) { s.line("32", "✓", format, args...) }

// note tells of something on the way.
func (s *story) note(format string, args ...any) { s.line("36", "·", format, args...) }

// crash tells of something done on purpose that would be a disaster elsewhere.
func (s *story) crash(format string, args ...any) { s.line("31", "✗", format, args...) }

func (s *story) line(color, sign, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	elapsed := fmt.Sprintf("%.1f s", time.Since(s.since).Seconds())
	gap := max(2, width-5-utf8.RuneCountInString(text)-len(elapsed))
	fmt.Fprintf(s.out, "   %s %s%s%s\n", s.paint(color, sign), text, strings.Repeat(" ", gap), s.paint("2", elapsed))
}

func (s *story) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// count writes a number the way people read them: 12,345.
func count(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
