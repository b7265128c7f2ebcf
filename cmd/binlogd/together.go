package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/pipeline"
	"github.com/binlogd/binlogd/publish"
)

// sinkStore is the kind of store that the checkpoint is in where it goes with the events.
func (c *config) sinkStore() string {
	if c.Publish.Kafka != nil {
		return checkpoint.KindKafka
	}
	return checkpoint.KindRedis
}

// completeTogether fills in where the checkpoint is kept where it goes with the events.
func (c *config) completeTogether() {
	o := &c.Checkpoint.Options
	if !c.Publish.ExactlyOnce() || o.Store != c.sinkStore() {
		return
	}
	if p := c.Publish.Kafka; p != nil {
		if o.Kafka == nil {
			o.Kafka = &checkpoint.KafkaOptions{}
		}
		k := o.Kafka
		if len(k.Brokers) == 0 {
			k.Brokers, k.ClientID, k.TLS, k.SASL = p.Brokers, p.ClientID, (*checkpoint.TLSOptions)(p.TLS), (*checkpoint.SASLOptions)(p.SASL)
		}
		if k.ReplicationFactor == 0 {
			k.ReplicationFactor = p.ReplicationFactor
		}
		prefix := p.TransactionalIDPrefix
		if prefix == "" {
			prefix = k.ChosenTopic() + "/"
		}
		k.TransactionalID = prefix + c.Name
		p.TransactionalID = k.TransactionalID
		return
	}
	p := c.Publish.Redis
	if o.Redis == nil {
		o.Redis = &checkpoint.RedisOptions{}
	}
	if r := o.Redis; r.Address == "" {
		r.Address, r.Username, r.Password, r.DB, r.TLS = p.Address, p.Username, p.Password, p.DB, (*checkpoint.TLSOptions)(p.TLS)
	}
}

// validateTogether refuses a checkpoint elsewhere than where events go that it goes with.
func (c *config) validateTogether() error {
	if !c.Publish.ExactlyOnce() {
		return nil
	}
	kind := c.sinkStore()
	if c.Checkpoint.Store != kind {
		return fmt.Errorf("checkpoint.store: publish.%s.exactly_once keeps the checkpoint where the events go; write store: %[1]s, or leave it out", kind)
	}
	if o := c.Checkpoint.Kafka; o != nil && kind == checkpoint.KindKafka && !slices.Equal(o.Brokers, c.Publish.Kafka.Brokers) {
		return errors.New("checkpoint.kafka.brokers: with publish.kafka.exactly_once they are those of publish.kafka; leave it out")
	}
	if o := c.Checkpoint.Redis; o != nil && kind == checkpoint.KindRedis && (o.Address != c.Publish.Redis.Address || o.DB != c.Publish.Redis.DB) {
		return errors.New("checkpoint.redis.address: with publish.redis.exactly_once it is that of publish.redis; leave it out")
	}
	return nil
}

// openTogether opens the sink, and takes the checkpoint that is kept in it. Both are to be
// closed, the store first.
func (a *app) openTogether(ctx context.Context, cfg *config) (publish.Sink, checkpoint.Store, *pipeline.Together, error) {
	sink, err := publish.Open(ctx, cfg.Publish, publish.Deps{Logger: a.logger})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open the sink %s: %w", cfg.Publish.Describe(), err)
	}
	together := &pipeline.Together{Bytes: togetherBytes}
	switch s := sink.(type) {
	case *publish.Kafka:
		together.Events, together.Linger = cfg.Publish.Kafka.TransactionLimits()
		together.Carrier = s
		together.Store, err = checkpoint.OpenInKafka(ctx, cfg.Checkpoint.Options, cfg.Name, s, a.logger)
	case *publish.Redis:
		together.Events, together.Linger = publish.RedisTransactionEvents, publish.RedisTransactionLinger
		together.Carrier = s
		together.Store, err = checkpoint.OpenInRedis(ctx, cfg.Checkpoint.Options, cfg.Name, s, a.logger)
	default:
		err = fmt.Errorf("%s cannot hold the checkpoint", cfg.Publish.Describe())
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, sink.Close())
	}
	return sink, together.Store, together, nil
}

// togetherBytes of payload end a batch.
const togetherBytes = 8 << 20

// runTogether is runUntilStopped where the checkpoint is kept where the events go.
func (a *app) runTogether(ctx context.Context, cfg *config) (err error) {
	sink, store, together, err := a.openTogether(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(), sink.Close()) }()
	record, err := store.Load(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		record, err = a.carryOver(ctx, cfg, store)
	}
	if err != nil {
		return err
	}
	a.warnOfStore(ctx, store)
	if err := a.awaitReady(ctx, cfg, record, sink); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it waited
		}
		return err
	}
	return a.publish(ctx, cfg, record, store, sink, together)
}

// carryOver makes the checkpoint's file of the time before exactly_once, where there is one in its usual place, the first
// checkpoint in store: to begin afresh beside it would pass over changes, or publish them again. It returns nil where there is
// none. The file is given another name, so that nobody takes it for the checkpoint.
func (a *app) carryOver(ctx context.Context, cfg *config, store checkpoint.Store) (record *checkpoint.Record, err error) {
	path := cfg.Name + ".checkpoint"
	if _, err := os.Stat(path); err != nil {
		return nil, nil //nolint:nilerr,nilnil // there is none
	}
	file, err := checkpoint.OpenFile(path, cfg.Name) // its lock keeps out who would go on with it
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if record, err = file.Load(ctx); err != nil {
		return nil, err
	}
	schemas, err := file.SchemaEntries(ctx)
	if err != nil {
		return nil, err
	}
	history := store.Schemas()
	if _, err := history.Load(ctx, 0); err != nil { // what an attempt before left
		return nil, err
	}
	if len(schemas) > 0 {
		if err := history.Append(ctx, schemas); err != nil {
			return nil, err
		}
	}
	if _, err := store.Move(ctx, record, checkpoint.Move{Action: checkpoint.ActionImport, Reason: "carried over from " + path}); err != nil {
		return nil, err
	}
	a.logger.Info("the checkpoint was carried over to where the events go; what was published since it was saved comes once more, with the same ids",
		"from", path, "to", store.Place(), "at", describePosition(record.Position))
	if err := os.Rename(path, path+carriedSuffix); err != nil {
		return nil, fmt.Errorf("put the checkpoint away that was carried over: %w", err)
	}
	return record, nil
}

// carriedSuffix is behind the name of a checkpoint's file that was carried over.
const carriedSuffix = ".carried-over"
