package checkpoint_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// whole is the n-th transaction, in one piece.
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
