package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// The tables under test count their own changes: each row's n is the number of changes that its key has seen. So the database
// itself says afterwards which events must be there, also where a client never heard whether its COMMIT was done.
const modelSchema = `
	CREATE TABLE counted (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(2000) NOT NULL);
	CREATE TABLE other (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(2000) NOT NULL)`

// load writes transactions of 1 to 20 changes over both tables, and goes on through every error.
type load struct {
	server  *testenv.Server
	db      string
	writers int
	pause   time.Duration // between a writer's transactions
	session string        // a statement that each session begins with
}

// newLoad makes the tables.
func newLoad(t *testing.T, s *testenv.Server) load {
	t.Helper()
	l := load{server: s, db: s.Database(t), writers: 2, pause: 4 * time.Millisecond}
	s.Exec(t, "USE "+l.db, modelSchema)
	return l
}

// start writes until ctx ends; wait returns when the last writer has.
func (l load) start(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	for w := range l.writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for ctx.Err() == nil {
				if err := l.write(ctx, w, random); err != nil && ctx.Err() == nil {
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(l.pause)
			}
		})
	}
	return group.Wait
}

// write writes one transaction.
func (l load) write(ctx context.Context, writer int, random *rand.Rand) error {
	conn, err := l.server.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if l.session != "" {
		if _, err := conn.ExecContext(ctx, l.session); err != nil {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for range 1 + random.IntN(20) {
		if _, err := tx.ExecContext(ctx, l.change(writer*1000+random.IntN(200), random)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// change is a statement that inserts or updates the row with the id in one of the tables.
func (l load) change(id int, random *rand.Rand) string {
	table := []string{"counted", "other"}[random.IntN(2)]
	return fmt.Sprintf("INSERT INTO %s.%s VALUES (%d, 0, REPEAT('x', %d)) ON DUPLICATE KEY UPDATE n = n + 1", l.db, table, id, random.IntN(300))
}

// during writes while f runs, and until then.
func (l load) during(t *testing.T, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := l.start(ctx)
	f()
	cancel()
	wait()
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

func parseEvent(t *testing.T, line string) event {
	t.Helper()
	e := event{raw: line}
	require.NoErrorf(t, json.Unmarshal([]byte(line), &e), "%.200s", line)
	return e
}

// tally is what verify found.
type tally struct{ events, distinct, repeats int }

// verify holds the events against the database: for every key each of its n+1 changes is there, in order, and every repeat is the
// same event with the same id, byte for byte. Inside each run the events are in commit order, but for the repeats.
func (l load) verify(t *testing.T, runs [][]event) tally {
	t.Helper()
	var found tally
	first := make(map[string]event) // by id
	next := make(map[string]int)    // by table and key: the n to come
	for _, events := range runs {
		sequence := ""
		for i, e := range events {
			found.events++
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
	}
	for _, table := range []string{"counted", "other"} {
		for _, row := range l.server.Query(t, fmt.Sprintf("SELECT id, n FROM %s.%s", l.db, table)) {
			n, err := strconv.Atoi(row["n"])
			require.NoError(t, err)
			require.Equalf(t, n+1, next[table+"/"+row["id"]], "%s %s: changes published of %d committed", table, row["id"], n+1)
			delete(next, table+"/"+row["id"])
		}
	}
	require.Empty(t, next, "events of keys that the database does not have")
	found.distinct = len(first)
	found.repeats = found.events - found.distinct
	require.NotZero(t, found.distinct)
	return found
}
