package canal

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// prepareXA writes one XA transaction up to its PREPARE.
func prepareXA(t *testing.T, s *testenv.Server, db, xid string, statements ...string) {
	t.Helper()
	statements = append([]string{"USE " + db, "XA START '" + xid + "'"}, statements...)
	s.Exec(t, append(statements, "XA END '"+xid+"'", "XA PREPARE '"+xid+"'")...)
}

// endXA runs XA COMMIT or XA ROLLBACK, as soon as the session that prepared it has ended: until then others do not know it.
func endXA(t *testing.T, s *testenv.Server, statement string) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		_, err = s.DB().ExecContext(t.Context(), statement)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond, "%s: %v", statement, err)
}

// The rows of an XA transaction that was prepared before reading began are given at its XA COMMIT, from whichever file the server
// still has them in.
func TestSourceXAPreparedBeforeTheStart(t *testing.T) {
	servers(t, xaPreparedBefore)
	t.Run("mysql without GTIDs", func(t *testing.T) {
		t.Parallel()
		xaPreparedBefore(t, testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}))
	})
}

func xaPreparedBefore(t *testing.T, s *testenv.Server) {
	db := s.Database(t)
	s.Exec(t, "USE "+db, "CREATE TABLE x (id INT PRIMARY KEY, v LONGTEXT); CREATE TABLE other (id INT PRIMARY KEY)")
	prepareXA(t, s, db, "gone", "INSERT INTO x VALUES (50, '')", "INSERT INTO other VALUES (50)")
	s.Exec(t, "FLUSH BINARY LOGS")
	s.PurgeBinlogs(t)

	prepareXA(t, s, db, "again", "INSERT INTO x VALUES (1, ''), (2, '')", "INSERT INTO x VALUES (3, '')")
	endXA(t, s, "XA COMMIT 'again'")
	s.Exec(t, "FLUSH BINARY LOGS")
	prepareXA(t, s, db, "again", "DELETE FROM x WHERE id = 1")
	var large []string
	for i := range 20 {
		large = append(large, fmt.Sprintf("INSERT INTO x VALUES (%d, REPEAT('x', 100000))", 100+i))
	}
	prepareXA(t, s, db, "large", large...)
	prepareXA(t, s, db, "rolled back", "INSERT INTO x VALUES (4, '')")
	s.Exec(t, "FLUSH BINARY LOGS", "INSERT INTO "+db+".other VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO "+db+".other VALUES (2)")

	r := follow(t, s, locate(t, s, "latest"), db+".x")
	for _, statement := range []string{"XA ROLLBACK 'rolled back'", "XA COMMIT 'again'", "XA COMMIT 'large'", "INSERT INTO " + db + ".other VALUES (3)", "XA COMMIT 'gone'"} {
		endXA(t, s, statement)
	}
	err := r.fails()
	require.Equal(t, []int{1, 20, 1}, r.withRows())
	var source *SourceError
	require.ErrorAs(t, err, &source)
	require.ErrorContains(t, err, "the XA COMMIT of X'676f6e65',X'',1")
	require.ErrorContains(t, err, "source.start: ")
	require.Empty(t, r.transactions[len(r.transactions)-1].Held)
}

// lines gives what is logged, line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default: // nobody reads any more
	}
	return len(b), nil
}

// XA transactions that nobody ends are warned of, by what reads their PREPARE and by check.
func TestXATransactionsThatNobodyEnds(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		db := s.Database(t)
		s.Exec(t, "USE "+db, "CREATE TABLE x (id INT PRIMARY KEY)")
		grants := []string{"REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*"}
		if s.Flavor == "mysql" {
			grants = append(grants, "XA_RECOVER_ADMIN ON *.*")
		}
		user, password := s.User(t, grants...)
		inspector, err := Inspect(t.Context(), ConnectOptions{Address: s.Addr, User: user, Password: password})
		require.NoError(t, err)
		defer func() { require.NoError(t, inspector.Close()) }()
		require.Empty(t, inspector.checkXA(t.Context()))

		logged := make(lines, 1000)
		source, err := OpenSource(t.Context(), SourceOptions{
			Connect: connectTo(s), Heartbeat: time.Second, From: locate(t, s, "latest"), SpillDir: t.TempDir(), XAPatience: time.Nanosecond,
			Captured: func(string, string) bool { return true }, Logger: slog.New(slog.NewTextHandler(logged, nil)),
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, source.Close()) }()
		prepareXA(t, s, db, "forgotten", "INSERT INTO x VALUES (1)")
		const xid = "X'666f72676f7474656e',X'',1"
		for line := range logged {
			if strings.Contains(line, "level=WARN") && strings.Contains(line, xid) {
				require.Contains(t, line, "XA RECOVER")
				break
			}
		}
		checks := inspector.checkXA(t.Context())
		require.Len(t, checks, 1)
		require.Equal(t, CheckWarn, checks[0].Status)
		require.Contains(t, checks[0].Detail, xid)
		endXA(t, s, "XA ROLLBACK 'forgotten'")
	})
}
