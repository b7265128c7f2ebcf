package checkpoint

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Redis has in scripts; it tells records apart, nothing more
	"encoding/hex"
	"errors"
	"log/slog"
	"time"
)

// A pipeline that publishes exactly once keeps its checkpoint where its events go, and saves
// a record together with the events before it: both are there or neither. The sink writes to
// Kafka, and the store to Redis; either way the store decides what a save writes, and who may.

// KafkaWriter is a sink that publishes in Kafka's transactions, as *publish.Kafka does.
type KafkaWriter interface {
	// Begin takes the transactional id: whoever wrote under it before is fenced, and what
	// that one left unfinished is over.
	Begin(ctx context.Context) error
	// Save writes cells, which are values by key, to a topic in one transaction, and with
	// them the events that the sink was told to carry if saves says that the record is
	// among them. An error that may come after the commit leaves it open what is there, until
	// the next Begin.
	Save(ctx context.Context, topic string, cells map[string][]byte, saves bool) error
}

// OpenInKafka takes the checkpoint of a pipeline that writes it through w, in the topic and
// under the transactional id of o.Kafka.
func OpenInKafka(ctx context.Context, o Options, name string, w KafkaWriter, logger *slog.Logger) (Store, error) {
	b, err := newKafka(*o.Kafka, name)
	if err != nil {
		return nil, err
	}
	b.writer = w
	return openTogether(ctx, b, name, o.lease(), logger)
}

// togetherProducer writes through a sink.
type togetherProducer struct {
	writer KafkaWriter
	topic  string
}

func (p *togetherProducer) transact(ctx context.Context, cells map[string][]byte, saves bool) error {
	return p.writer.Save(ctx, p.topic, cells, saves)
}

func (p *togetherProducer) end() {}

// RedisCargo are the events that go along with a save of the record into Redis, as
// *publish.Redis keeps them.
type RedisCargo interface {
	// Streams are the keys that events go to, each once.
	Streams() []string
	// Entries are the events, for each the arguments of its XADD behind their number.
	Entries() []any
	// Refused says what to do about an error of a save with events.
	Refused(err error) error
}

// OpenInRedis takes the checkpoint of a pipeline whose events go along with it, on the server
// of o.Redis.
func OpenInRedis(ctx context.Context, o Options, name string, cargo RedisCargo, logger *slog.Logger) (Store, error) {
	b, err := newRedis(*o.Redis, name)
	if err != nil {
		return nil, err
	}
	b.cargo = cargo
	return openTogether(ctx, b, name, o.lease(), logger)
}

// togetherInterval is the shortest time between two automatic entries in the history of a
// checkpoint that is saved with every batch of events.
const togetherInterval = 500 * time.Millisecond

func openTogether(ctx context.Context, b backend, name string, length time.Duration, logger *slog.Logger) (Store, error) {
	store, err := openRemote(ctx, b, name, length, logger)
	if r, ok := store.(*remote); ok {
		r.sparse = togetherInterval
	}
	return store, err
}

// writeTogether writes a record with its events, in the place of the record that this
// process wrote last: a save that is repeated because its answer was lost is done once.
func (b *redisBackend) writeTogether(ctx context.Context, record []byte, commands []any) error {
	sum := sha1.Sum(b.base) //nolint:gosec // see the import
	before := []any{"expect", hex.EncodeToString(sum[:])}
	keys := b.keys()
	for _, stream := range b.cargo.Streams() {
		keys = append(keys, stream)
		before = append(before, "stream", len(keys))
	}
	commands = append(before, commands...)
	if entries := b.cargo.Entries(); len(entries) > 0 {
		commands = append(append(commands, "append"), entries...)
	}
	if err := b.run(ctx, keys, commands); err != nil {
		return b.cargo.Refused(err)
	}
	b.base = record
	return nil
}

// errMovedOn says that a record is not the one that a save was to take the place of. The
// save before, whose answer was lost, was done after all.
var errMovedOn = errors.New("the record there is another than the one that was read: an earlier save was done")
