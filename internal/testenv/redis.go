package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/binlogd/binlogd/internal/testenv/daemon"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// RedisOptions say how an own Redis server differs from the shared one.
type RedisOptions struct {
	// Args are further arguments of redis-server; they override the defaults.
	Args []string
}

// RedisServer is a Redis server with its append-only file on.
type RedisServer struct {
	Addr string // 127.0.0.1:port
	Port int

	instance
	client *redis.Client
}

// Redis returns the Redis server that the process's tests share. Tests keep to keys of
// their own (UniqueName).
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	return share(t, "redis", func(ctx context.Context) (*RedisServer, error) {
		return startRedis(ctx, RedisOptions{})
	})
}

// StartRedis starts a Redis server that is the test's own and ends with it.
func StartRedis(t testing.TB, o RedisOptions) *RedisServer {
	t.Helper()
	s, err := startRedis(t.Context(), o)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	destroyAfter(t, s)
	return s
}

func startRedis(ctx context.Context, o RedisOptions) (*RedisServer, error) {
	tree, err := fetch.Redis(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := env.newDir("redis")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for Redis: %w", err)
	}
	port, release, err := daemon.ReservePort()
	if err != nil {
		return nil, err
	}
	s := &RedisServer{Addr: daemon.Address(port), Port: port}
	s.release = release
	if s.spec, err = daemon.Redis(tree, dir, port, o.Args...); err != nil {
		return nil, err
	}
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr})
	if err := env.add(s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		env.remove(s)
		s.destroy()
		return nil, err
	}
	return s, nil
}

// Client is a client of the server; it is closed with the server.
func (s *RedisServer) Client() *redis.Client { return s.client }

func (s *RedisServer) destroy() {
	s.client.Close()
	s.instance.destroy()
}
