package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
	"github.com/binlogd/binlogd/publish"
)

// defaultConfigFile is read when neither --config nor --source is given.
const defaultConfigFile = "binlogd.yaml"

// maxConfigSize keeps a wrong file from being parsed; thousands of tables fit.
const maxConfigSize = 4 << 20

// config is the whole configuration, from a file or from the flags of a quick look. The
// YAML keys of the parts are the contract with users.
type config struct {
	// Name names the pipeline: its checkpoint, and the source of its events.
	Name       string              `yaml:"name"`
	Source     sourceConfig        `yaml:"source"`
	Checkpoint checkpointConfig    `yaml:"checkpoint"`
	Publish    publish.Options     `yaml:"publish"`
	Admin      adminConfig         `yaml:"admin"`
	Limits     limitsConfig        `yaml:"limits"`
	Events     []mapping.TableRule `yaml:"events"`
	Exclude    []string            `yaml:"exclude"`
	// MaskKey is the secret of masks that hash.
	MaskKey string                `yaml:"mask_key"`
	located func(err error) error // adds file and line to an error that names a key
}

type sourceConfig struct {
	canal.ConnectOptions
	// Start is where to begin without a checkpoint, as canal.ParseStart reads it.
	Start string `yaml:"start"`
	// ServerID is the replica's id; 0 lets one be chosen.
	ServerID uint32 `yaml:"server_id"`
	// Heartbeat is how often an idle server is to say that it is alive.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// InvalidText is what becomes of bytes that are no text in their column's character set: stop or replace.
	InvalidText string `yaml:"invalid_text"`
}

type adminConfig struct {
	Listen string `yaml:"listen"` // host:port; off when empty
	// Token is what requests that change something must bring; without one there are none.
	Token string `yaml:"token"`
}

type limitsConfig struct {
	// InFlight bounds the bytes between the reader and the sink.
	InFlight size `yaml:"in_flight"`
	// Workers decode and map; 0 is one per CPU.
	Workers int `yaml:"workers"`
}

// The values of source.invalid_text.
const (
	invalidTextStop    = "stop"
	invalidTextReplace = "replace"
)

func (c sourceConfig) invalidText() canal.InvalidText {
	if c.InvalidText == invalidTextReplace {
		return canal.ReplaceInvalidText
	}
	return canal.StopOnInvalidText
}

// defaults is what an empty configuration amounts to.
func defaults() config {
	return config{
		Source: sourceConfig{
			ConnectOptions: canal.ConnectOptions{TLS: canal.TLSOptions{Mode: canal.TLSPreferred}, Timeout: canal.DefaultTimeout},
			Start:          "latest",
			Heartbeat:      canal.DefaultHeartbeat,
			InvalidText:    invalidTextStop,
		},
		Checkpoint: checkpointConfig{Options: checkpoint.Options{Store: checkpoint.KindFile}, Interval: 500 * time.Millisecond},
		Limits:     limitsConfig{InFlight: canal.DefaultMaxInFlight},
		located:    func(err error) error { return err },
	}
}

// laterKeys are keys that a later release brings, or that belong elsewhere. Ignoring them would publish something
// else than what their author expects.
var laterKeys = map[string]string{
	"events[].data":    "data belongs to a rule: emit: [{type: order.paid, on: update, data: {order_id: new.id}}]",
	"publish.rabbitmq": "RabbitMQ comes with a later release: write kafka, redis, file or stdout",
	"publish.rocketmq": "RocketMQ comes with a later release: write kafka, redis, file or stdout",
	"publish.nats":     "NATS comes with a later release: write kafka, redis, file or stdout",
}

// loadConfig reads and validates a configuration file. Its errors name file and line, and
// hold no values.
func loadConfig(path string, variables func(string) (string, bool)) (*config, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(document) > maxConfigSize {
		return nil, &locatedError{path, 0, fmt.Errorf("the file is larger than %s: it is no configuration", size(maxConfigSize))}
	}
	return parseConfig(path, document, variables)
}

func parseConfig(path string, document []byte, variables func(string) (string, bool)) (*config, error) {
	cfg := defaults()
	d := &yamlDecoder{file: path, variables: variables, later: laterKeys}
	if err := d.decode(document, &cfg); err != nil {
		return nil, err
	}
	cfg.located = d.locate
	if addresses := cfg.Source.Addresses; cfg.Source.Address == "" && len(addresses) > 0 {
		cfg.Source.Address = addresses[0]
	}
	if _, written := d.lines["checkpoint.store"]; cfg.Publish.ExactlyOnce() && !written {
		cfg.Checkpoint.Store = cfg.sinkStore()
	}
	cfg.completeCheckpoint()
	cfg.completeTogether()
	if err := cfg.validate(); err != nil {
		return nil, cfg.locateAll(err)
	}
	return &cfg, nil
}

var pipelineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// validate reports all mistakes, each beginning with the key that it is about.
func (c *config) validate() error {
	var mistakes []error
	mistake := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if c.Name != "" && !pipelineName.MatchString(c.Name) {
		mistake("name: write up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
	}
	_, startErr := canal.ParseStart(c.Source.Start)
	mistakes = append(mistakes, c.Source.Validate(), startErr, c.Checkpoint.Validate(), c.Publish.Validate(), c.validateTogether(), c.mapping().Validate())
	mistakes = append(mistakes, c.checkForms()...)
	if c.Source.Heartbeat < 100*time.Millisecond || c.Source.Heartbeat > time.Hour {
		mistake("source.heartbeat is %s: write a time from 100ms to 1h, such as 5s", c.Source.Heartbeat)
	}
	if c.Source.InvalidText != invalidTextStop && c.Source.InvalidText != invalidTextReplace {
		mistake("source.invalid_text: write stop, or replace to publish U+FFFD in the place of invalid bytes")
	}
	if c.Checkpoint.Interval < 0 {
		mistake("checkpoint.interval is %s: write a time such as 500ms", c.Checkpoint.Interval)
	}
	if c.Limits.InFlight < 1<<20 {
		mistake("limits.in_flight is %s: write at least 1MiB; 16MiB is the default", c.Limits.InFlight)
	}
	if c.Limits.Workers < 0 || c.Limits.Workers > 1024 {
		mistake("limits.workers is %d: write a number from 1 to 1024, or leave it out for one per CPU", c.Limits.Workers)
	}
	return errors.Join(mistakes...)
}

// checkForms refuses forms of events that the sink cannot carry.
func (c *config) checkForms() (mistakes []error) {
	if c.Publish.Kafka != nil {
		return nil
	}
	kind, _, _ := strings.Cut(c.Publish.Describe(), " ")
	for i := range c.Events {
		if c.Events[i].Envelope == mapping.EnvelopeBinary {
			mistakes = append(mistakes, fmt.Errorf("events[%d].envelope: binary needs Kafka's headers, which %s does not have: write cloudevents or row", i, kind))
		}
		if c.Events[i].Tombstones {
			mistakes = append(mistakes, fmt.Errorf("events[%d].tombstones: records without a value go with Kafka's compacted topics, which %s does not have: remove it", i, kind))
		}
	}
	return mistakes
}

// mapping is what the mapper needs.
func (c *config) mapping() mapping.Options {
	return mapping.Options{Name: c.Name, Tables: c.Events, Exclude: c.excluded(), MaskKey: c.MaskKey}
}

// locateAll adds file and line to each of several joined errors.
func (c *config) locateAll(err error) error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return c.located(err)
	}
	var located []error
	for _, err := range joined.Unwrap() {
		located = append(located, c.locateAll(err))
	}
	return errors.Join(located...)
}

// String is for people and logs; it holds no secrets.
func (c config) String() string {
	var tables []string
	for i := range c.Events {
		_, patterns := c.Events[i].Patterns()
		tables = append(tables, patterns...)
	}
	return fmt.Sprintf("%s: %s from %s to %s, checkpoint %s", c.Name, strings.Join(tables, " "), c.Source.ConnectOptions, c.Publish.Describe(), c.checkpointPlace())
}

// LogValue is String: a logged configuration holds no secrets either.
func (c config) LogValue() slog.Value { return slog.StringValue(c.String()) }
