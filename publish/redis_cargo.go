package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/binlogd/binlogd/mapping"
)

// A transaction with the checkpoint is closed by this many events, or this long after its
// first one. Other clients of the server wait while it executes.
const (
	RedisTransactionEvents = redisTransactionEntries
	RedisTransactionLinger = 2 * time.Millisecond
)

// Carry implements pipeline.Carrier: the entries of b go along with the next save of the
// checkpoint, in one script.
func (r *Redis) Carry(b *Batch) {
	if done := r.carried; b == nil && done != nil && done.Pending() == 0 {
		r.watchTrimming(context.Background(), done)
	}
	r.carried = b
}

// Streams are those that the carried events go to, each once.
func (r *Redis) Streams() []string {
	if r.carried == nil {
		return nil
	}
	var streams []string
	seen := make(map[string]bool)
	last := ""
	for i := range r.carried.Events {
		topic := r.carried.Events[i].Topic
		if topic == last || seen[topic] {
			continue
		}
		last, seen[topic] = topic, true
		streams = append(streams, topic)
	}
	return streams
}

// Entries are the carried events as arguments of a script: for each one the number of
// arguments that XADD is called with, then those. They hold until Entries is called again.
func (r *Redis) Entries() []any {
	r.args = r.args[:0]
	if r.carried == nil {
		return nil
	}
	for i := range r.carried.Events {
		at := len(r.args)
		r.args = append(r.args, nil)
		r.appendArguments(&r.carried.Events[i])
		r.args[at] = len(r.args) - at - 1
	}
	return r.args
}

// Refused says what to do where the server refuses the carried events. Other errors stay as
// they are.
func (r *Redis) Refused(err error) error {
	err = redisError(err)
	refusal, ok := errors.AsType[*PermanentError](err)
	if !ok || r.carried == nil {
		return err
	}
	// The script names the key that is no stream.
	for i := range r.carried.Events {
		e := &r.carried.Events[i]
		if refusal.Event == nil || strings.Contains(refusal.Err.Error(), "WRONGTYPE "+e.Topic+" ") {
			refused := *e
			refusal.Event = &refused
		}
	}
	return refusal
}

// onceScript appends entries whose ids it has not seen: KEYS are the streams, ARGV the
// seconds for which ids are remembered, then for each entry its id, the number of
// arguments of XADD and those. It returns how many were appended.
var onceScript = redis.NewScript(`
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'stream' and kind ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' holds no stream but a ' .. kind)
  end
end
local i, appended = 2, 0
while i <= #ARGV do
  local n = tonumber(ARGV[i+1])
  if redis.call('SET', 'binlogd:seen:' .. ARGV[i], 1, 'NX', 'EX', ARGV[1]) then
    redis.call('XADD', unpack(ARGV, i + 2, i + 1 + n))
    appended = appended + 1
  end
  i = i + 2 + n
end
return appended
`)

// executeOnce runs one transaction as a script that leaves out what the server has seen.
func (r *Redis) executeOnce(ctx context.Context, b *Batch) error {
	var streams []string
	seen := make(map[string]bool)
	r.args = append(r.args[:0], int64(r.options.Deduplicate.Seconds()))
	for _, entry := range r.entries {
		e := &b.Events[entry.event]
		if !seen[e.Topic] {
			seen[e.Topic] = true
			streams = append(streams, e.Topic)
		}
		at := len(r.args) + 1
		r.args = append(r.args, &e.ID, nil)
		r.appendArguments(e)
		r.args[at] = len(r.args) - at - 1
	}
	if err := onceScript.Run(ctx, r.client, streams, r.args...).Err(); err != nil {
		err = redisError(fmt.Errorf("publish to Redis at %s: %w", r.options.Address, err))
		if refusal, ok := errors.AsType[*PermanentError](err); ok {
			refusal.Event = r.refused(b, err)
		}
		return err
	}
	for _, entry := range r.entries {
		b.Confirm(entry.event)
	}
	return nil
}

// refused is the event that an error of onceScript is about.
func (r *Redis) refused(b *Batch, err error) *mapping.Event {
	for _, entry := range r.entries {
		if e := &b.Events[entry.event]; strings.Contains(err.Error(), "WRONGTYPE "+e.Topic+" ") {
			return e
		}
	}
	return &b.Events[r.entries[0].event]
}
