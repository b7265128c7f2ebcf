package checkpoint

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisOptions say where in Redis a checkpoint is kept. Redis 5 or newer is needed.
type RedisOptions struct {
	Address  string      `yaml:"address"` // host:port
	Username string      `yaml:"username"`
	Password string      `yaml:"password"`
	DB       int         `yaml:"db"`
	TLS      *TLSOptions `yaml:"tls"`
	// Prefix begins the names of the keys; "binlogd:" by default.
	Prefix string `yaml:"prefix"`
	// Replicas is how many replicas must have a save before it counts (WAIT); 0 by default.
	Replicas int `yaml:"replicas"`
	// Timeout is how long the server, and its replicas, may take to answer; 5 s by default.
	Timeout time.Duration `yaml:"timeout"`
}

const (
	defaultPrefix  = "binlogd:"
	defaultTimeout = 5 * time.Second
)

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *RedisOptions) Validate() error {
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("checkpoint.redis.address: %q is not an address; write host:port, for example 127.0.0.1:6379", o.Address)
	}
	if o.DB < 0 {
		return fmt.Errorf("checkpoint.redis.db: %d is negative; write the number of a database, 0 by default", o.DB)
	}
	if o.Replicas < 0 {
		return fmt.Errorf("checkpoint.redis.replicas: %d is negative; write how many replicas must have a save, 0 by default", o.Replicas)
	}
	if o.Timeout != 0 && o.Timeout < 100*time.Millisecond {
		return fmt.Errorf("checkpoint.redis.timeout: %s is too short; write at least 100ms, for example 5s", o.Timeout)
	}
	if o.Username != "" && o.Password == "" {
		return errors.New("checkpoint.redis.password: is missing beside a username; write it, for example as ${REDIS_PASSWORD}")
	}
	_, err = o.TLS.Config("checkpoint.redis.tls", host)
	return err
}

func (o *RedisOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

func (o *RedisOptions) prefix() string {
	if o.Prefix == "" {
		return defaultPrefix
	}
	return o.Prefix
}

// client returns a client that repeats nothing by itself.
func (o *RedisOptions) client() (*redis.Client, error) {
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, err
	}
	secure, err := o.TLS.Config("checkpoint.redis.tls", host)
	if err != nil {
		return nil, err
	}
	logging.Disable() // go-redis writes to standard error on its own; what matters is in its errors
	return redis.NewClient(&redis.Options{
		Addr: o.Address, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: secure,
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: o.timeout(), ReadTimeout: o.timeout(), WriteTimeout: o.timeout(), ContextTimeoutEnabled: true,
		PoolSize:                 1,
		DisableIdentity:          true, // CLIENT SETINFO needs a right that is not needed otherwise
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), nil
}
