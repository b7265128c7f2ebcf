package publish

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// connections dials for a client library and keeps track of what it dialled, so that the
// end of a context breaks off whatever the library has under way: neither sarama nor
// go-redis lets a context into a dial, read or write that has begun.
type connections struct {
	dialTimeout time.Duration

	mu      sync.Mutex
	breaks  map[*breaker]struct{} // what to break off
	refused error                 // why dials are refused; nil normally
	epoch   int                   // grows when a watch ends
}

// breaker breaks off one dial or connection.
type breaker struct{ off func() }

func newConnections(dialTimeout time.Duration) *connections {
	return &connections{dialTimeout: dialTimeout, breaks: make(map[*breaker]struct{})}
}

// watch breaks every connection once ctx ends, and refuses dials from then on, until
// release is called. Connections that are made afterwards are not affected.
func (c *connections) watch(ctx context.Context) (release func()) {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.breakAll(epoch, context.Cause(ctx)) })
	return func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.epoch++
		c.refused = nil
	}
}

func (c *connections) breakAll(epoch int, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return // the watch has ended meanwhile
	}
	c.refused = cause
	for b := range c.breaks {
		b.off()
	}
}

// Dial is golang.org/x/net/proxy.Dialer, which sarama asks for.
func (c *connections) Dial(network, address string) (net.Conn, error) {
	return c.DialContext(context.Background(), network, address)
}

// DialContext connects within the dial timeout.
func (c *connections) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.dialTimeout)
	defer cancel()
	dialling := &breaker{cancel}
	if err := c.add(dialling); err != nil {
		return nil, err
	}
	defer c.remove(dialling)

	conn, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("dial %s: %s is not TCP", address, network), conn.Close())
	}
	tracked := &trackedConn{TCPConn: tcp, from: c, breaker: &breaker{func() { _ = tcp.Close() }}}
	if err := c.add(tracked.breaker); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tracked, nil
}

func (c *connections) add(b *breaker) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused != nil {
		return fmt.Errorf("dial: %w", c.refused)
	}
	c.breaks[b] = struct{}{}
	return nil
}

func (c *connections) remove(b *breaker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.breaks, b)
}

// trackedConn is forgotten when it is closed. It is a syscall.Conn, through which go-redis
// looks whether the server has closed an idle connection.
type trackedConn struct {
	*net.TCPConn
	from    *connections
	breaker *breaker
}

func (t *trackedConn) Close() error {
	t.from.remove(t.breaker)
	if err := t.TCPConn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil // it was broken off before
}
