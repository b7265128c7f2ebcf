package testenv_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// echo serves connections that are sent back what they send, after a greeting.
func echo(t *testing.T, greeting string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, greeting+"\n")
				io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

type line struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) line {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return line{conn, bufio.NewReader(conn)}
}

// read returns the next line; with a short limit where nothing is expected.
func (l line) read(limit time.Duration) (string, error) {
	l.SetReadDeadline(time.Now().Add(limit))
	return l.in.ReadString('\n')
}

func TestProxy(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echo(t, "one"))
	const long, short = 10 * time.Second, 50 * time.Millisecond

	expect := func(l line, want string) {
		t.Helper()
		got, err := l.read(long)
		require.NoError(t, err)
		require.Equal(t, want+"\n", got)
	}
	l := dial(t, p.Addr)
	expect(l, "one")
	io.WriteString(l, "hello\n")
	expect(l, "hello")

	p.Cut()
	_, err := l.read(long)
	require.ErrorIs(t, err, io.EOF)

	l = dial(t, p.Addr)
	expect(l, "one")
	p.Blackhole(true)
	io.WriteString(l, "lost\n")
	_, err = l.read(short)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither answered nor closed")
	deaf := dial(t, p.Addr)
	_, err = deaf.read(short)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no greeting")
	p.Blackhole(false)
	_, err = l.read(long)
	require.ErrorIs(t, err, io.EOF)

	p.Refuse(t, true)
	_, err = net.Dial("tcp", p.Addr)
	require.True(t, errors.Is(err, syscall.ECONNREFUSED), "%v", err)
	p.Refuse(t, false)
	p.SetTarget(echo(t, "two"))
	expect(dial(t, p.Addr), "two")
}
