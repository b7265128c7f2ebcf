package pipeline_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// TestCaseHugeTransaction: one transaction of millions of rows; binlogd is killed in its middle, and goes on there.
func TestCaseHugeTransaction(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name      string
		start     func(testing.TB, testenv.Options) *testenv.Server
		rows      int
		recursion string // how the session is allowed as many
	}{
		{"mysql", testenv.StartMySQL, 2_000_000, "SET SESSION cte_max_recursion_depth = 10000000"},
		{"mariadb 10.11", testenv.StartMariaDB, 200_000, "SET SESSION max_recursive_iterations = 10000000"},
		{"mariadb 11.8", testenv.StartMariaDB118, 200_000, "SET SESSION max_recursive_iterations = 10000000"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			server := kind.start(t, testenv.Options{Args: []string{"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"}})
			db := server.Database(t)
			server.Exec(t, "CREATE TABLE "+db+".huge (id INT PRIMARY KEY, v INT)")
			s := newSettings(t, server, db+".huge")
			d := s.daemon(t, "")
			idle := d.peak(t)
			server.Exec(t, kind.recursion, "USE "+db, fmt.Sprintf(`INSERT INTO huge
				WITH RECURSIVE n (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < %d) SELECT id, 7 FROM n`, kind.rows-1))
			path := s.Publish.File.Path
			middle := int64(kind.rows) * 400 / 3 // bytes: an event has about 400
			require.Eventually(t, func() bool {
				info, err := os.Stat(path)
				return err == nil && info.Size() > middle
			}, patience, time.Millisecond)
			peak := d.peak(t)
			d.kill()
			published := countLines(t, path)

			began := time.Now()
			d = s.daemon(t, "")
			awaitCaughtUp(t, server, s.Checkpoint)
			took := time.Since(began)
			peak = max(peak, d.peak(t))
			d.stop(t)
			repeats := checkHuge(t, path, kind.rows)
			t.Logf("%d rows: killed after %d, %d of them repeated, the rest took %s; peak memory %d MiB, idle %d MiB", kind.rows, published, repeats, took, peak, idle)
			require.Less(t, repeats, published, "it goes on inside the transaction, not from its beginning")
			require.LessOrEqual(t, peak, memoryLimit)
		})
	}
}

// checkHuge reads a file of hundreds of megabytes: every row is there, in the order of the sequence, and repeats are equal byte for byte.
// It gives their number.
func checkHuge(t *testing.T, path string, rows int) (repeats int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	seed := maphash.MakeSeed()
	seen := make([]uint64, rows) // hash of the row's event
	found := 0
	var sequence []byte
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Bytes()
		id, err := strconv.Atoi(string(member(line, "partitionkey")))
		hash := maphash.Bytes(seed, line)
		switch { // testify takes its time, two million times
		case err != nil || id >= rows:
			require.FailNow(t, "no row of the transaction", "%s", line)
		case seen[id] == hash:
			repeats++
			continue
		case seen[id] != 0:
			require.FailNow(t, "a repeat differs", "%s", line)
		}
		seen[id] = hash
		found++
		next := member(line, "sequence")
		if bytes.Compare(next, sequence) <= 0 {
			require.FailNow(t, "order", "%s after sequence %s", line, sequence)
		}
		sequence = append(sequence[:0], next...)
	}
	require.NoError(t, lines.Err())
	require.Equal(t, rows, found)
	return repeats
}

func countLines(t *testing.T, path string) (lines int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := f.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte{'\n'})
		if err != nil {
			return lines
		}
	}
}

// member is a text in an event's JSON, without the decoding that two million events would take.
func member(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"`+name+`":"`))
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return value
}
