package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// step is what an application or an operator does in one session: statements after which the tables, as SELECT shows
// them, must be what the events made of them.
type step struct {
	name string
	sql  string // {db} is the database under test, {DB} the same in capitals, {dir} a folder with the files of stepFiles
	only string // the flavor that has it; both where empty
	// silent: the rows change with their table, and no events tell of them. The tables are taken as they are then,
	// and each of their rows is updated, so that events show how rows are read from there on.
	silent bool
}

// TestStatements runs every kind of statement that changes rows or tables through the whole pipeline, with the least and
// with the fullest metadata in the binlog, and folds the events into tables after each.
func TestStatements(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		for _, metadata := range []string{least(server), "FULL"} {
			t.Run(metadata, func(t *testing.T) {
				server.Exec(t, "SET GLOBAL binlog_row_metadata = "+metadata)
				runSteps(t, server, server.Database(t), statementSteps)
			})
		}
	})
}

// least is the row metadata that the server sends by default.
func least(server *testenv.Server) string {
	if server.Flavor == "mariadb" {
		return "NO_LOG"
	}
	return "MINIMAL"
}

// runSteps follows a database while it goes through steps, and once more from the first place on with nothing but the
// binlog to go by.
func runSteps(t *testing.T, server *testenv.Server, db string, steps []step) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range stepFiles {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	before := server.GTIDExecuted(t)
	l := s.run(t, nil)
	shadow := &shadow{server: server, db: db, tables: make(map[string]multiset), withoutGenerated: leavesOutGenerated(t, server)}
	fill := strings.NewReplacer("{db}", db, "{DB}", strings.ToUpper(db), "{dir}", dir)
	for _, step := range steps {
		if step.only != "" && step.only != server.Flavor {
			continue
		}
		server.Exec(t, "SET NAMES utf8mb4", "USE "+db, fill.Replace(step.sql))
		l.caughtUp(t, server)
		if step.silent {
			shadow.read = len(s.events(t))
			shadow.tables = shadow.selected(t)
			shadow.touch(t)
			l.caughtUp(t, server)
		}
		shadow.fold(t, step.name, s.events(t))
		require.Equal(t, shadow.selected(t), shadow.tables, step.name)
	}
	l.stop(t)
	events := s.events(t)
	requireDistinct(t, events)

	again := newSettings(t, server, db+".*")
	again.Start = "gtid:" + before
	again.once(t, server)
	require.Equal(t, events, again.events(t))
}

// multiset counts the rows of a table, each written as canonical writes it: there may be no key, and equal rows.
type multiset map[string]int

func (m multiset) add(row string, n int) {
	if m[row] += n; m[row] == 0 {
		delete(m, row)
	}
}

// shadow is the tables that the events make.
type shadow struct {
	server *testenv.Server
	db     string
	read   int // events
	tables map[string]multiset
	// withoutGenerated: generated columns are not compared.
	withoutGenerated bool
}

// leavesOutGenerated reports whether a server leaves generated columns out of the images of updates and deletions, also of
// full ones: MariaDB 11.8 does, 10.11 does not.
func leavesOutGenerated(t *testing.T, server *testenv.Server) bool {
	t.Helper()
	return strings.HasPrefix(server.Query(t, "SELECT VERSION() AS v")[0]["v"], "11.")
}

// fold takes the events that came since the last time. Each must fit the row that is there.
func (s *shadow) fold(t *testing.T, step string, events []event) {
	t.Helper()
	columns := s.columns(t)
	members := func(t *testing.T, table string, row map[string]json.RawMessage) string {
		row = maps.Clone(row)
		if s.withoutGenerated {
			maps.DeleteFunc(row, func(name string, _ json.RawMessage) bool {
				return columns[table] != nil && !slices.Contains(columns[table], name)
			})
		}
		text, err := json.Marshal(row)
		require.NoError(t, err)
		return canonical(t, string(text))
	}
	for _, e := range events[s.read:] {
		rows := s.tables[e.table()]
		if rows == nil {
			rows = make(multiset)
			s.tables[e.table()] = rows
		}
		switch _, change, _ := strings.Cut(e.Type, "."); change {
		case "created":
			rows.add(members(t, e.table(), e.Data.Row), 1)
		case "deleted":
			rows.add(members(t, e.table(), e.Data.Row), -1)
		case "updated":
			old := maps.Clone(e.Data.Row)
			maps.Copy(old, e.Data.Old)
			rows.add(members(t, e.table(), old), -1)
			rows.add(members(t, e.table(), e.Data.Row), 1)
		case "truncated":
			clear(rows)
		default:
			require.Failf(t, "an unknown change", "%s: %s", step, e.raw)
		}
		for row, n := range rows {
			require.Positivef(t, n, "%s: the event is of a row that is not there: %s\n%s", step, row, e.raw)
		}
	}
	s.read = len(events)
	maps.DeleteFunc(s.tables, func(_ string, rows multiset) bool { return len(rows) == 0 })
}

// selected is the tables that have rows, as SELECT shows them.
func (s *shadow) selected(t *testing.T) map[string]multiset {
	t.Helper()
	tables := make(map[string]multiset)
	for table, columns := range s.columns(t) {
		var pairs []string
		for _, c := range columns {
			pairs = append(pairs, fmt.Sprintf("'%s', CAST(`%[1]s` AS CHAR)", c))
		}
		for _, row := range s.server.Query(t, fmt.Sprintf("SELECT JSON_OBJECT(%s) AS shown FROM `%s`.`%s`", strings.Join(pairs, ", "), s.db, table)) {
			if tables[table] == nil {
				tables[table] = make(multiset)
			}
			tables[table].add(canonical(t, row["shown"]), 1)
		}
	}
	return tables
}

// columns are the columns of each table that are compared, invisible ones too.
func (s *shadow) columns(t *testing.T) map[string][]string {
	t.Helper()
	columns := make(map[string][]string)
	for _, row := range s.server.Query(t, `SELECT c.TABLE_NAME AS t, c.COLUMN_NAME AS c FROM information_schema.COLUMNS c
		JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
		WHERE c.TABLE_SCHEMA = ? AND t.TABLE_TYPE = 'BASE TABLE' AND NOT (? AND c.EXTRA LIKE '%GENERATED%') ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION`, s.db, s.withoutGenerated) {
		columns[row["t"]] = append(columns[row["t"]], row["c"])
	}
	return columns
}

// touch updates every row of every table that has a column for it.
func (s *shadow) touch(t *testing.T) {
	t.Helper()
	for table, columns := range s.columns(t) {
		for _, c := range columns {
			if strings.EqualFold(c, "touched") {
				s.server.Exec(t, fmt.Sprintf("UPDATE `%s`.`%s` SET touched = touched + 1", s.db, table))
			}
		}
	}
}
