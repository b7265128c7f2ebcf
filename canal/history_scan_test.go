package canal

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// lookAhead opens the schemas of a database at a place that the server is ahead of.
func lookAhead(t *testing.T, s *testenv.Server, from Resume, db string) *schemaTracker {
	t.Helper()
	tracker, err := openSchemas(t.Context(), t.Context(), schemaOptions{
		connect: connectTo(s), captured: func(database, _ string) bool { return database == db },
		from: from, server: from.Server, logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	t.Cleanup(tracker.closeConn)
	return tracker
}

// A look ahead into the binlog finds what changes a table, and ends at the end of the binlog that was there when it began: on an
// idle server, after other files have begun, and while the server is written.
func TestLookAheadEndsAtTheEnd(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) { lookAheadCases(t, s) })
	t.Run("mysql without GTIDs", func(t *testing.T) {
		t.Parallel()
		lookAheadCases(t, testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}))
	})
}

func lookAheadCases(t *testing.T, s *testenv.Server) {
	for name, script := range map[string]string{
		"rows at the end":       "INSERT INTO calm VALUES (2)",
		"a statement":           "ALTER TABLE moved ADD c INT",
		"a rotation at the end": "ALTER TABLE moved ADD c INT; FLUSH BINARY LOGS",
		"several files":         "ALTER TABLE moved ADD c INT; FLUSH BINARY LOGS; INSERT INTO calm VALUES (2); FLUSH BINARY LOGS; INSERT INTO calm VALUES (3)",
	} {
		for _, written := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, written meanwhile: %t", name, written), func(t *testing.T) {
				db := s.Database(t)
				s.Exec(t, "USE "+db, "CREATE TABLE calm (id INT); CREATE TABLE moved (id INT)")
				from := locate(t, s, "latest")
				s.Exec(t, "USE "+db, "INSERT INTO calm VALUES (1); INSERT INTO moved VALUES (1); "+script)
				tracker := lookAhead(t, s, from, db)
				if written {
					stop := make(chan struct{})
					var writing sync.WaitGroup
					writing.Go(func() {
						for i := 0; ; i++ {
							select {
							case <-stop:
								return
							default:
								s.Exec(t, fmt.Sprintf("INSERT INTO %s.calm VALUES (%d)", db, i))
							}
						}
					})
					defer writing.Wait()
					defer close(stop)
				}
				began := time.Now()
				snapshot := tracker.snapshot()
				require.NoError(t, tracker.check(t.Context(), snapshot.find(tableName{db, "calm"})))
				t.Logf("looked ahead for %s", time.Since(began))
				err := tracker.check(t.Context(), snapshot.find(tableName{db, "moved"}))
				if strings.Contains(script, "ALTER") {
					require.ErrorContains(t, err, "ALTER TABLE moved")
				} else {
					require.NoError(t, err)
				}
			})
		}
	}
}
