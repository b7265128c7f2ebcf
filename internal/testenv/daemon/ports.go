package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Ports below the kernel's range for outgoing connections, so that a server that is
// stopped for a while finds its port free when it comes back.
const firstPort, lastPort = 20000, 31999

// ReservePort returns a free TCP port of 127.0.0.1 that no other process using this
// package gets until release is called or the process ends.
func ReservePort() (port int, release func(), err error) {
	dir := filepath.Join(os.TempDir(), "binlogd-testenv-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, nil, fmt.Errorf("make the folder for port reservations: %w", err)
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return 0, nil, fmt.Errorf("reserve a port: %w", err)
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && free(port) {
			return port, func() { f.Close() }, nil
		}
		f.Close()
	}
	return 0, nil, errors.New("reserve a port: no free one found between 20000 and 31999 in 1000 tries")
}

// CheckPort returns an error when another program has the TCP port of 127.0.0.1.
func CheckPort(port int) error {
	if !free(port) {
		return fmt.Errorf("port %d of 127.0.0.1 is in use by another program; stop that first", port)
	}
	return nil
}

func free(port int) bool {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	return l.Close() == nil
}
