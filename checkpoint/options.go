package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The kinds of stores.
const (
	KindFile  = "file"
	KindMySQL = "mysql"
	KindRedis = "redis"
	KindKafka = "kafka"
)

// Options say where a checkpoint is kept.
type Options struct {
	Store string `yaml:"store"` // a kind; file by default
	// Path is the file of the store file.
	Path string `yaml:"path"`
	// MySQL, Redis and Kafka are looked at where Store names them.
	MySQL *MySQLOptions `yaml:"mysql"`
	Redis *RedisOptions `yaml:"redis"`
	Kafka *KafkaOptions `yaml:"kafka"`
	// Lease is how long a checkpoint on a server stays with a process that is not heard of;
	// DefaultLease by default.
	Lease time.Duration `yaml:"lease"`
}

// shortestLease leaves time for a renewal or two.
const shortestLease = 500 * time.Millisecond

// Validate returns an error that names the YAML key at fault and says what to write.
func (o *Options) Validate() error {
	sections := map[string]bool{KindMySQL: o.MySQL != nil, KindRedis: o.Redis != nil, KindKafka: o.Kafka != nil}
	for _, kind := range []string{KindMySQL, KindRedis, KindKafka} {
		if sections[kind] && o.kind() != kind {
			return fmt.Errorf("checkpoint.%s: stands beside checkpoint.store: %s; write store: %[1]s to use it, or leave it out", kind, o.known())
		}
	}
	if o.Lease != 0 && o.Lease < shortestLease {
		return fmt.Errorf("checkpoint.lease: %s is too short; write at least %s, for example %s", o.Lease, shortestLease, DefaultLease)
	}
	if o.Remote() && o.Path != "" {
		return fmt.Errorf("checkpoint.path: is of the store file, and checkpoint.store is %s; leave it out", o.known())
	}
	switch kind := o.kind(); {
	case kind == KindFile:
		return nil
	case kind == KindMySQL && o.MySQL != nil:
		return o.MySQL.Validate()
	case kind == KindMySQL:
		return errors.New("checkpoint.mysql: is missing; write {address, user, password}")
	case kind == KindRedis && o.Redis != nil:
		return o.Redis.Validate()
	case kind == KindRedis:
		return errors.New("checkpoint.redis: is missing; write {address: 127.0.0.1:6379}")
	case kind == KindKafka && o.Kafka != nil:
		return o.Kafka.Validate()
	case kind == KindKafka:
		return errors.New("checkpoint.kafka: is missing; write {brokers: [127.0.0.1:9092]}")
	}
	return errors.New("checkpoint.store: write file, mysql, redis or kafka")
}

func (o *Options) kind() string {
	if o.Store == "" {
		return KindFile
	}
	return o.Store
}

func (o *Options) lease() time.Duration {
	if o.Lease == 0 {
		return DefaultLease
	}
	return o.Lease
}

// known is the kind, for messages, which quote no value that may have slipped into a wrong place.
func (o *Options) known() string {
	switch kind := o.kind(); kind {
	case KindFile, KindMySQL, KindRedis, KindKafka:
		return kind
	}
	return "something else"
}

// Remote reports whether the checkpoint is kept on a server.
func (o *Options) Remote() bool { return o.kind() != KindFile }

// Open takes the checkpoint of the named pipeline, or None where no path is given. The error is
// a *LockedError where another process has it. Of a server it first sees whether that one still
// lives: it waits for a third of the other's lease, or until that has run out.
func Open(ctx context.Context, o Options, name string, logger *slog.Logger) (Store, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if o.Remote() {
		b, err := o.backend(name)
		if err != nil {
			return nil, err
		}
		return openRemote(ctx, b, name, o.lease(), logger)
	}
	if o.Path == "" {
		return None{}, nil
	}
	file, err := OpenFile(o.Path, name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// View shows the checkpoint of the named pipeline without taking it.
func View(o Options, name string) (Reader, error) {
	if o.Remote() {
		b, err := o.backend(name)
		if err != nil {
			return nil, err
		}
		return &view{name: name, backend: b}, nil
	}
	if o.Path == "" {
		return None{}, nil
	}
	return ViewFile(o.Path, name), nil
}

func (o *Options) backend(name string) (backend, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	switch o.kind() {
	case KindMySQL:
		return newMySQL(*o.MySQL, name, o.lease())
	case KindRedis:
		return newRedis(*o.Redis, name)
	}
	return newKafka(*o.Kafka, name)
}
