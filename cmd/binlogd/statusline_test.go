package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// terminalLine is a status line that takes a file for a terminal.
func terminalLine(t *testing.T) (line *statusLine, shown func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return &statusLine{out: file, file: file}, func() string {
		text, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return string(text)
	}
}

func TestTheLivingLineStaysBelowTheLog(t *testing.T) {
	t.Parallel()
	line, shown := terminalLine(t)
	line.show("1 event")
	_, err := line.Write([]byte("log\n"))
	require.NoError(t, err)
	line.show("2 events")
	line.clear()
	_, err = line.Write([]byte("end\n"))
	require.NoError(t, err)
	line.show("never")
	const erase = "\r\x1b[2K"
	require.Equal(t, erase+"1 event"+erase+"log\n1 event"+erase+"2 events"+erase+"end\n", shown())
}

func TestTheLivingLineWaitsForTheEndOfALine(t *testing.T) {
	t.Parallel()
	line, shown := terminalLine(t)
	_, err := line.Write([]byte("Password: "))
	require.NoError(t, err)
	line.show("1 event")
	require.Equal(t, "Password: ", shown())
}

func TestNoLineWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	line := newStatusLine(&out)
	require.False(t, line.living())
	line.show("1 event")
	_, err := line.Write([]byte("log\n"))
	require.NoError(t, err)
	line.clear()
	require.Equal(t, "log\n", out.String())
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := progress{Connected: true, Events: 12, Lag: 1234 * time.Millisecond, Position: "binlog.000001:4", InFlightBytes: 3 << 19}
	require.Equal(t, "12 events · 3/s · lag 1.2s · 1.5 MiB in flight · at binlog.000001:4", p.line(3.2))
	p.Connected = false
	require.Equal(t, "12 events · 0/s · lag 1.2s · not connected", p.line(0))
	p.LastError = "connection refused"
	require.Equal(t, "12 events · 0/s · lag 1.2s · connection refused", p.line(0))
}
