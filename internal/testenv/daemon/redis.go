package daemon

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// Redis is the Spec of a Redis server that logs every write to a file in dir before it
// answers. Args come after the defaults and override them.
func Redis(tree fetch.Tree, dir string, port int, args ...string) (Spec, error) {
	words, err := tree.Command("usr/bin/redis-server", append([]string{
		"--port", strconv.Itoa(port),
		"--bind", "127.0.0.1",
		"--dir", dir,
		"--appendonly", "yes",
		"--save", "", // the log is enough
	}, args...)...)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Name:       fmt.Sprintf("redis on port %d", port),
		Command:    words,
		Dir:        dir,
		Ready:      func(ctx context.Context) error { return pingRedis(ctx, port) },
		StartLimit: 30 * time.Second,
		StopLimit:  30 * time.Second,
	}, nil
}

// pingRedis speaks the protocol by hand: a client would log every refused connection.
func pingRedis(ctx context.Context, port int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", Address(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if answer != "+PONG\r\n" { // while it reads its log: -LOADING
		return fmt.Errorf("ping: %q", answer)
	}
	return nil
}
