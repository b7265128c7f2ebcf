package checkpoint

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Survey is what a store says of itself to who asks before it is taken.
type Survey struct {
	// Holder is the process that holds the checkpoint; nil where none does.
	Holder *Holder
	// Warnings are settings of its server that may cost checkpoints.
	Warnings []Warning
}

// Warning is something that works, at a price.
type Warning struct {
	Detail string // what was found, and what it costs
	Remedy string // what to do about it
}

// Survey implements Reader. Where rights to write can be tried without writing, it tries them.
func (v *view) Survey(ctx context.Context) (Survey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	held, err := v.backend.holder(ctx)
	if err != nil {
		return Survey{}, v.access("read", err)
	}
	s := Survey{}
	if held != nil {
		s.Holder = &held.Holder
	}
	s.Warnings, err = v.backend.warnings(ctx)
	return s, v.access("open", err)
}

// Survey implements Reader.
func (None) Survey(context.Context) (Survey, error) { return Survey{}, nil }

// Survey implements Reader. It looks at the kernel's list of locks, since trying the lock could
// be in the way of a process that starts.
func (f *File) Survey(context.Context) (Survey, error) {
	lock, err := os.Open(f.path + lockSuffix)
	if err != nil {
		return Survey{}, nil //nolint:nilerr // no lock, no holder; opening tells of the rest
	}
	defer lock.Close()
	if !flocked(lock) {
		return Survey{}, nil
	}
	holder := readHolder(lock)
	return Survey{Holder: &holder}, nil
}

// flocked reports whether a file is listed in /proc/locks, as in "1: FLOCK ADVISORY WRITE 4711 08:01:12345 0 EOF". Where that
// is not shown, no file is.
func flocked(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return false
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" {
			continue
		}
		device := strings.LastIndexByte(fields[5], ':')
		if device >= 0 && fields[5][device+1:] == strconv.FormatUint(stat.Ino, 10) {
			return true
		}
	}
	return false
}

// warnings tries the rights in a transaction that is taken back.
func (b *mysqlBackend) warnings(ctx context.Context) ([]Warning, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout())
	defer cancel()
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was to stay
	const nobody = ""                    // no pipeline has this name
	for _, statement := range []string{
		"INSERT INTO RECORD (name, content) VALUES (?, '')",
		"INSERT INTO LEASE (name, token, content, expires) VALUES (?, '', '', UTC_TIMESTAMP(6))",
		"INSERT INTO PART (name, shelf, number, content) VALUES (?, '', 0, '')",
		"UPDATE RECORD SET content = '' WHERE name = ?",
		"UPDATE LEASE SET content = '' WHERE name = ?",
		"DELETE FROM PART WHERE name = ?",
	} {
		_, err := tx.ExecContext(ctx, b.sql(statement), nobody)
		if missing(err) {
			break // made at the first start
		}
		if err != nil {
			return nil, err
		}
	}
	var flush string
	var readOnly bool
	if err := tx.QueryRowContext(ctx, "SELECT @@innodb_flush_log_at_trx_commit, @@read_only").Scan(&flush, &readOnly); err != nil {
		return nil, err
	}
	var found []Warning
	if flush != "1" {
		found = append(found, Warning{
			Detail: fmt.Sprintf("innodb_flush_log_at_trx_commit=%s: a crash of the machine loses the last second of checkpoints, and their events are published again", flush),
			Remedy: "run on the server of the checkpoint: SET GLOBAL innodb_flush_log_at_trx_commit = 1",
		})
	}
	if readOnly {
		found = append(found, Warning{
			Detail: "read_only=1: the server of the checkpoint takes writes from privileged accounts only",
			Remedy: "point checkpoint.mysql.address at the primary",
		})
	}
	return found, nil
}

// warnings runs a script that writes nothing.
func (b *redisBackend) warnings(ctx context.Context) ([]Warning, error) {
	if err := b.client.Eval(ctx, "return redis.call('EXISTS', KEYS[1])", b.keys()[:1]).Err(); err != nil {
		return nil, err
	}
	role, err := b.client.Info(ctx, "replication").Result()
	if err == nil && strings.Contains(role, "role:slave") {
		return nil, fmt.Errorf("READONLY %s is a replica", b.options.Address)
	}
	settings := map[string]string{}
	for _, name := range []string{"appendonly", "appendfsync", "maxmemory", "maxmemory-policy"} { // Redis 5 and 6 take one name at a time
		found, err := b.client.ConfigGet(ctx, name).Result()
		if err != nil {
			return []Warning{{ //nolint:nilerr // managed servers show none; reaching it was tried above
				Detail: "the server does not show its settings, so that it is not known whether it keeps a checkpoint through a crash",
				Remedy: "see to it that it has appendonly yes, appendfsync always and maxmemory-policy noeviction, or keep the checkpoint elsewhere",
			}}, nil
		}
		settings[name] = found[name]
	}
	var found []Warning
	switch {
	case settings["appendonly"] != "yes":
		found = append(found, Warning{
			Detail: "appendonly=no: when Redis ends, the checkpoint falls back to its last snapshot or is gone, and binlogd begins at source.start",
			Remedy: "run on the Redis server: CONFIG SET appendonly yes, CONFIG SET appendfsync always, then CONFIG REWRITE",
		})
	case settings["appendfsync"] != "always":
		found = append(found, Warning{
			Detail: fmt.Sprintf("appendfsync=%s: a crash of the machine loses the last checkpoints, and their events are published again", settings["appendfsync"]),
			Remedy: "run on the Redis server: CONFIG SET appendfsync always, then CONFIG REWRITE",
		})
	}
	if policy := settings["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") && settings["maxmemory"] != "0" {
		found = append(found, Warning{
			Detail: fmt.Sprintf("maxmemory-policy=%s: when its memory is full, Redis may delete the checkpoint", policy),
			Remedy: "run on the Redis server: CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE; or keep the checkpoint elsewhere",
		})
	}
	return found, nil
}

// warnings looks at the settings of the topic. Beginning to write would fence a running process.
func (b *kafkaBackend) warnings(context.Context) ([]Warning, error) {
	settings, copies, err := b.inspect()
	if err != nil {
		return nil, err
	}
	topic := b.options.topic()
	var found []Warning
	switch {
	case copies == 1:
		found = append(found, Warning{
			Detail: fmt.Sprintf("topic %s has one copy: it is gone with its broker's disk, and so is the checkpoint", topic),
			Remedy: "raise its replication factor with kafka-reassign-partitions, or set checkpoint.kafka.replication_factor before it is created",
		})
	case copies > 1 && settings["min.insync.replicas"] == "1":
		found = append(found, Warning{
			Detail: fmt.Sprintf("topic %s has min.insync.replicas=1: a checkpoint may be on one broker only", topic),
			Remedy: fmt.Sprintf("run kafka-configs --alter --entity-type topics --entity-name %s --add-config min.insync.replicas=2", topic),
		})
	}
	if n, err := strconv.Atoi(settings["segment.bytes"]); err == nil && n > 16*topicSegmentBytes {
		found = append(found, Warning{
			Detail: fmt.Sprintf("topic %s has segment.bytes=%d: it is compacted late, and a start reads all of it", topic, n),
			Remedy: fmt.Sprintf("run kafka-configs --alter --entity-type topics --entity-name %s --add-config segment.bytes=%d", topic, topicSegmentBytes),
		})
	}
	return found, nil
}
