package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Options choose one sink. They are the publish section of the configuration.
type Options struct {
	Kafka  *KafkaOptions  `yaml:"kafka"`
	Redis  *RedisOptions  `yaml:"redis"`
	File   *FileOptions   `yaml:"file"`
	Stdout *StdoutOptions `yaml:"stdout"`
}

// Deps is what a sink needs from the process around it.
type Deps struct {
	Stdout io.Writer // where the stdout sink writes
	Logger *slog.Logger
}

// Validate returns an error that names the YAML key at fault and says what to write.
func (o Options) Validate() error {
	var chosen []string
	var err error
	if o.Kafka != nil {
		chosen, err = append(chosen, "kafka"), errors.Join(err, o.Kafka.Validate())
	}
	if o.Redis != nil {
		chosen, err = append(chosen, "redis"), errors.Join(err, o.Redis.Validate())
	}
	if o.File != nil {
		chosen, err = append(chosen, "file"), errors.Join(err, o.File.Validate())
	}
	if o.Stdout != nil {
		chosen = append(chosen, "stdout")
	}
	switch len(chosen) {
	case 0:
		return errors.New("publish: no sink is configured; write exactly one of kafka, redis, file and stdout, for example `publish: {stdout: {}}`")
	case 1:
		return err
	default:
		return fmt.Errorf("publish: %s are configured together; keep exactly one", strings.Join(chosen, " and "))
	}
}

// Describe names the sink and its address for logs and status; it never holds a secret.
func (o Options) Describe() string {
	switch {
	case o.Kafka != nil:
		return "kafka " + strings.Join(o.Kafka.Brokers, ",")
	case o.Redis != nil:
		return fmt.Sprintf("redis %s/%d", o.Redis.Address, o.Redis.DB)
	case o.File != nil:
		return "file " + o.File.Path
	case o.Stdout != nil:
		return "stdout"
	default:
		return "no sink"
	}
}

// ExactlyOnce reports whether events are published together with the checkpoint.
func (o Options) ExactlyOnce() bool {
	return o.Kafka != nil && o.Kafka.ExactlyOnce || o.Redis != nil && o.Redis.ExactlyOnce
}

// Open opens the sink that o chooses. It validates o first. A broker is not contacted
// before the first Ping or Publish, so that one that is away does not keep binlogd from
// starting; a file is opened, locked and repaired at once.
func Open(_ context.Context, o Options, deps Deps) (Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	logger := deps.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Kafka != nil:
		return OpenKafka(*o.Kafka, logger)
	case o.Redis != nil:
		return OpenRedis(*o.Redis, logger)
	case o.File != nil:
		return OpenFile(*o.File, logger)
	default:
		return NewStdout(deps.Stdout), nil
	}
}
