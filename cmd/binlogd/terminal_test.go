package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/binlogd/binlogd/internal/testenv"
)

// openTerminal opens a pseudo-terminal of 200 columns: user is the end where a person sits, program the other.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = user.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 200}))
	return user, program
}

// onTerminal runs binlogd with its standard output and error on a terminal.
func onTerminal(t *testing.T, args ...string) (d *daemon, screen *buffer) {
	t.Helper()
	user, program := openTerminal(t)
	screen = &buffer{}
	go func() { _, _ = io.Copy(screen, user) }() // until the program's end is closed
	d = &daemon{cmd: exec.CommandContext(t.Context(), os.Args[0], args...), ended: make(chan struct{})}
	d.cmd.Dir = t.TempDir()
	d.cmd.Env = append(os.Environ(), runAsBinlogd+"=1", "NO_COLOR=")
	d.cmd.Stdout, d.cmd.Stderr = program, program
	require.NoError(t, d.cmd.Start())
	require.NoError(t, program.Close())
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // the tests look at ProcessState
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
	})
	return d, screen
}

func TestRunOnATerminalShowsOneLivingLine(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	d, screen := onTerminal(t, "run", "--source", fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, s.server.Addr, s.database))
	eventually(t, func() bool { return strings.Contains(screen.String(), "0 events · 0/s · lag ") }, "the living line")
	s.insert(t, 1)
	eventually(t, func() bool { return strings.Contains(screen.String(), "1 events · ") }, "the event in the living line")
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), screen.String())
	eventually(t, func() bool { return strings.Contains(screen.String(), "msg=stopped") }, "the last line of the log")

	// The line is drawn in place: it never stands before the end of a line, and is gone at the end.
	for line := range strings.SplitSeq(screen.String(), "\r\n") {
		erased := strings.Split(line, eraseLine)
		require.NotContains(t, erased[len(erased)-1], " in flight · at ", line)
	}
	require.Regexp(t, regexp.MustCompile(`(?m)^\{"specversion".*\}\r$`), strings.ReplaceAll(screen.String(), eraseLine, "\n"), "the event has a line of its own")
}

func TestTailOnATerminalMarksWhatChanged(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	d, screen := onTerminal(t, "tail", "--source", fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, s.server.Addr, s.database))
	eventually(t, func() bool { return strings.Contains(screen.String(), "reading the binlog") }, "the start")
	s.insert(t, 1)
	s.server.Exec(t, "UPDATE `"+s.database+"`.orders SET state = 'paid'")
	changed := "\x1b[1;33mstate:\x1b[0m \x1b[31m\"new\"\x1b[0m → \x1b[32m\"paid\"\x1b[0m"
	eventually(t, func() bool { return strings.Contains(screen.String(), changed) }, "the change in colour")
	require.Contains(t, screen.String(), "\x1b[2mid: 1\x1b[0m", "what did not change is dim")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
}

func TestShellCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := command(t, nil, "completion", shell)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "__complete", shell)
	}
	for _, test := range []struct {
		words []string
		want  []string
	}{
		{[]string{"ch"}, []string{"check\t", "checkpoint\t"}},
		{[]string{"checkpoint", "s"}, []string{"show\t"}},
		{[]string{"run", "--start", ""}, []string{"latest", "earliest"}},
		{[]string{"check", "-o", ""}, []string{"text", "json"}},
		{[]string{"tail", "--color", ""}, []string{"auto", "always", "never"}},
		{[]string{"run", "--log-format", ""}, []string{"text", "json"}},
		{[]string{"run", "--log-level", ""}, []string{"debug", "error"}},
	} {
		code, stdout, stderr := command(t, nil, append([]string{"__complete"}, test.words...)...)
		require.Equal(t, exitOK, code, stderr)
		for _, want := range test.want {
			require.Contains(t, stdout, want, test.words)
		}
	}
}
