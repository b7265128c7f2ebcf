package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisSettings are the settings of a server that decide whether an acknowledged entry
// stays, by name (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/).
var redisSettings = []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy"}

// Warnings says where entries can vanish although the server acknowledged them: in a crash,
// or to make room for others.
func (r *Redis) Warnings(ctx context.Context) ([]Warning, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, redisDialTimeout, errors.New("no answer within 5 s"))
	defer cancel()
	defer r.conns.watch(ctx)()
	settings := make(map[string]string, len(redisSettings))
	for _, name := range redisSettings { // Redis 5 and 6 take one name at a time
		found, err := r.client.ConfigGet(ctx, name).Result()
		if _, refused := errors.AsType[redis.Error](err); refused {
			return []Warning{{
				Detail: fmt.Sprintf("Redis at %s does not show its settings to this user, so that it is not known whether it keeps events through a crash", r.options.Address),
				Remedy: "see to it that the server has appendonly yes, appendfsync always and maxmemory-policy noeviction; or let the user ask: ACL SETUSER NAME +config|get",
			}}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the settings of Redis at %s: %w; check that the server runs and lets this machine in", r.options.Address, err)
		}
		settings[name] = found[name]
	}
	return redisWarnings(settings), nil
}

func redisWarnings(settings map[string]string) []Warning {
	const rewrite = ", then CONFIG REWRITE so that it outlives a restart"
	var warnings []Warning
	switch fsync := settings["appendfsync"]; {
	case settings["appendonly"] == "no":
		warnings = append(warnings, Warning{
			Detail: "appendonly=no: when Redis ends, events that came after its last snapshot are gone, and binlogd does not publish them again",
			Remedy: "run on the Redis server: CONFIG SET appendonly yes, and CONFIG SET appendfsync always" + rewrite,
		})
	case fsync != "" && fsync != "always":
		lost := "the last second or two"
		if fsync == "no" {
			lost = "as long as the system keeps writes in memory, 30 s as a rule,"
		}
		warnings = append(warnings, Warning{
			Detail: fmt.Sprintf("appendfsync=%s: a crash of the machine loses events of %s that were acknowledged, and binlogd does not publish them again", fsync, lost),
			Remedy: "run on the Redis server: CONFIG SET appendfsync always" + rewrite,
		})
	case settings["no-appendfsync-on-rewrite"] == "yes":
		warnings = append(warnings, Warning{
			Detail: "no-appendfsync-on-rewrite=yes: while Redis rewrites its file it does not sync it, and a crash of the machine loses events that were acknowledged",
			Remedy: "run on the Redis server: CONFIG SET no-appendfsync-on-rewrite no" + rewrite,
		})
	}
	if policy := settings["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") && settings["maxmemory"] != "0" {
		warnings = append(warnings, Warning{
			Detail: fmt.Sprintf("maxmemory-policy=%s: when its memory is full, Redis deletes whole streams, read or not", policy),
			Remedy: "run on the Redis server: CONFIG SET maxmemory-policy noeviction" + rewrite + "; binlogd then waits for room. publish.redis.max_len bounds the streams",
		})
	}
	return warnings
}
