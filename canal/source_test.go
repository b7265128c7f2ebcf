package canal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// reading is a Source under test and what it gave so far.
type reading struct {
	t            *testing.T
	source       *Source
	transactions []*Transaction // whole or in pieces
}

func connectTo(s *testenv.Server) ConnectOptions {
	return ConnectOptions{Address: s.Addr, User: s.RootUser, Password: s.RootPassword}
}

func follow(t *testing.T, s *testenv.Server, from Resume, captured ...string) *reading {
	t.Helper()
	source, err := OpenSource(t.Context(), SourceOptions{
		Connect: connectTo(s), Heartbeat: time.Second, From: from, SpillDir: t.TempDir(),
		Captured: func(database, table string) bool {
			return slices.Contains(captured, database+"."+table)
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	r := &reading{t: t, source: source}
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	return r
}

func locate(t *testing.T, s *testenv.Server, start string) Resume {
	t.Helper()
	parsed, err := ParseStart(start)
	require.NoError(t, err)
	at, err := Locate(t.Context(), connectTo(s), parsed)
	require.NoError(t, err)
	return at
}

// next reads one more segment. It is released at once.
func (r *reading) next(ctx context.Context) error {
	segment, err := r.source.Next(ctx)
	if err != nil {
		return err
	}
	r.transactions = append(r.transactions, segment.Transactions...)
	segment.Release()
	return nil
}

// until reads until the condition holds.
func (r *reading) until(what string, holds func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	for !holds() {
		require.NoErrorf(r.t, r.next(ctx), "waiting for: %s", what)
	}
}

// fails reads until the source ends and gives its error.
func (r *reading) fails() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	for {
		if err := r.next(ctx); err != nil {
			require.NotErrorIs(r.t, err, context.DeadlineExceeded)
			return err
		}
	}
}

// withRows are the transactions, in order, that carry rows events, as "number of them".
func (r *reading) withRows() []int {
	var counts []int
	n := 0
	for _, t := range r.transactions {
		for _, e := range t.events {
			if isRowsEvent(rawEvent(e).kind()) {
				n++
			}
		}
		if t.Last {
			if n > 0 {
				counts = append(counts, n)
			}
			n = 0
		}
	}
	return counts
}

// executed is the set that the transactions say is done.
func (r *reading) executed(from *GTIDSet) *GTIDSet {
	set := from.Clone()
	for _, t := range r.transactions {
		for _, g := range t.Executed {
			set.Add(g)
		}
	}
	return set
}

func (r *reading) hasRead(s *testenv.Server, from *GTIDSet) func() bool {
	want, err := ParseGTIDSet(from.Flavor(), s.GTIDExecuted(r.t))
	require.NoError(r.t, err)
	return func() bool { return r.executed(from).ContainsSet(want) }
}

// servers are those that a test of the source runs on.
func servers(t *testing.T, f func(t *testing.T, s *testenv.Server)) {
	for _, kind := range []struct {
		name  string
		start func(testing.TB, testenv.Options) *testenv.Server
	}{
		{"mysql", testenv.StartMySQL}, {"mariadb 10.11", testenv.StartMariaDB}, {"mariadb 11.8", testenv.StartMariaDB118},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f(t, kind.start(t, testenv.Options{}))
		})
	}
}

func TestSourceCutsTransactions(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		at := locate(t, s, "latest")
		r := follow(t, s, at)
		s.Exec(t, "USE "+db, `
			CREATE TABLE a (id INT PRIMARY KEY, v INT);
			CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM;
			INSERT INTO a VALUES (1,1);
			BEGIN; INSERT INTO a VALUES (2,2); SAVEPOINT s; INSERT INTO a VALUES (3,3); ROLLBACK TO s; INSERT INTO a VALUES (4,4); COMMIT;
			BEGIN; INSERT INTO a VALUES (5,5); ROLLBACK;
			INSERT INTO m VALUES (1,1),(2,2);
			UPDATE m SET v=3 WHERE id=2;
			CREATE TABLE copied AS SELECT * FROM a;
			DROP TABLE m`)
		r.until("all of it", r.hasRead(s, at.Position.GTIDs))
		require.Equal(t, []int{1, 2, 1, 1, 1}, r.withRows())
		file, offset := s.BinlogPosition(t)
		last := r.transactions[len(r.transactions)-1]
		require.Equal(t, fmt.Sprint(file, offset), fmt.Sprint(last.EndFile, last.EndOffset))
	})
}

func TestSourceXA(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE x (id INT PRIMARY KEY, v INT)")
		at := locate(t, s, "latest")
		r := follow(t, s, at)
		s.Exec(t, "USE "+db, `XA START 'a'; INSERT INTO x VALUES (1,1); XA END 'a'; XA PREPARE 'a'`)
		s.Exec(t, "USE "+db, `INSERT INTO x VALUES (10,10)`)
		s.Exec(t, "USE "+db, `XA START 'b'; INSERT INTO x VALUES (2,2),(3,3); XA END 'b'; XA PREPARE 'b'`)
		s.Exec(t, "USE "+db, `XA START 'c'; INSERT INTO x VALUES (4,4); XA END 'c'; XA COMMIT 'c' ONE PHASE`)
		r.until("the rows that are committed", func() bool { return len(r.withRows()) == 2 })
		held := r.transactions[len(r.transactions)-1].Held
		require.Len(t, held, 2)
		require.Equal(t, "X'61',X'',1", held[0].XID)
		done := r.executed(at.Position.GTIDs)
		require.False(t, done.Contains(held[0].GTID), "an unresolved PREPARE does not count as executed")

		// A second reader that resumes from there gets the rows of the PREPAREs that are committed now.
		resumed := follow(t, s, Resume{
			Position: Position{GTIDs: done}, Held: held, Server: r.source.Server(),
			Published: &Position{GTIDs: r.source.cutterRead(t)},
		})
		s.Exec(t, "XA COMMIT 'b'", "XA ROLLBACK 'a'")
		for _, r := range []*reading{r, resumed} {
			r.until("both ends", func() bool {
				n := len(r.transactions)
				return n > 0 && r.transactions[n-1].Last && len(r.transactions[n-1].Held) == 0
			})
		}
		require.Equal(t, []int{1, 1, 1}, r.withRows())
		require.Equal(t, []int{1}, resumed.withRows())
		want, err := ParseGTIDSet(done.Flavor(), s.GTIDExecuted(t))
		require.NoError(t, err)
		require.Equal(t, want.String(), r.executed(at.Position.GTIDs).String())
		require.Equal(t, want.String(), resumed.executed(done).String())
	})
}

// cutterRead is the set of all that was read. The source must be idle.
func (s *Source) cutterRead(t *testing.T) *GTIDSet {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	return s.cutter.read.Clone()
}

func TestSourceWithoutGTIDs(t *testing.T) {
	s := testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	db := s.Database(t)
	at := locate(t, s, "latest")
	require.Nil(t, at.Position.GTIDs)
	r := follow(t, s, at)
	s.Exec(t, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (2)")
	file, offset := s.BinlogPosition(t)
	r.until("all of it", func() bool {
		n := len(r.transactions)
		return n > 0 && r.transactions[n-1].EndFile == file && r.transactions[n-1].EndOffset == offset
	})
	require.Equal(t, []int{1, 1}, r.withRows())

	middle := r.transactions[1]
	again := follow(t, s, Resume{Position: Position{File: middle.ResumeFile, Offset: middle.ResumeOffset}, Server: at.Server})
	again.until("the rest", func() bool { return len(again.withRows()) == 1 })
	require.Equal(t, r.transactions[2].Start, again.transactions[0].Start)
	require.Equal(t, r.transactions[2].File, again.transactions[0].File)
}

func TestSourceCompressedAndTagged(t *testing.T) {
	s := testenv.StartMySQL(t, testenv.Options{})
	db := s.Database(t)
	at := locate(t, s, "latest")
	r := follow(t, s, at)
	s.Exec(t, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(1000))",
		"SET SESSION binlog_transaction_compression=ON",
		"INSERT INTO a VALUES (1, REPEAT('x',1000)),(2,REPEAT('y',1000))",
		"SET gtid_next='AUTOMATIC:blue'", "INSERT INTO a VALUES (3,'z')", "SET gtid_next='AUTOMATIC'", "INSERT INTO a VALUES (4,'z')")
	r.until("all of it", r.hasRead(s, at.Position.GTIDs))
	require.Equal(t, []int{1, 1, 1}, r.withRows())
	require.Contains(t, r.executed(at.Position.GTIDs).String(), ":blue:1")
	number := at.Position.GTIDs.Count()
	for i, transaction := range r.transactions {
		require.Equal(t, number+uint64(i)+1, transaction.Number)
	}
	follow(t, s, Resume{Position: Position{GTIDs: r.executed(at.Position.GTIDs)}, Server: at.Server})
}

func TestSourceReconnects(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY, v LONGTEXT)")
		at := locate(t, s, "latest")
		r := follow(t, s, at)
		for i := range 10 {
			s.Exec(t, "USE "+db, fmt.Sprintf("INSERT INTO a VALUES (%d, REPEAT('x', 300000)), (%d, REPEAT('x', 900000))", i, i+100))
			if i%3 == 0 {
				s.KillDumpThreads(t)
			}
		}
		s.Restart(t)
		s.Exec(t, "USE "+db, "INSERT INTO a VALUES (1000, 'end')")
		r.until("all of it", r.hasRead(s, at.Position.GTIDs))
		seen := make(map[GTID]int)
		for _, transaction := range r.transactions {
			if transaction.Last {
				seen[transaction.GTID]++
			}
		}
		require.Len(t, seen, 11)
		for g, n := range seen {
			require.Equal(t, 1, n, g)
		}
		require.NotZero(t, r.source.Status().Reconnects)
	})
}

func TestSourceStopsAtStatementFormat(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE sf (id INT PRIMARY KEY, v INT)", "CREATE TABLE other (id INT PRIMARY KEY, v INT)")
		at := locate(t, s, "latest")
		r := follow(t, s, at, db+".sf")
		s.Exec(t, "USE "+db, "INSERT INTO sf VALUES (1,1); INSERT INTO other VALUES (1,1)",
			"SET SESSION binlog_format=STATEMENT", "UPDATE other SET v=2", "UPDATE sf SET v=2")
		err := r.fails()
		var source *SourceError
		require.ErrorAs(t, err, &source)
		require.Contains(t, err.Error(), db+".sf")
		require.Contains(t, err.Error(), "binlog_format=ROW")
		last, err2 := ParseGTIDSet(at.Position.GTIDs.Flavor(), s.GTIDExecuted(t))
		require.NoError(t, err2)
		require.False(t, r.executed(at.Position.GTIDs).ContainsSet(last), "the place stays before the statement")
		require.Equal(t, []int{1, 1}, r.withRows())
	})
}

func TestLocate(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY)")
		type point struct {
			file   string
			offset uint64
			gtids  string
			time   time.Time
		}
		var points []point
		for i := range 6 {
			file, offset := s.BinlogPosition(t)
			time.Sleep(1100 * time.Millisecond)
			points = append(points, point{file, offset, s.GTIDExecuted(t), time.Now()})
			time.Sleep(1100 * time.Millisecond)
			s.Exec(t, fmt.Sprintf("INSERT INTO %s.a VALUES (%d)", db, i))
			if i%2 == 1 {
				s.Exec(t, "FLUSH BINARY LOGS")
			}
		}
		flavor := locate(t, s, "latest").Position.GTIDs.Flavor()
		for _, p := range points {
			want, err := ParseGTIDSet(flavor, p.gtids)
			require.NoError(t, err)
			byFile := locate(t, s, fmt.Sprintf("file:%s:%d", p.file, p.offset))
			require.Equal(t, want.String(), byFile.Position.GTIDs.String())
			byTime := locate(t, s, "time:"+p.time.UTC().Format(time.RFC3339Nano))
			require.Equal(t, want.String(), byTime.Position.GTIDs.String(), "at %s", p.time)
		}
		require.Equal(t, strings.ReplaceAll(s.GTIDExecuted(t), "\n", ""), locate(t, s, "latest").Position.GTIDs.String())
		earliest := follow(t, s, locate(t, s, "earliest"))
		earliest.until("the first rows", func() bool { return len(earliest.withRows()) >= 6 })

		_, err := Locate(t.Context(), connectTo(s), Start{Kind: StartFile, File: points[1].file, Offset: points[1].offset + 3})
		var config *ConfigError
		if flavor == MySQL {
			require.ErrorAs(t, err, &config)
		}
	})
}
