package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

type checkpointConfig struct {
	// The path of a file is empty, and no checkpoint kept, in a quick look only.
	checkpoint.Options
	Interval time.Duration `yaml:"interval"` // at most one save in this time
}

// savePatience is how long a save is tried where the checkpoint is kept on a server, which
// may be restarted. Publishing goes on meanwhile.
const savePatience = 30 * time.Second

// completeCheckpoint fills in where the checkpoint is kept as far as the rest of the
// configuration says it: MySQL is the source, Redis and Kafka are those that events go to.
func (c *config) completeCheckpoint() {
	o := &c.Checkpoint.Options
	switch o.Store {
	case checkpoint.KindFile:
		if o.Path == "" && c.Name != "" {
			o.Path = c.Name + ".checkpoint"
		}
	case checkpoint.KindMySQL:
		if o.MySQL == nil {
			o.MySQL = &checkpoint.MySQLOptions{}
		}
		completeConnection(&o.MySQL.ConnectOptions, c.Source.ConnectOptions)
	case checkpoint.KindRedis:
		if p := c.Publish.Redis; o.Redis == nil && p != nil && !p.ExactlyOnce {
			o.Redis = &checkpoint.RedisOptions{Address: p.Address, Username: p.Username, Password: p.Password, DB: p.DB, TLS: (*checkpoint.TLSOptions)(p.TLS)}
		}
	case checkpoint.KindKafka:
		if p := c.Publish.Kafka; o.Kafka == nil && p != nil && !p.ExactlyOnce {
			o.Kafka = &checkpoint.KafkaOptions{Brokers: p.Brokers, ClientID: p.ClientID, TLS: (*checkpoint.TLSOptions)(p.TLS), SASL: (*checkpoint.SASLOptions)(p.SASL)}
		}
	}
}

// completeConnection takes from the source what is left out. An account of the source is
// none of another server.
func completeConnection(o *canal.ConnectOptions, source canal.ConnectOptions) {
	if o.Address == "" {
		o.Address = source.Address
		if o.User == "" && o.Password == "" {
			o.User, o.Password = source.User, source.Password
		}
		if o.TLS == (canal.TLSOptions{}) {
			o.TLS = source.TLS
		}
	}
	if o.TLS.Mode == "" {
		o.TLS.Mode = canal.TLSPreferred
	}
}

// patience is how long a save is tried before the run ends.
func (c *checkpointConfig) patience() time.Duration {
	if c.Remote() {
		return savePatience
	}
	return 0
}

// quietInterval is the shortest time between two saves while nothing is published: where the
// source keeps the checkpoint, each save is a transaction that the next one has to follow.
func (c *checkpointConfig) quietInterval() time.Duration {
	if c.Store == checkpoint.KindMySQL {
		return 10 * c.Interval
	}
	return 0
}

// excluded are patterns of tables that are not captured whatever events says: those that the
// configuration names, and those that checkpoints are kept in.
func (c *config) excluded() []string {
	return append(slices.Clone(c.Exclude), checkpoint.OwnTables)
}

// openStore takes the checkpoint that the configuration names.
func (a *app) openStore(ctx context.Context, cfg *config) (checkpoint.Store, error) {
	return checkpoint.Open(ctx, cfg.Checkpoint.Options, cfg.Name, a.logger)
}

// viewStore shows it without taking it.
func viewStore(cfg *config) (checkpoint.Reader, error) {
	return checkpoint.View(cfg.Checkpoint.Options, cfg.Name)
}

// noCheckpoint says that there is none where one is needed.
func noCheckpoint(place string, err error) error {
	return &checkpoint.AccessError{Op: "read", Place: place, Remedy: "`binlogd run` writes the first one; check the section checkpoint of the configuration", Err: err}
}

// checkpointPlace is where the checkpoint is kept, for people.
func (c *config) checkpointPlace() string {
	reader, err := viewStore(c)
	if err != nil {
		return fmt.Sprintf("in %s", c.Checkpoint.Store)
	}
	defer func() { _ = reader.Close() }() // nothing was connected
	return reader.Place()
}
