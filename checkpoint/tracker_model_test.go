package checkpoint_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// kind is a kind of server, by how it numbers transactions.
type kind struct {
	name   string
	flavor canal.Flavor
	gtids  bool
}

var kinds = []kind{
	{"mysql", canal.MySQL, true},
	{"mysql without GTIDs", canal.MySQL, false},
	{"mariadb", canal.MariaDB, true},
}

func (k kind) start() checkpoint.Record {
	r := checkpoint.Record{Name: "shop", Server: canal.Identity{Flavor: k.flavor}}
	r.Position.File, r.Position.Offset = "binlog.000001", 4
	if k.gtids {
		r.Position.GTIDs = canal.NewGTIDSet(k.flavor)
	}
	return r
}

// gtid is that of the n-th transaction, from 1; two servers take turns.
func (k kind) gtid(n uint64) canal.GTID {
	number := (n + 1) / 2
	switch {
	case !k.gtids:
		return canal.GTID{}
	case k.flavor == canal.MariaDB:
		return canal.GTID{Flavor: canal.MariaDB, Domain: uint32(n % 2), ServerID: 1, Number: number}
	}
	return canal.GTID{UUID: [16]byte{byte(1 + n%2)}, Number: number}
}

// history writes transactions as canal cuts them, XA ones included.
type history struct {
	kind
	n        uint64 // transactions so far
	held     []canal.Prepared
	withheld []canal.GTID // MariaDB: what the position does not hold yet
}

func (h *history) next(r *rand.Rand) []*canal.Transaction {
	h.n++
	start := 1000 * h.n
	tx := canal.Transaction{GTID: h.gtid(h.n), File: "binlog.000001", Start: start, EndFile: "binlog.000001", EndOffset: start + 1000}
	executed := []canal.GTID{tx.GTID}
	switch choice := r.IntN(10); {
	case choice == 0 && len(h.held) < 3: // XA PREPARE
		h.held = append(append([]canal.Prepared{}, h.held...), canal.Prepared{XID: strconv.FormatUint(h.n, 10), GTID: tx.GTID, File: tx.File, Offset: start})
		executed = nil
		if h.flavor == canal.MariaDB {
			h.withheld = append(h.withheld, tx.GTID)
		}
	case choice < 3 && len(h.held) > 0: // XA COMMIT
		i := r.IntN(len(h.held))
		executed = []canal.GTID{h.held[i].GTID, tx.GTID}
		h.held = append(append([]canal.Prepared{}, h.held[:i]...), h.held[i+1:]...)
		if h.flavor == canal.MariaDB {
			executed = h.mariaDBExecuted(tx.GTID)
		}
	case h.flavor == canal.MariaDB:
		executed = h.mariaDBExecuted(tx.GTID)
	}
	tx.Held = h.held
	if h.gtids {
		tx.Executed = executed
	}
	tx.ResumeFile, tx.ResumeOffset = tx.EndFile, tx.EndOffset
	if len(h.held) > 0 {
		tx.ResumeFile, tx.ResumeOffset = h.held[0].File, h.held[0].Offset
	}
	return pieces(r, tx)
}

// mariaDBExecuted: a position of MariaDB has no holes, so that it waits for the oldest
// XA PREPARE, and then takes all at once.
func (h *history) mariaDBExecuted(g canal.GTID) []canal.GTID {
	h.withheld = append(h.withheld, g)
	if len(h.held) > 0 {
		return nil
	}
	all := h.withheld
	h.withheld = nil
	return all
}

func pieces(r *rand.Rand, tx canal.Transaction) []*canal.Transaction {
	var all []*canal.Transaction
	for i := range max(0, r.IntN(8)-4) {
		piece := tx
		piece.Piece, piece.Executed, piece.Held = i, nil, nil
		piece.ResumeFile, piece.EndFile, piece.ResumeOffset, piece.EndOffset = "", "", 0, 0
		all = append(all, &piece)
	}
	tx.Piece, tx.Last = len(all), true
	return append(all, &tx)
}

// taken is one Begin, as the model remembers it.
type taken struct {
	tx     *canal.Transaction
	work   checkpoint.Work
	ticket checkpoint.Ticket
	done   bool
}

// expected is the record by its definition: over everything before the first that is
// not done.
func expected(k kind, all []*taken) checkpoint.Record {
	r := k.start()
	var published *canal.GTIDSet
	if k.gtids {
		published = canal.NewGTIDSet(k.flavor)
	}
	end := canal.Position{File: r.Position.File, Offset: r.Position.Offset}
	for _, t := range all {
		if !t.done {
			break
		}
		r.Counters.Events += uint64(t.work.Events)
		r.Counters.Bytes += uint64(t.work.Bytes)
		if !t.tx.Last {
			r.Partial = &checkpoint.Partial{GTID: t.tx.GTID, File: t.tx.File, Start: t.tx.Start, Place: t.work.Place}
			continue
		}
		r.Counters.Transactions++
		r.Partial = nil
		r.Held = t.tx.Held
		r.Position.File, r.Position.Offset = t.tx.ResumeFile, t.tx.ResumeOffset
		end.File, end.Offset = t.tx.EndFile, t.tx.EndOffset
		for _, g := range t.tx.Executed {
			r.Position.GTIDs.Add(g)
		}
		if published != nil {
			published.Add(t.tx.GTID)
		}
	}
	held := len(r.Held) > 0
	switch {
	case k.gtids && k.flavor == canal.MySQL: // never ahead of itself
	case held:
		end.GTIDs = published
		r.Published = &end
	}
	return r
}

// TestTrackerAgainstModel begins and confirms transactions in random orders; after every
// step the record must be what the definition says, whatever was confirmed beyond it.
func TestTrackerAgainstModel(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			for range 60 {
				randomRun(t, k, r)
			}
		})
	}
}

func randomRun(t *testing.T, k kind, r *rand.Rand) {
	t.Helper()
	tracker := checkpoint.NewTracker(k.start())
	_, changed := tracker.Record()
	require.True(t, changed, "the start itself is worth saving")

	h := &history{kind: k}
	var queue []*canal.Transaction // cut and not begun
	var all, open []*taken
	quiet, eager := r.Float64(), r.Float64()
	before := tracker.Peek()
	for range 200 {
		if len(open) > 0 && r.Float64() < eager {
			i := r.IntN(len(open))
			open[i].done = true
			tracker.Done(open[i].ticket)
			if r.IntN(4) == 0 {
				tracker.Done(open[i].ticket) // a repetition changes nothing
			}
			open = append(open[:i], open[i+1:]...)
		} else {
			if len(queue) == 0 {
				queue = h.next(r)
			}
			b := &taken{tx: queue[0]}
			queue = queue[1:]
			b.work.Place = uint64(100 * (b.tx.Piece + 1))
			if r.Float64() > quiet {
				b.work.Events, b.work.Bytes = 1+r.IntN(5), r.Int64N(1000)
			}
			b.ticket = tracker.Begin(b.tx, b.work)
			b.done = b.work.Events == 0
			all = append(all, b)
			if !b.done {
				open = append(open, b)
			}
		}
		want := expected(k, all)
		require.Empty(t, cmp.Diff(want, tracker.Peek()))
		got, changed := tracker.Record()
		require.Empty(t, cmp.Diff(want, got))
		require.Equal(t, !cmp.Equal(before, got), changed)
		before = got
	}
	ahead := tracker.Ahead()
	require.Empty(t, cmp.Diff(before, tracker.Peek()), "looking ahead changes nothing")
	for _, b := range open {
		b.done = true
		tracker.Done(b.ticket)
	}
	require.Empty(t, cmp.Diff(expected(k, all), ahead))
	require.Empty(t, cmp.Diff(expected(k, all), tracker.Peek()))
	require.Zero(t, tracker.Waiting())
}
