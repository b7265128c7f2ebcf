package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// trimLookInterval is how often a sink that trims looks whether consumers keep up.
const trimLookInterval = 30 * time.Second

// trimLookStreams is how many streams it looks at each time, in turn.
const trimLookStreams = 20

// trimWatch looks whether trimming takes entries away that consumer groups have not read.
type trimWatch struct {
	logger *slog.Logger
	known  map[string]bool // streams that were published to
	turn   []string        // those that are looked at next
	looked time.Time
	warned map[string]string // the entry that a group, STREAM/GROUP, had read when it was told of
}

// watchTrimming warns where a consumer group has lost entries to max_len or max_age. It is
// quiet where the server does not tell.
func (r *Redis) watchTrimming(ctx context.Context, b *Batch) {
	if r.options.MaxLen == 0 && r.options.MaxAge == 0 {
		return
	}
	w := &r.trims
	if w.known == nil {
		w.known, w.warned = make(map[string]bool), make(map[string]string)
	}
	last := ""
	for i := range b.Events {
		if topic := b.Events[i].Topic; topic != last && !w.known[topic] {
			w.known[topic] = true
			w.turn = append(w.turn, topic)
		}
		last = b.Events[i].Topic
	}
	if time.Since(w.looked) < trimLookInterval {
		return
	}
	w.looked = time.Now()
	n := min(len(w.turn), trimLookStreams)
	now := w.turn[:n]
	w.turn = append(w.turn[n:len(w.turn):len(w.turn)], now...)
	for _, stream := range now {
		for _, lost := range r.outrun(ctx, stream) {
			if name := stream + "/" + lost.group; w.warned[name] != lost.read {
				w.warned[name] = lost.read
				w.logger.Warn("trimming has outrun a consumer group: entries are gone that it was never given",
					"stream", stream, "group", lost.group, "lost", lost.lost, "read_up_to", lost.read,
					"remedy", "let its consumers catch up, and raise publish.redis.max_len or max_age; `binlogd replay` publishes the lost stretch again")
			}
		}
	}
}

// outrunGroup is a consumer group that has lost entries.
type outrunGroup struct {
	group, read string
	lost        int64
}

// outrun returns the groups of a stream whose next entries were trimmed away: the stream no
// longer has what follows the entry that they were given last, and they were given fewer
// entries than are gone. The counts are Redis 7's; before, only a group that was given
// nothing at all is told of.
func (r *Redis) outrun(ctx context.Context, stream string) []outrunGroup {
	info, err := r.client.XInfoStream(ctx, stream).Result()
	if err != nil || info.Groups == 0 {
		return nil
	}
	groups, err := r.client.XInfoGroups(ctx, stream).Result()
	if err != nil {
		return nil
	}
	gone := info.EntriesAdded - info.Length
	var lost []outrunGroup
	for _, g := range groups {
		counted := g.EntriesRead > 0 || g.LastDeliveredID == "0-0"
		if counted && g.EntriesRead < gone && entryBefore(g.LastDeliveredID, info.FirstEntry.ID) {
			lost = append(lost, outrunGroup{g.Name, g.LastDeliveredID, gone - g.EntriesRead})
		}
	}
	return lost
}

// entryBefore compares ids of entries, MILLISECONDS-NUMBER; one that is missing is before none.
func entryBefore(a, b string) bool {
	x, y, ok := entryID(a)
	v, w, okay := entryID(b)
	return ok && okay && (x < v || x == v && y < w)
}

func entryID(id string) (at, number uint64, ok bool) {
	first, second, found := strings.Cut(id, "-")
	at, err := strconv.ParseUint(first, 10, 64)
	if err != nil || !found {
		return 0, 0, false
	}
	number, err = strconv.ParseUint(second, 10, 64)
	return at, number, err == nil
}

// clusterRefusal says what a server of a cluster cannot do.
func (r *Redis) clusterRefusal(ctx context.Context) error {
	text, err := r.client.Info(ctx, "cluster").Result()
	if err != nil || !strings.Contains(text, "cluster_enabled:1") {
		return nil // a server that does not say is not asked again: publishing shows it
	}
	refusal := &PermanentError{
		Err:    fmt.Errorf("reach Redis at %s: it is part of a cluster, which this sink does not speak to", r.options.Address),
		Remedy: "write the address of a single server to publish.redis.address",
	}
	if r.options.ExactlyOnce {
		refusal.Err = errors.Join(refusal.Err, errors.New("in a cluster, events and checkpoint could be written in one step only where all streams and the checkpoint are in one slot"))
	}
	return refusal
}
