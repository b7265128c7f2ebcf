package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// shelfOf is a store of parts as every store keeps them, with what they take.
type shelfOf map[uint64][]byte

func (s shelfOf) apply(c change) {
	for _, key := range c.Drop {
		delete(s, key)
	}
	for _, p := range c.Put {
		s[p.Key] = p.Data
	}
}

func (s shelfOf) parts() []part {
	var parts []part
	for key, data := range s {
		parts = append(parts, part{Key: key, Data: data})
	}
	return parts
}

func (s shelfOf) bytes() (n int) {
	for _, data := range s {
		n += len(data)
	}
	return n
}

// busy is the n-th record of a pipeline that is busy, saved at a time.
func busy(t *testing.T, set *canal.GTIDSet, n uint64, at time.Time) *Record {
	t.Helper()
	for i := range uint64(20) {
		set.Add(canal.GTID{UUID: [16]byte{0x3e, 0x11}, Number: 20*n + i + 1})
	}
	return &Record{
		Name: "shop", Position: canal.Position{GTIDs: set.Clone(), File: fmt.Sprintf("binlog.%06d", n/5000), Offset: n % 5000 * 12345},
		Server:   canal.Identity{Flavor: canal.MySQL, UUID: "3e110000-0000-0000-0000-000000000000", ServerID: 1, Version: "9.7.4"},
		Counters: Counters{Transactions: 20 * n, Events: 57 * n, Bytes: 31234 * n}, WrittenAt: at, WrittenBy: "host, process 1",
	}
}

// TestWeekOfHistory saves twice a second in the last seventy minutes of a week, and once a minute before: a finer step would
// change nothing there, since one entry a minute is kept.
func TestWeekOfHistory(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	end := start.Add(7 * 24 * time.Hour)
	j, kept := &journal{}, shelfOf{}
	set := canal.NewGTIDSet(canal.MySQL)
	a := author{holder: Holder{PID: 1, Host: "host"}}
	largest, number := 0, uint64(0)
	moves, recent := 0, 0 // recent: of the last hour
	for at := start; !at.After(end); {
		number++
		var m *Move
		if number%3_000 == 0 {
			m = &Move{Action: ActionRewind, Reason: "a test"}
		}
		_, e := a.entry(j.next(), nil, busy(t, set, number, at), m)
		if m != nil { // it was made now, whatever the simulated time is
			e.At, e.Record.WrittenAt = at, at
			moves++
			if end.Sub(at) <= time.Hour {
				recent++
			}
		}
		c, err := j.append(e)
		require.NoError(t, err)
		kept.apply(c)
		if number%1000 == 0 {
			largest = max(largest, kept.bytes())
		}
		step := time.Minute
		if end.Sub(at) < 70*time.Minute {
			step = 500 * time.Millisecond
		}
		at = at.Add(step)
	}
	t.Logf("%d saves: %d bytes in %d parts, %d at most", number, kept.bytes(), len(kept), largest)
	require.Less(t, max(largest, kept.bytes()), 1<<20)

	history, err := entries(kept.parts(), nil)
	require.NoError(t, err)
	require.Equal(t, entryID(number), history[0].ID)
	counts := map[time.Duration]int{}
	for i := range history {
		e := &history[i]
		require.True(t, i == 0 || e.number() < history[i-1].number())
		if e.Manual {
			counts[0]++
			continue
		}
		switch age := end.Sub(e.At); {
		case age <= time.Hour:
			counts[time.Hour]++
		case age <= 24*time.Hour:
			counts[24*time.Hour]++
		default:
			counts[7*24*time.Hour]++
			require.Equal(t, e.At.Truncate(time.Hour), e.At)
		}
		n := e.number()
		require.Equal(t, 20*n, e.Record.Counters.Transactions)
		require.Equal(t, 20*n, e.Record.Position.GTIDs.Count())
	}
	require.Equal(t, moves, counts[0])
	require.Equal(t, 7201-recent, counts[time.Hour], "all of the last hour")
	require.InDelta(t, 23*60, counts[24*time.Hour], 2)
	require.InDelta(t, 6*24, counts[7*24*time.Hour], 2)

	// Whoever goes on finds all of it.
	again, err := openJournal(kept.parts())
	require.NoError(t, err)
	require.Equal(t, j.next(), again.next())
	c, err := again.append(mustEntry(a.entry(again.next(), nil, busy(t, set, number+1, end), nil)))
	require.NoError(t, err)
	kept.apply(c)
	longer, err := entries(kept.parts(), nil)
	require.NoError(t, err)
	require.Len(t, longer, len(history)+1)
	require.Empty(t, cmp.Diff(history[0], longer[1]))
}

func mustEntry(_ *Record, e *Entry) *Entry { return e }

// TestDamagedHistory: what is damaged is told and left out, and nothing else is.
func TestDamagedHistory(t *testing.T) {
	t.Parallel()
	const saves = 700
	path := filepath.Join(t.TempDir(), "shop.checkpoint")
	f, err := OpenFile(path, "shop")
	require.NoError(t, err)
	set := canal.NewGTIDSet(canal.MySQL)
	start := time.Now().UTC().Add(-saves * time.Second)
	for n := range uint64(saves) {
		require.NoError(t, f.Save(t.Context(), busy(t, set, n, start.Add(time.Duration(n)*time.Second))))
	}
	whole, err := os.ReadFile(path + ".history")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for name, damage := range map[string]struct {
		content []byte
		left    int // at least
	}{
		"gone":            {nil, 1}, // the one beside the record
		"torn":            {whole[:len(whole)-40], saves},
		"a flipped bit":   {flipped(whole, len(whole)-300), saves - 255},
		"zeroes":          {append(whole[:len(whole)/2:len(whole)/2], make([]byte, 512)...), 1},
		"something else":  {[]byte("binlog.000042:157\n"), 1},
		"without a start": {whole[100:], 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path+".history", damage.content, 0o600))
			f, err := OpenFile(path, "shop")
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			_, err = f.Load(t.Context())
			require.NoError(t, err, "the checkpoint is whole whatever becomes of its history")
			history, err := f.History(t.Context())
			if err != nil {
				var told *HistoryError
				require.ErrorAs(t, err, &told)
				require.ErrorContains(t, err, path+".history")
			}
			require.GreaterOrEqual(t, len(history), damage.left)
			require.Equal(t, uint64(20*(saves-1)), history[0].Record.Counters.Transactions)
			before := history[0].number()

			// It goes on, with numbers that were not there before.
			require.NoError(t, f.Save(t.Context(), busy(t, set, saves, time.Now().UTC())))
			longer, err := f.History(t.Context())
			if err != nil {
				require.ErrorAs(t, err, new(*HistoryError))
			}
			require.Greater(t, longer[0].number(), before)
			require.GreaterOrEqual(t, len(longer), len(history))
			require.Equal(t, uint64(20*saves), longer[0].Record.Counters.Transactions)
			for i := 1; i < len(longer); i++ {
				require.Less(t, longer[i].number(), longer[i-1].number())
			}
			record, err := f.Load(t.Context())
			require.NoError(t, err)
			require.Equal(t, longer[0].Record.Counters, record.Counters)
			record.Counters.Transactions = 20 * (saves - 1)
			require.NoError(t, f.Save(t.Context(), record))
		})
	}
}

func flipped(whole []byte, at int) []byte {
	b := append([]byte(nil), whole...)
	b[at] ^= 1
	return b
}

func TestHistoryFileStaysSmall(t *testing.T) {
	t.Parallel()
	h := historyFile{path: filepath.Join(t.TempDir(), "history")}
	j := &journal{}
	a := author{holder: Holder{PID: 1, Host: "host"}}
	set := canal.NewGTIDSet(canal.MySQL)
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	largest := int64(0)
	var pending []change
	for n := range uint64(9_000) {
		c, err := j.append(mustEntry(a.entry(j.next(), nil, busy(t, set, n, start.Add(time.Duration(n)*500*time.Millisecond)), nil)))
		require.NoError(t, err)
		if pending = append(pending, c); len(pending) < 50 { // a sync for each would take long
			continue
		}
		if h.grown() {
			require.NoError(t, h.rewrite(j.parts()))
		} else {
			require.NoError(t, h.append(pending))
		}
		pending = nil
		largest = max(largest, h.size)
	}
	require.Less(t, largest, int64(1<<20))
	parts, whole, err := h.read()
	require.NoError(t, err)
	require.Equal(t, h.size, whole)
	history, err := entries(parts, nil)
	require.NoError(t, err)
	require.Equal(t, entryID(9_000), history[0].ID)
	t.Logf("%d bytes at most, %d entries", largest, len(history))
}
