package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/binlogd/binlogd/mapping"
)

// Redis publishes into Redis Streams: the stream is the topic, the fields are id, type,
// key and event (the payload), and one h:NAME for each header. Durable means executed by
// the server. That survives a crash of the server only where its appendfsync is always;
// with everysec, its default, the last second or two may be gone although acknowledged.
//
// Events travel in transactions (MULTI … EXEC) of bounded size. Without them, a server
// that refuses one entry for a moment, for lack of memory say, would take the entries
// behind it and so break their order; and a connection that breaks would leave a part.
type Redis struct {
	options RedisOptions
	conns   *connections
	client  *redis.Client

	entries []redisEntry // of one transaction
	args    []any        // of the entries' commands

	carried *Batch // what goes along with the next save of the checkpoint
	trims   trimWatch
}

type redisEntry struct {
	event   int // index into the batch
	command *redis.StringCmd
}

// A transaction is closed when it has this many entries or payload bytes. Other clients
// of the server wait while it executes, some milliseconds.
const (
	redisTransactionEntries = 2000
	redisTransactionBytes   = 1 << 20
)

// OpenRedis validates o and returns a sink that has not contacted the server yet.
func OpenRedis(o RedisOptions, logger *slog.Logger) (*Redis, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	logging.Disable() // go-redis writes to standard error on its own; what matters is in its errors
	conns := newConnections(redisDialTimeout)
	client, err := o.client(conns)
	if err != nil {
		return nil, err
	}
	return &Redis{options: o, conns: conns, client: client, trims: trimWatch{logger: logger}}, nil
}

// Publish appends the unconfirmed events of b to their streams, in order.
func (r *Redis) Publish(ctx context.Context, b *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer r.conns.watch(ctx)()
	for next := 0; next < len(b.Events); {
		next = r.gather(b, next)
		if len(r.entries) == 0 {
			break
		}
		if err := r.execute(ctx, b); err != nil {
			if ctx.Err() != nil && !permanent(err) {
				return fmt.Errorf("publish to Redis: %w", context.Cause(ctx))
			}
			return err
		}
	}
	r.watchTrimming(ctx, b)
	return nil
}

// gather takes the unconfirmed events from index next on into one transaction, and
// returns the index after the last.
func (r *Redis) gather(b *Batch, next int) int {
	r.entries, r.args = r.entries[:0], r.args[:0]
	for size := 0; next < len(b.Events) && len(r.entries) < redisTransactionEntries; next++ {
		if b.Confirmed(next) {
			continue
		}
		size += len(b.Events[next].Payload)
		if size > redisTransactionBytes && len(r.entries) > 0 {
			break
		}
		r.entries = append(r.entries, redisEntry{event: next})
	}
	return next
}

// execute runs one transaction and confirms what it made durable.
func (r *Redis) execute(ctx context.Context, b *Batch) error {
	if r.options.Deduplicate > 0 {
		return r.executeOnce(ctx, b)
	}
	pipe := r.client.TxPipeline()
	for i := range r.entries {
		from := len(r.args)
		r.append(&b.Events[r.entries[i].event])
		// Where args grows, earlier commands keep their part of the old one.
		command := redis.NewStringCmd(ctx, r.args[from:len(r.args):len(r.args)]...)
		r.entries[i].command = command
		_ = pipe.Process(ctx, command) // only queues
	}
	_, err := pipe.Exec(ctx)
	if err == nil {
		for _, e := range r.entries {
			b.Confirm(e.event)
		}
		return nil
	}
	return r.failed(err, b)
}

// append appends the XADD for e to args.
func (r *Redis) append(e *mapping.Event) {
	r.args = append(r.args, "XADD")
	r.appendArguments(e)
}

// appendArguments appends what stands behind XADD for e to args. Strings go in by pointer,
// which costs no allocation.
func (r *Redis) appendArguments(e *mapping.Event) {
	r.args = append(r.args, &e.Topic)
	switch {
	case r.options.MaxLen > 0:
		r.args = append(r.args, "MAXLEN", "~", &r.options.MaxLen)
	case r.options.MaxAge > 0:
		r.args = append(r.args, "MINID", "~", time.Now().Add(-r.options.MaxAge).UnixMilli())
	}
	r.args = append(r.args, "*", "id", &e.ID, "type", &e.Type, "key", e.Key, "event", e.Payload)
	for i := range e.Headers {
		r.args = append(r.args, "h:"+e.Headers[i].Key, e.Headers[i].Value)
	}
}

// failed confirms what a transaction did nevertheless and returns its first failure. A
// transaction is refused as a whole, except where a command turns out wrong while it is
// executed (WRONGTYPE); then the other streams' entries are there.
func (r *Redis) failed(err error, b *Batch) error {
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return redisError(fmt.Errorf("publish to Redis at %s: %w", r.options.Address, err))
	}
	var first error
	var at *mapping.Event
	broken := make(map[string]bool)
	for _, e := range r.entries {
		event := &b.Events[e.event]
		switch commandErr := e.command.Err(); {
		case commandErr == nil && e.command.Val() != "" && !broken[event.Topic]:
			b.Confirm(e.event)
		default:
			broken[event.Topic] = true
			if commandErr != nil && first == nil && !strings.HasPrefix(commandErr.Error(), "EXECABORT") {
				first, at = commandErr, event
			}
		}
	}
	if first == nil {
		first, at = err, &b.Events[r.entries[0].event]
	}
	err = redisError(fmt.Errorf("publish to stream %s of Redis at %s: %w", at.Topic, r.options.Address, first))
	if p := (*PermanentError)(nil); errors.As(err, &p) {
		p.Event = at
	}
	return err
}

// Ping reports whether the server answers and is one that can be written to.
func (r *Redis) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, redisDialTimeout, errors.New("no answer within 5 s"))
	defer cancel()
	defer r.conns.watch(ctx)()
	if err := r.client.Ping(ctx).Err(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = redisError(fmt.Errorf("reach Redis at %s: %w", r.options.Address, err))
		if permanent(err) {
			return err
		}
		return fmt.Errorf("%w; check publish.redis.address, and that the server runs and lets this machine in", err)
	}
	if err := r.clusterRefusal(ctx); err != nil {
		return err
	}
	// A user without the right to ask is not told; the first event then shows it.
	role, err := r.client.Do(ctx, "ROLE").Slice()
	if err == nil && len(role) > 0 && role[0] == "slave" {
		return fmt.Errorf("reach Redis at %s: it is a read-only replica; write the address of its master to publish.redis.address, or wait for the failover to end", r.options.Address)
	}
	return nil
}

// Close gives up the connection.
func (r *Redis) Close() error {
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("close Redis client: %w", err)
	}
	return nil
}

// redisRemedies are the replies that a repetition does not mend, by their first word,
// with what to do. Others (OOM, LOADING, READONLY, MASTERDOWN, CLUSTERDOWN, TRYAGAIN,
// BUSY, MISCONF, NOREPLICAS …) pass.
var redisRemedies = map[string]string{
	"WRONGTYPE": "the key holds something else than a stream; move it away, or give the table another `topic:`",
	"NOAUTH":    "write publish.redis.password, and publish.redis.username where the server has users",
	"WRONGPASS": "check publish.redis.username and publish.redis.password",
	"NOPERM":    "give the user the rights: ACL SETUSER NAME +ping +xadd +multi +exec ~STREAM",
	"MOVED":     "the server is part of a cluster, which this sink does not speak to; write the address of a single server to publish.redis.address",
	"CROSSSLOT": "the server is part of a cluster, which this sink does not speak to; write the address of a single server to publish.redis.address",
	"ERR":       "the server refuses the command; Redis 5 or newer is needed, without a proxy that limits commands",
}

// redisError marks replies that repetition does not mend and adds the remedy.
func redisError(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w (the server closed the connection)", err)
		}
		return err
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	if remedy, ok := redisRemedies[word]; ok && !redisPassing(reply.Error()) {
		return &PermanentError{Err: err, Remedy: remedy}
	}
	return err
}

// redisPassing reports whether a reply without a code of its own is about a state that
// passes.
func redisPassing(reply string) bool {
	return strings.Contains(reply, "max number of clients reached") ||
		strings.Contains(reply, "max number of clients + cluster") ||
		strings.Contains(reply, "OOM command not allowed") // in a script, before Redis 7
}
