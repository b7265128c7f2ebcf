package testenv

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is a TCP proxy that can cut, refuse and swallow.
type Proxy struct {
	Addr string // 127.0.0.1:port

	target    atomic.Pointer[string]
	swallowed atomic.Bool
	wg        sync.WaitGroup // all goroutines

	mu       sync.Mutex
	closed   bool
	listener net.Listener // nil while refusing
	conns    map[net.Conn]struct{}
}

// NewProxy starts a proxy in front of target ("host:port"). It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{conns: map[net.Conn]struct{}{}}
	p.target.Store(&target)
	if err := p.listen("127.0.0.1:0"); err != nil {
		t.Fatalf("testenv: start a proxy: %v", err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.stopListening()
		p.cut()
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) listen(addr string) error {
	listener, err := net.Listen("tcp", addr) //nolint:noctx // returns at once
	if err != nil {
		return err
	}
	p.Addr, p.listener = listener.Addr().String(), listener
	p.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	return nil
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", *p.target.Load()) //nolint:noctx // on this machine: returns at once
	if err != nil {
		client.Close()
		return
	}
	if !p.track(client, server) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.carry(server, client)
	}()
	p.carry(client, server)
	<-done
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// track notes the two ends of a connection for cut; after the end it closes them.
func (p *Proxy) track(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	if p.closed {
		p.cut()
	}
	return !p.closed
}

// carry brings bytes from one end to the other until an end is closed, then closes both.
func (p *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if p.swallowed.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// SetTarget changes where new connections go.
func (p *Proxy) SetTarget(target string) { p.target.Store(&target) }

// Cut closes all connections. New ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for conn := range p.conns {
		conn.Close()
	}
}

// Refuse closes all connections and lets new ones be refused, or ends that.
func (p *Proxy) Refuse(t testing.TB, refuse bool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !refuse {
		if p.listener == nil {
			if err := p.listen(p.Addr); err != nil {
				t.Fatalf("testenv: let the proxy listen again: %v", err)
			}
		}
		return
	}
	p.stopListening()
	p.cut()
}

func (p *Proxy) stopListening() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Blackhole swallows what either side sends, on all connections, old and new, without
// closing them: a network that has silently stopped. Ending it closes them, for their
// streams have holes.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !on && p.swallowed.Load() {
		p.cut()
	}
	p.swallowed.Store(on)
}
