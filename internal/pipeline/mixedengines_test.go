package pipeline_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// mixedSession writes transactions over tables with and without transactions in one session, with savepoints and temporary tables, and
// rolls many of them back, in part or as a whole.
type mixedSession struct {
	conn   *sql.Conn
	tables []string
	random *rand.Rand
	temp   bool // a temporary table is there
}

// exec runs a statement; one that the server refuses for what stands in the transaction already is left out.
func (m *mixedSession) exec(t *testing.T, format string, args ...any) {
	t.Helper()
	const gtidUnsafe, noSavepoint, ariaSavepoint = 1785, 1305, 1178
	_, err := m.conn.ExecContext(t.Context(), fmt.Sprintf(format, args...))
	var refusal *mysql.MySQLError
	if errors.As(err, &refusal) && (refusal.Number == gtidUnsafe || refusal.Number == noSavepoint || refusal.Number == ariaSavepoint) {
		return
	}
	require.NoErrorf(t, err, format, args...)
}

// change writes or deletes a few rows of one table. Some are long: a few of them are more than travels in one piece, or is kept in
// memory.
func (m *mixedSession) change(t *testing.T) {
	table := m.tables[m.random.IntN(len(m.tables))]
	if m.random.IntN(5) == 0 {
		m.exec(t, "DELETE FROM %s WHERE id %% 7 = %d", table, m.random.IntN(7))
		return
	}
	var rows []string
	size := []int{10, 10, 10, 20_000, 200_000}[m.random.IntN(5)]
	for range 1 + m.random.IntN(4) {
		rows = append(rows, fmt.Sprintf("(%d, %d, REPEAT('x', %d))", m.random.IntN(30), m.random.IntN(1_000_000), m.random.IntN(size)))
	}
	m.exec(t, "INSERT INTO %s VALUES %s ON DUPLICATE KEY UPDATE v = VALUES(v), pad = VALUES(pad)", table, strings.Join(rows, ", "))
}

func (m *mixedSession) transaction(t *testing.T) {
	m.exec(t, "BEGIN")
	names := []string{"a", "`b b`", "C", "`A`"}
	for range 2 + m.random.IntN(8) {
		switch m.random.IntN(8) {
		case 0:
			m.exec(t, "SAVEPOINT %s", names[m.random.IntN(len(names))])
		case 1:
			m.exec(t, "ROLLBACK TO %s", names[m.random.IntN(len(names))])
		case 2:
			if m.temp = !m.temp; m.temp {
				m.exec(t, "CREATE TEMPORARY TABLE passing (id INT)")
			} else {
				m.exec(t, "DROP TEMPORARY TABLE passing")
			}
		default:
			m.change(t)
		}
	}
	m.exec(t, "%s", []string{"COMMIT", "ROLLBACK"}[m.random.IntN(2)])
}

// TestMixedEngines: of transactions over tables of several engines exactly that is published which a SELECT shows, whatever was rolled
// back.
func TestMixedEngines(t *testing.T) {
	onEachOwn(t, mixedEngines)
	t.Run("mysql without GTIDs", func(t *testing.T) {
		mixedEngines(t, testenv.StartMySQL(t, testenv.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}))
	})
}

func mixedEngines(t *testing.T, server *testenv.Server) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	db := server.Database(t)
	tables := []string{"transactional", "plain"}
	columns := "(id INT PRIMARY KEY, v INT, pad LONGTEXT)"
	server.Exec(t, "USE "+db, "CREATE TABLE transactional "+columns, "CREATE TABLE plain "+columns+" ENGINE=MyISAM")
	if server.Flavor == "mariadb" {
		tables = append(tables, "aria")
		server.Exec(t, "USE "+db, "CREATE TABLE aria "+columns+" ENGINE=Aria")
	}
	s := newSettings(t, server, db+".*")
	s.once(t, server)

	conn, err := server.DB().Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	m := &mixedSession{conn: conn, tables: tables, random: rand.New(rand.NewPCG(seed, 0))}
	m.exec(t, "USE %s", db)
	for range 60 {
		m.transaction(t)
	}
	// More than is kept in memory, in an XA transaction.
	m.exec(t, "XA START 'large'")
	for i := range 20 {
		m.exec(t, "INSERT INTO transactional VALUES (%d, %[1]d, REPEAT('y', 100000))", 1000+i)
	}
	for _, statement := range []string{"XA END 'large'", "XA PREPARE 'large'", "XA COMMIT 'large'"} {
		m.exec(t, "%s", statement)
	}
	s.once(t, server)
	requireAsSelected(t, server, db, tables, s.events(t))
}

// requireAsSelected applies the events to nothing and compares what comes of it with the tables.
func requireAsSelected(t *testing.T, server *testenv.Server, db string, tables []string, events []event) {
	t.Helper()
	requireDistinct(t, events)
	have := make(map[string]string)
	for _, e := range events {
		key := e.table() + "/" + e.PartitionKey
		_, exists := have[key]
		kind := e.Type[strings.LastIndexByte(e.Type, '.')+1:]
		require.Equalf(t, kind != "created", exists, "%s of %s in %s", kind, key, e.GTID)
		if kind == "deleted" {
			delete(have, key)
			continue
		}
		have[key] = fmt.Sprintf("%s %d", e.Data.Row["v"], len(e.Data.Row["pad"])-2)
	}
	want := make(map[string]string)
	for _, table := range tables {
		rows, err := server.DB().QueryContext(context.WithoutCancel(t.Context()), "SELECT id, CONCAT(v, ' ', LENGTH(pad)) FROM "+db+"."+table)
		require.NoError(t, err)
		for rows.Next() {
			var id, row string
			require.NoError(t, rows.Scan(&id, &row))
			want[table+"/"+id] = row
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	require.Equal(t, want, have)
}
