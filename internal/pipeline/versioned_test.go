package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// TestSystemVersionedTables: of a system-versioned table that is published which SELECT shows: a deletion is one, and the rows of
// the history are none. A table that has columns of the same names by itself is an ordinary one.
func TestSystemVersionedTables(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name  string
		start func(testing.TB, testenv.Options) *testenv.Server
	}{{"mariadb 10.11", testenv.StartMariaDB}, {"mariadb 11.8", testenv.StartMariaDB118}} {
		for _, metadata := range []string{"NO_LOG", "FULL"} {
			t.Run(kind.name+" "+metadata, func(t *testing.T) {
				systemVersioned(t, kind.start(t, testenv.Options{Args: []string{"--binlog-row-metadata=" + metadata}}))
			})
		}
	}
}

func systemVersioned(t *testing.T, server *testenv.Server) {
	db := server.Database(t)
	const period = "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)"
	tables := map[string]string{
		"implicit": "(id INT PRIMARY KEY, v INT, pad TEXT) WITH SYSTEM VERSIONING",
		"explicit": "(id INT PRIMARY KEY, v INT, pad TEXT, " + period + ") WITH SYSTEM VERSIONING",
		"first":    "(" + period + ", id INT PRIMARY KEY, v INT, pad TEXT) WITH SYSTEM VERSIONING",
		"ordinary": "(id INT PRIMARY KEY, v INT, pad TEXT, row_start TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01', row_end TIMESTAMP(6) NOT NULL DEFAULT '2030-01-01')",
	}
	for name, definition := range tables {
		server.Exec(t, "USE "+db, "CREATE TABLE "+name+definition)
	}
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	var names []string
	for name := range tables {
		names = append(names, name)
		server.Exec(t, "USE "+db, `
			INSERT INTO `+name+` (id, v, pad) VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 1, ''), (4, 1, ''), (5, 1, 'e');
			UPDATE `+name+` SET v = v + 1 WHERE id < 4; UPDATE `+name+` SET pad = 'now' WHERE id = 1;
			DELETE FROM `+name+` WHERE id = 2; REPLACE INTO `+name+` (id, v, pad) VALUES (3, 9, 'c'); INSERT INTO `+name+` (id, v, pad) VALUES (2, 7, 'again');
			INSERT INTO `+name+` (id, v, pad) VALUES (4, 0, '') ON DUPLICATE KEY UPDATE v = 40;
			BEGIN; UPDATE `+name+` SET v = 50 WHERE id = 5; DELETE FROM `+name+` WHERE id IN (1, 5); COMMIT`)
		if name != "ordinary" {
			server.Exec(t, "DELETE HISTORY FROM "+db+"."+name)
		}
		server.Exec(t, "SET SESSION binlog_row_image=MINIMAL", "DELETE FROM "+db+"."+name+" WHERE id = 3")
	}
	s.once(t, server)
	events := s.events(t)
	requireAsSelected(t, server, db, names, events)
	for _, e := range events {
		require.Regexp(t, "^[1-5]$", e.PartitionKey)
	}

	// With transaction numbers instead of times the server itself logs statements.
	server.Exec(t, "USE "+db, `CREATE TABLE numbered (id INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START,
		e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING`, "INSERT INTO numbered (id) VALUES (1)")
	require.ErrorContains(t, s.run(t, nil).fails(t), "in statement format")
}
