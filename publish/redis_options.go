package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisOptions are the options of the Redis Streams sink. Redis 5 or newer is needed.
type RedisOptions struct {
	Address  string      `yaml:"address"` // host:port
	Username string      `yaml:"username"`
	Password string      `yaml:"password"`
	DB       int         `yaml:"db"`
	TLS      *TLSOptions `yaml:"tls"`
	// MaxLen is about how many entries a stream keeps; 0, the default, keeps all.
	MaxLen int64 `yaml:"max_len"`
	// MaxAge is about how long a stream keeps entries; 0, the default, keeps all. Redis 6.2
	// or newer is needed for it. MaxLen and MaxAge exclude each other, as in XADD.
	MaxAge time.Duration `yaml:"max_age"`
	// Deduplicate is for how long the server remembers ids so that a repeated event is not
	// appended again; 0, the default, appends repeats too.
	Deduplicate time.Duration `yaml:"deduplicate"`
	// Timeout is how long the server may take to answer; 10 s by default.
	Timeout time.Duration `yaml:"timeout"`
	// ExactlyOnce publishes events together with the checkpoint, which is kept on the same
	// server.
	ExactlyOnce bool `yaml:"exactly_once"`
}

// redisDialTimeout is also how long Ping may take, whatever it waits for.
const redisDialTimeout = 5 * time.Second

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *RedisOptions) Validate() error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("publish.redis.address: %q is not an address; write host:port, for example 127.0.0.1:6379", o.Address)
	}
	if o.DB < 0 {
		return fmt.Errorf("publish.redis.db: %d is negative; write the number of a database, 0 by default", o.DB)
	}
	if o.MaxLen < 0 {
		return fmt.Errorf("publish.redis.max_len: %d is negative; write how many entries a stream keeps, or leave it out to keep all", o.MaxLen)
	}
	if o.Timeout != 0 && o.Timeout < 100*time.Millisecond {
		return fmt.Errorf("publish.redis.timeout: %s is too short; write at least 100ms, for example 10s", o.Timeout)
	}
	if o.Username != "" && o.Password == "" {
		return errors.New("publish.redis.password: is missing beside a username; write it, for example as ${REDIS_PASSWORD}")
	}
	switch {
	case o.MaxAge != 0 && o.MaxAge < time.Second:
		return fmt.Errorf("publish.redis.max_age: %s is too short; write how long a stream keeps entries, for example 72h, or leave it out to keep all", o.MaxAge)
	case o.MaxAge != 0 && o.MaxLen != 0:
		return errors.New("publish.redis.max_age: excludes max_len, as Redis trims a stream by one of them; leave one out")
	case o.Deduplicate != 0 && o.Deduplicate < time.Second:
		return fmt.Errorf("publish.redis.deduplicate: %s is too short; write for how long repeats are kept out, for example 24h, or leave it out", o.Deduplicate)
	case o.Deduplicate != 0 && o.ExactlyOnce:
		return errors.New("publish.redis.deduplicate: is of no use with exactly_once, which repeats nothing; leave one out")
	}
	_, err := o.TLS.Config("publish.redis.tls", "")
	return err
}

func (o *RedisOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return 10 * time.Second
	}
	return o.Timeout
}

// client returns a client that uses one connection and never repeats anything by itself:
// what is repeated, and in which order, is the sink's business.
func (o *RedisOptions) client(conns *connections) (*redis.Client, error) {
	tlsConfig, err := o.TLS.Config("publish.redis.tls", "")
	if err != nil {
		return nil, err
	}
	return redis.NewClient(&redis.Options{
		Addr:     o.Address,
		Username: o.Username,
		Password: o.Password,
		DB:       o.DB,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, conns, tlsConfig, network, address)
		},
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              redisDialTimeout,
		ReadTimeout:              o.timeout(),
		WriteTimeout:             o.timeout(),
		ContextTimeoutEnabled:    true,
		PoolSize:                 1,
		PipelinePoolSize:         1,
		DisableIdentity:          true, // CLIENT SETINFO needs a right that is not needed otherwise
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), nil
}

// dialTLS dials, and secures the connection unless config is nil.
func dialTLS(ctx context.Context, conns *connections, config *tls.Config, network, address string) (net.Conn, error) {
	conn, err := conns.DialContext(ctx, network, address)
	if err != nil || config == nil {
		return conn, err
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		config = config.Clone()
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("secure the connection to %s: %w", address, err), conn.Close())
	}
	return secured, nil
}
