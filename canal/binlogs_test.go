package canal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// openBinlogs looks at a server's binlogs until the test ends.
func openBinlogs(t *testing.T, s *testenv.Server) *Binlogs {
	t.Helper()
	b, err := OpenBinlogs(t.Context(), connectTo(s), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// spots are all transactions of the server's binlogs, in order, and the place before each.
func spots(t *testing.T, b *Binlogs) []*Spot {
	t.Helper()
	files, err := b.Files(t.Context())
	require.NoError(t, err)
	var all []*Spot
	at := place{}
	for {
		spot, err := b.walk(t.Context(), files, 0, func(p place, _ begin) bool { return at.file == "" || at.before(p) })
		require.NoError(t, err)
		all = append(all, spot)
		if spot.Next == nil {
			return all
		}
		at = place{spot.File, spot.Offset}
	}
}

// TestBinlogsFindEachTransaction: each transaction of several files is found by its GTID, its place, the set before it and its time,
// and each gives the same place; and the place before an XA COMMIT remembers the PREPARE.
func TestBinlogsFindEachTransaction(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY)")
		for i := range 3 {
			s.Exec(t, fmt.Sprintf("INSERT INTO %s.a VALUES (%d)", db, 2*i), fmt.Sprintf("INSERT INTO %s.a VALUES (%d)", db, 2*i+1), "FLUSH BINARY LOGS")
		}
		s.Exec(t, "XA START 'x'", fmt.Sprintf("INSERT INTO %s.a VALUES (100)", db), "XA END 'x'", "XA PREPARE 'x'")
		s.Exec(t, fmt.Sprintf("INSERT INTO %s.a VALUES (101)", db), "XA COMMIT 'x'", "FLUSH BINARY LOGS")
		b := openBinlogs(t, s)
		all := spots(t, b)
		require.Greater(t, len(all), 9)
		held := 0
		for _, want := range all[:len(all)-1] {
			held += len(want.Resume.Held)
			for how, find := range map[string]func() (*Spot, error){
				"by GTID":     func() (*Spot, error) { return b.Of(t.Context(), want.Next.GTID) },
				"by position": func() (*Spot, error) { return b.At(t.Context(), want.File, want.Offset) },
				"by set":      func() (*Spot, error) { return b.After(t.Context(), want.Read) },
			} {
				got, err := find()
				require.NoError(t, err, how)
				require.Equal(t, want.Next, got.Next, how)
				require.Equal(t, want.Read.String(), got.Read.String(), how)
				if len(want.Resume.Held) == len(got.Resume.Held) { // a search that began behind the PREPARE cannot know of it
					require.Equal(t, want.Resume.Position.GTIDs.String(), got.Resume.Position.GTIDs.String(), how)
				}
			}
			got, err := b.Since(t.Context(), want.Next.CommittedAt)
			require.NoError(t, err)
			require.Equal(t, want.Next.CommittedAt, got.Next.CommittedAt)
			for _, earlier := range all {
				if (place{earlier.File, earlier.Offset}).before(place{got.File, got.Offset}) {
					require.True(t, earlier.Next.CommittedAt.Before(want.Next.CommittedAt), "a transaction at or after the time was passed over")
				}
			}
		}
		require.Equal(t, 2, held, "before the INSERT and before the XA COMMIT there is one prepared transaction")

		future, err := b.Since(t.Context(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Nil(t, future.Next)
		_, err = b.At(t.Context(), all[3].File, all[3].Offset+5)
		var config *ConfigError
		require.ErrorAs(t, err, &config)
		require.Contains(t, config.Remedy, fmt.Sprintf("%s:%d", all[3].File, all[3].Offset))

		s.PurgeBinlogs(t)
		var gone *SourceError
		for how, find := range map[string]func() (*Spot, error){
			"by GTID":     func() (*Spot, error) { return b.Of(t.Context(), all[0].Next.GTID) },
			"by position": func() (*Spot, error) { return b.At(t.Context(), all[0].File, all[0].Offset) },
			"by set":      func() (*Spot, error) { return b.After(t.Context(), all[0].Read) },
			"by time":     func() (*Spot, error) { return b.Since(t.Context(), all[0].Next.CommittedAt.Add(-time.Hour)) },
		} {
			_, err := find()
			require.ErrorAs(t, err, &gone, how)
			require.Contains(t, gone.Remedy, "the oldest possible point is "+s.BinlogFiles(t)[0], how)
		}
	})
}

// TestBinlogsReadLittle: among a hundred files a time, a set, a GTID and a place are found by reading less than three of them.
func TestBinlogsReadLittle(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const files, size = 100, 256 << 10
			s := start(t, testenv.Options{})
			db := s.Database(t)
			write := func(files int) {
				statements := []string{"CREATE TABLE IF NOT EXISTS " + db + ".a (id INT PRIMARY KEY, filler LONGBLOB)"}
				for range files {
					statements = append(statements, fmt.Sprintf("REPLACE INTO %s.a VALUES (1, REPEAT('x', %d))", db, size/2), "DELETE FROM "+db+".a", "FLUSH BINARY LOGS")
				}
				s.Exec(t, statements...)
			}
			write(files / 2)
			middle := time.Now()
			write(files / 2)
			target, err := openBinlogs(t, s).Since(t.Context(), middle)
			require.NoError(t, err)
			for how, find := range map[string]func(b *Binlogs) (*Spot, error){
				"by time":     func(b *Binlogs) (*Spot, error) { return b.Since(t.Context(), middle) },
				"by set":      func(b *Binlogs) (*Spot, error) { return b.After(t.Context(), target.Read) },
				"by GTID":     func(b *Binlogs) (*Spot, error) { return b.Of(t.Context(), target.Next.GTID) },
				"by position": func(b *Binlogs) (*Spot, error) { return b.At(t.Context(), target.File, target.Offset) },
			} {
				b := openBinlogs(t, s)
				found, err := find(b)
				require.NoError(t, err, how)
				require.Equal(t, target.Next, found.Next, how)
				cost := b.Searched()
				t.Logf("%s: %d looks, %d files, %d bytes, %s", how, cost.Looks, cost.Files, cost.Bytes, cost.Took)
				require.Less(t, cost.Bytes, uint64(3*size), how)
				require.LessOrEqual(t, cost.Looks, 8, how)
			}
		})
	}
}
