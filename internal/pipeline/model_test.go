package pipeline_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv"
)

// The tables under test count their own changes: each row's n is the number of changes that its key has seen. So the database
// itself says afterwards which events must be there, also where a client never heard whether its COMMIT was done.
const modelSchema = `
	CREATE TABLE counted (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(2000) NOT NULL);
	CREATE TABLE other (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(2000) NOT NULL)`

// writeLoad writes transactions of 1 to 20 changes over both tables until ctx ends, from several connections, and goes on
// through every error.
func writeLoad(ctx context.Context, t *testing.T, s *testenv.Server, db string, writers int, pause time.Duration) (wait func()) {
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7)) //nolint:gosec // a load
			for ctx.Err() == nil {
				if err := writeOnce(ctx, s, db, w, random); err != nil && ctx.Err() == nil {
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(pause)
			}
		})
	}
	return group.Wait
}

func writeOnce(ctx context.Context, s *testenv.Server, db string, writer int, random *rand.Rand) error {
	conn, err := s.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing depends on it
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it does nothing after Commit
	for range 1 + random.IntN(20) {
		table := []string{"counted", "other"}[random.IntN(2)]
		id := writer*1000 + random.IntN(200)
		statement := fmt.Sprintf("INSERT INTO %s.%s VALUES (%d, 0, REPEAT('x', %d)) ON DUPLICATE KEY UPDATE n = n + 1", db, table, id, random.IntN(300))
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// event is what the tests look at of a published event.
type event struct {
	ID, Type, Source, Subject, GTID, Sequence, PartitionKey string
	Data                                                    struct{ Row, Old map[string]json.RawMessage }
	raw                                                     string
}

func (e event) table() string { return e.Source[strings.LastIndexByte(e.Source, '/')+1:] }

func (e event) number(t *testing.T, column string) int {
	n, err := strconv.Atoi(string(e.Data.Row[column]))
	require.NoErrorf(t, err, "column %s of %s", column, e.raw)
	return n
}

// readEvents reads the whole lines of a file of events.
func readEvents(t *testing.T, path string) []event {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // it is only read
	var events []event
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return events
		}
		events = append(events, parseEvent(t, strings.TrimSuffix(line, "\n")))
	}
}

func parseEvent(t *testing.T, line string) event {
	t.Helper()
	e := event{raw: line}
	require.NoErrorf(t, json.Unmarshal([]byte(line), &e), "%.200s", line)
	return e
}

// tally is what verify found.
type tally struct{ events, distinct, repeats int }

// verify holds the events against the database: for every key each of its n+1 changes is there, in order, and every repeat is the
// same event with the same id, byte for byte.
func verify(t *testing.T, s *testenv.Server, db string, events []event) tally {
	t.Helper()
	first := make(map[string]event) // by id
	next := make(map[string]int)    // by table and key: the n to come
	sequence := ""
	for i, e := range events {
		if before, ok := first[e.ID]; ok {
			require.Equal(t, before.raw, e.raw, "an id stands for two different events")
			continue
		}
		first[e.ID] = e
		key := e.table() + "/" + e.PartitionKey
		n := e.number(t, "n")
		require.Equalf(t, next[key], n, "event %d: key %s: expected its change %d\n%s", i, key, next[key], e.raw)
		next[key] = n + 1
		require.Greater(t, e.Sequence, sequence, "commit order")
		sequence = e.Sequence
	}
	for _, table := range []string{"counted", "other"} {
		for _, row := range s.Query(t, fmt.Sprintf("SELECT id, n FROM %s.%s", db, table)) {
			n, err := strconv.Atoi(row["n"])
			require.NoError(t, err)
			require.Equalf(t, n+1, next[table+"/"+row["id"]], "%s %s: changes published of %d committed", table, row["id"], n+1)
			delete(next, table+"/"+row["id"])
		}
	}
	require.Empty(t, next, "events of keys that the database does not have")
	return tally{events: len(events), distinct: len(first), repeats: len(events) - len(first)}
}

func parseSet(f canal.Flavor, text string) (*canal.GTIDSet, error) {
	return canal.ParseGTIDSet(f, text)
}
