package checkpoint_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
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
	for _, b := range open {
		b.done = true
		tracker.Done(b.ticket)
	}
	require.Empty(t, cmp.Diff(expected(k, all), tracker.Peek()))
	require.Zero(t, tracker.Waiting())
}

func whole(k kind, n uint64) *canal.Transaction {
	tx := &canal.Transaction{
		GTID: k.gtid(n), File: "binlog.000001", Start: 1000 * n, Last: true,
		ResumeFile: "binlog.000001", ResumeOffset: 1000 * (n + 1), EndFile: "binlog.000001", EndOffset: 1000 * (n + 1),
	}
	if k.gtids {
		tx.Executed = []canal.GTID{tx.GTID}
	}
	return tx
}

// A broker that is away for hours holds back one transaction, while a busy server's
// quiet tables bring millions without events.
func TestTrackerMemoryBehindUnconfirmed(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		tracker := checkpoint.NewTracker(k.start())
		ticket := tracker.Begin(whole(k, 1), checkpoint.Work{Events: 1})
		const quiet = 100_000
		for n := range uint64(quiet) {
			tracker.Begin(whole(k, 2+n), checkpoint.Work{})
		}
		require.Equal(t, 2, tracker.Waiting(), k.name)
		require.Zero(t, tracker.Peek().Counters.Transactions, k.name)
		tracker.Done(ticket)
		r := tracker.Peek()
		require.Equal(t, uint64(quiet+1), r.Counters.Transactions, k.name)
		require.Equal(t, uint64(1000*(quiet+2)), r.Position.Offset, k.name)
		require.True(t, !k.gtids || r.Position.GTIDs.Contains(k.gtid(quiet+1)), k.name)
	}
}

func TestTrackerSteadyStateDoesNotAllocate(t *testing.T) {
	for _, k := range kinds {
		tracker := checkpoint.NewTracker(k.start())
		tx := whole(k, 1)
		var tickets [8]checkpoint.Ticket
		turn := func() {
			for i := range tickets {
				if k.gtids {
					tx.GTID.Number++
					tx.Executed[0] = tx.GTID
				}
				tx.EndOffset++
				tickets[i] = tracker.Begin(tx, checkpoint.Work{Events: 1})
			}
			for i := range tickets {
				tracker.Done(tickets[len(tickets)-1-i])
			}
		}
		turn()
		require.Zero(t, testing.AllocsPerRun(1000, turn), k.name)
	}
}

// After a restart the server begins a large transaction anew: the place inside it must not
// move back while what was published before passes by, not even on another server.
func TestTrackerResumesInsideTransaction(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	start := k.start()
	start.Partial = &checkpoint.Partial{GTID: k.gtid(1), File: "binlog.000001", Start: 1000, Place: 250}
	tracker := checkpoint.NewTracker(start)
	piece := func(n int, last bool) *canal.Transaction {
		tx := whole(k, 1)
		tx.File, tx.Start = "replica.000007", 157
		tx.Piece, tx.Last = n, last
		return tx
	}
	tracker.Begin(piece(0, false), checkpoint.Work{Place: 100})
	require.Equal(t, uint64(250), tracker.Peek().Partial.Place)
	tracker.Begin(piece(1, false), checkpoint.Work{Place: 200})
	require.Equal(t, uint64(250), tracker.Peek().Partial.Place)
	ticket := tracker.Begin(piece(2, false), checkpoint.Work{Place: 300, Events: 50})
	require.Equal(t, uint64(250), tracker.Peek().Partial.Place)
	tracker.Done(ticket)
	require.Equal(t, &checkpoint.Partial{GTID: k.gtid(1), File: "replica.000007", Start: 157, Place: 300}, tracker.Peek().Partial)
	require.True(t, tracker.Peek().Position.GTIDs.IsEmpty(), "it is not over")
	tracker.Begin(piece(3, true), checkpoint.Work{})
	require.Nil(t, tracker.Peek().Partial)
	require.Equal(t, uint64(1), tracker.Peek().Position.GTIDs.Count())
	require.Equal(t, uint64(250), start.Partial.Place, "the caller's record is the caller's")
}

// By position, reading resumes before an unresolved XA PREPARE: what was published behind
// it passes again, and Published stays where it was.
func TestTrackerResumesBeforeHeld(t *testing.T) {
	t.Parallel()
	k := kinds[1]
	held := []canal.Prepared{{XID: "X'01',X'',1", File: "binlog.000009", Offset: 1000}}
	start := k.start()
	start.Position.File, start.Position.Offset = "binlog.000009", 1000
	start.Held = held
	start.Published = &canal.Position{File: "binlog.1000000", Offset: 5000}
	tracker := checkpoint.NewTracker(start)
	require.Empty(t, cmp.Diff(start, tracker.Peek()))

	again := &canal.Transaction{
		File: "binlog.000009", Start: 2000, Last: true, Held: held,
		ResumeFile: "binlog.000009", ResumeOffset: 1000, EndFile: "binlog.000010", EndOffset: 9000,
	}
	tracker.Begin(again, checkpoint.Work{})
	require.Equal(t, start.Published, tracker.Peek().Published)

	again.EndFile, again.EndOffset = "binlog.1000000", 6000
	tracker.Begin(again, checkpoint.Work{})
	require.Equal(t, &canal.Position{File: "binlog.1000000", Offset: 6000}, tracker.Peek().Published)

	again.Held, again.ResumeFile, again.ResumeOffset, again.EndOffset = nil, "binlog.1000000", 7000, 7000
	tracker.Begin(again, checkpoint.Work{})
	require.Nil(t, tracker.Peek().Published)

	// Another server's files are not compared with this one's.
	again.ResumeFile, again.ResumeOffset, again.EndFile, again.EndOffset = "replica.000001", 200, "replica.000001", 200
	tracker.Begin(again, checkpoint.Work{})
	require.Nil(t, tracker.Peek().Published)
	require.Equal(t, canal.Position{File: "replica.000001", Offset: 200}, tracker.Peek().Position)
}

func TestTrackerSetServer(t *testing.T) {
	t.Parallel()
	tracker := checkpoint.NewTracker(kinds[0].start())
	tracker.Record()
	id := tracker.Peek().Server
	tracker.SetServer(id)
	_, changed := tracker.Record()
	require.False(t, changed)
	id.Version = "9.7.5"
	tracker.SetServer(id)
	r, changed := tracker.Record()
	require.True(t, changed)
	require.Equal(t, id, r.Server)
}

func TestTrackerRefusesForeignTicket(t *testing.T) {
	t.Parallel()
	tracker := checkpoint.NewTracker(kinds[0].start())
	tracker.Done(0)
	require.Panics(t, func() { tracker.Done(1) })
}

// Confirmations come from several goroutines, while the record is read.
func TestTrackerConcurrently(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	tracker := checkpoint.NewTracker(k.start())
	tickets := make(chan checkpoint.Ticket, 100)
	var confirming sync.WaitGroup
	for range 4 {
		confirming.Go(func() {
			for ticket := range tickets {
				tracker.Done(ticket)
				r, _ := tracker.Record()
				_ = r.Position.GTIDs.String()
			}
		})
	}
	const transactions = 5000
	for n := range uint64(transactions) {
		tickets <- tracker.Begin(whole(k, n+1), checkpoint.Work{Events: 1})
	}
	close(tickets)
	confirming.Wait()
	require.Equal(t, uint64(transactions), tracker.Peek().Position.GTIDs.Count())
	require.Zero(t, tracker.Waiting())
}

func BenchmarkTracker(b *testing.B) {
	k := kinds[0]
	tracker := checkpoint.NewTracker(k.start())
	tx := whole(k, 1)
	for b.Loop() {
		tx.GTID.Number++
		tx.Executed[0] = tx.GTID
		tracker.Done(tracker.Begin(tx, checkpoint.Work{Events: 1, Bytes: 500}))
	}
}
