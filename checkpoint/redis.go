package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisBackend keeps a checkpoint in keys of Redis, which share a hash tag so that they live
// in one slot of a cluster:
//
//	binlogd:{NAME}          the record, as encode makes it
//	binlogd:{NAME}:history  a hash of parts by number
//	binlogd:{NAME}:schema   a hash of parts by number
//	binlogd:{NAME}:lease    the lease, as JSON; it expires
//	binlogd:{NAME}:holder   the token of who took the lease last; it stays
//
// What is written at once is one script, which Redis runs whole and with nothing in between,
// and which first compares the token: whoever took the checkpoint over is seen there.
type redisBackend struct {
	options RedisOptions
	name    string
	client  *redis.Client
	lease   lease      // that was claimed
	cargo   RedisCargo // what goes along with records; nil for nothing
	base    []byte     // the record that was read or written last
}

func newRedis(o RedisOptions, name string) (*redisBackend, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	return &redisBackend{options: o, name: name, client: client}, nil
}

func (b *redisBackend) place() string {
	return fmt.Sprintf("redis://%s/%d/%s", b.options.Address, b.options.DB, b.key(""))
}

func (b *redisBackend) key(suffix string) string {
	return b.options.prefix() + "{" + b.name + "}" + suffix
}

// keys are all keys, in the order in which scripts take them.
func (b *redisBackend) keys() []string {
	return []string{b.key(""), b.key(":" + string(historyShelf)), b.key(":" + string(schemaShelf)), b.key(":lease"), b.key(":holder")}
}

func (b *redisBackend) record(ctx context.Context) ([]byte, error) {
	content, err := b.client.Get(ctx, b.key("")).Bytes()
	if errors.Is(err, redis.Nil) {
		b.base = nil
		return nil, nil
	}
	if content == nil && err == nil {
		content = []byte{}
	}
	if err == nil {
		b.base = content
	}
	return content, err
}

func (b *redisBackend) parts(ctx context.Context, s shelf) ([]part, error) {
	fields, err := b.client.HGetAll(ctx, b.key(":"+string(s))).Result()
	if err != nil {
		return nil, err
	}
	parts := make([]part, 0, len(fields))
	for field, data := range fields {
		key, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s has a field %q, which is no number", b.key(":"+string(s)), field)
		}
		parts = append(parts, part{Key: key, Data: []byte(data)})
	}
	return parts, nil
}

// claimScript takes the lease: ARGV are its token, content and length in ms.
var claimScript = redis.NewScript(`
local lease = redis.call('GET', KEYS[4])
if lease and redis.call('GET', KEYS[5]) ~= ARGV[1] then return lease end
redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[5], ARGV[1])
return ''
`)

// claim goes by the server's clock.
func (b *redisBackend) claim(ctx context.Context, mine lease, _ bool) (theirs *lease, err error) {
	b.lease = mine
	content, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	answer, err := claimScript.Run(ctx, b.client, b.keys(), mine.Token, content, mine.Length.Milliseconds()).Text()
	if err != nil || answer == "" {
		return nil, err
	}
	theirs = &lease{}
	return theirs, json.Unmarshal([]byte(answer), theirs)
}

// writeScript writes a batch: ARGV are the token of the lease, then commands, which are done
// in order:
//
//	expect SHA1          ends it unless the record has that hash
//	stream KEY           refuses the batch unless the key is a stream, or nothing
//	record CONTENT
//	put KEY NUMBER DATA  a part, in a hash
//	drop KEY NUMBER
//	renew LEASE MS       release
//	append {N ARGS…}…    entries for streams, to the end: the arguments of XADD behind their number
//
// It answers with a number, and the lease of whoever has the checkpoint instead, or an empty text.
var writeScript = redis.NewScript(`
local holder = redis.call('GET', KEYS[5])
if holder and holder ~= ARGV[1] then
  return {1, redis.call('GET', KEYS[4]) or ''}
end
if not holder then
  if redis.call('EXISTS', KEYS[1]) == 0 then return {2, ''} end
  redis.call('SET', KEYS[5], ARGV[1])
end
local i = 2
while i <= #ARGV do
  local what = ARGV[i]
  if what == 'record' then
    redis.call('SET', KEYS[1], ARGV[i+1]); i = i + 2
  elseif what == 'put' then
    redis.call('HSET', KEYS[tonumber(ARGV[i+1])], ARGV[i+2], ARGV[i+3]); i = i + 4
  elseif what == 'drop' then
    redis.call('HDEL', KEYS[tonumber(ARGV[i+1])], ARGV[i+2]); i = i + 3
  elseif what == 'expect' then
    if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[i+1] then return {3, ''} end
    i = i + 2
  elseif what == 'stream' then
    local key = KEYS[tonumber(ARGV[i+1])]
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'stream' and kind ~= 'none' then
      return redis.error_reply('WRONGTYPE ' .. key .. ' holds no stream but a ' .. kind)
    end
    i = i + 2
  elseif what == 'append' then
    i = i + 1
    while i <= #ARGV do
      local n = tonumber(ARGV[i])
      redis.call('XADD', unpack(ARGV, i + 1, i + n)); i = i + n + 1
    end
  elseif what == 'renew' then
    redis.call('SET', KEYS[4], ARGV[i+1], 'PX', ARGV[i+2]); i = i + 3
  else
    redis.call('DEL', KEYS[4]); i = i + 1
  end
end
return {0, ''}
`)

// Answers of writeScript.
const (
	redisDone    = 0
	redisTaken   = 1
	redisEmptied = 2
	redisMovedOn = 3
)

// errEmptied says that what was saved is gone from the server.
var errEmptied = errors.New("the checkpoint is gone from the server, which has lost its data or was emptied")

func (b *redisBackend) write(ctx context.Context, commands ...any) error {
	return b.run(ctx, b.keys(), commands)
}

func (b *redisBackend) run(ctx context.Context, keys []string, commands []any) error {
	answer, err := writeScript.Run(ctx, b.client, keys, append([]any{b.lease.Token}, commands...)...).Slice()
	if err != nil {
		return err
	}
	if len(answer) != 2 {
		return fmt.Errorf("the script answered %v", answer)
	}
	switch answer[0] {
	case int64(redisDone):
		return nil
	case int64(redisEmptied):
		return errEmptied
	case int64(redisMovedOn):
		return errMovedOn
	}
	fenced, theirs := &FencedError{}, lease{}
	if text, ok := answer[1].(string); ok && json.Unmarshal([]byte(text), &theirs) == nil {
		fenced.Holder = theirs.Holder
	}
	return fenced
}

// renew goes on also where the lease has expired and nobody has taken it.
func (b *redisBackend) renew(ctx context.Context) error {
	b.lease.Renewals++
	content, err := json.Marshal(b.lease)
	if err != nil {
		return err
	}
	return b.write(ctx, "renew", content, b.lease.Length.Milliseconds())
}

func (b *redisBackend) release(ctx context.Context) error {
	err := b.write(ctx, "release")
	if Elsewhere(err) || errors.Is(err, errEmptied) {
		return nil
	}
	return err
}

func (b *redisBackend) commit(ctx context.Context, w batch) error {
	var commands []any
	if w.record != nil {
		commands = append(commands, "record", w.record)
	}
	for i, c := range []change{w.history, w.schema} {
		key := i + 2 // of keys, which scripts count from 1
		for _, number := range c.Drop {
			commands = append(commands, "drop", key, number)
		}
		for _, p := range c.Put {
			commands = append(commands, "put", key, p.Key, p.Data)
		}
	}
	if b.cargo != nil && w.record != nil {
		if err := b.writeTogether(ctx, w.record, commands); err != nil {
			return err
		}
	} else if err := b.write(ctx, commands...); err != nil {
		return err
	}
	return b.wait(ctx)
}

// wait waits until replicas have what was written.
func (b *redisBackend) wait(ctx context.Context) error {
	if b.options.Replicas == 0 {
		return nil
	}
	// On the one connection that wrote.
	reached, err := b.client.Wait(ctx, b.options.Replicas, b.options.timeout()*9/10).Result()
	if err != nil {
		return fmt.Errorf("wait for replicas: %w", err)
	}
	if reached < int64(b.options.Replicas) {
		return fmt.Errorf("only %d of %d replicas have it", reached, b.options.Replicas)
	}
	return nil
}

func (b *redisBackend) holder(ctx context.Context) (*lease, error) {
	content, err := b.client.Get(ctx, b.key(":lease")).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil //nolint:nilnil // nobody holds it
	}
	if err != nil {
		return nil, err
	}
	l := &lease{}
	return l, json.Unmarshal(content, l)
}

func (b *redisBackend) close() error { return b.client.Close() }

func (b *redisBackend) remedy(err error) string {
	switch text := err.Error(); {
	case errors.Is(err, errEmptied):
		return "turn its persistence on (appendonly yes); then begin anew from the place in the last log line, with source.start"
	case strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "WRONGPASS"):
		return "check checkpoint.redis.username and password"
	case strings.HasPrefix(text, "NOPERM"):
		return "let the user run GET, SET, DEL, EXISTS, HSET, HDEL, HGETALL, EVAL, EVALSHA and WAIT on keys that begin with " + b.options.prefix()
	case strings.HasPrefix(text, "READONLY"):
		return "that server is a replica: point checkpoint.redis.address at its master"
	case strings.HasPrefix(text, "OOM"):
		return "give the server more memory, or its maxmemory-policy something that it may evict"
	case strings.Contains(text, "replicas have it"):
		return "look after the replicas, or lower checkpoint.redis.replicas"
	}
	return "check that the server of checkpoint.redis.address runs and lets this machine in"
}
