package pipeline_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv"
)

// onEachMetadata runs a test on MySQL and on both MariaDBs, with the servers' own default of row metadata and with all of it.
func onEachMetadata(t *testing.T, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []struct {
		name, light string
		start       func(testing.TB, testenv.Options) *testenv.Server
	}{{"mysql", "MINIMAL", testenv.StartMySQL}, {"mariadb 10.11", "NO_LOG", testenv.StartMariaDB}, {"mariadb 11.8", "NO_LOG", testenv.StartMariaDB118}} {
		for _, metadata := range []string{kind.light, "FULL"} {
			t.Run(kind.name+" "+metadata, func(t *testing.T) {
				test(t, kind.start(t, testenv.Options{Args: []string{"--binlog-row-metadata=" + metadata}}))
			})
		}
	}
}

// whileDown gives what is published of a script that runs while binlogd is down.
func whileDown(t *testing.T, server *testenv.Server, db, script string) (settings, []event) {
	t.Helper()
	s := newSettings(t, server, db+".*")
	s.once(t, server)
	server.Exec(t, "USE "+db, script)
	s.once(t, server)
	events := s.events(t)
	requireDistinct(t, events)
	return s, events
}

// rows are the rows of events, as "type column=value …" in the order of the columns.
func rows(events []event) []string {
	var lines []string
	for _, e := range events {
		row := e.raw[strings.Index(e.raw, `"row":`)+len(`"row":`) : len(e.raw)-2]
		lines = append(lines, e.Type+" "+row)
	}
	return lines
}

func readCase(t *testing.T, name string) string {
	t.Helper()
	script, err := os.ReadFile("../../testdata/cases/" + name + ".sql")
	require.NoError(t, err)
	return string(script)
}

func TestCaseAlterWhileDown(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		before := server.GTIDExecuted(t)
		_, events := whileDown(t, server, db, readCase(t, "alter-while-down"))
		want := []string{`moved.created {"id":1,"a":"AAA","b":"BBB"}`, `moved.created {"id":2,"b":"B2","a":"A2"}`, `moved.created {"id":3,"b":"B3"}`}
		require.Equal(t, want, rows(events))

		// From the start again without a history: what CREATE TABLE says is enough.
		again := newSettings(t, server, db+".*")
		again.Start = "gtid:" + before
		again.once(t, server)
		require.Equal(t, events, again.events(t))
	})
}

func TestCaseDDLNotUnderstood(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		if server.Flavor != "mariadb" {
			return // the case is MariaDB's; what MySQL's parser lacks is in TestUnknownSchemaStops
		}
		db := server.Database(t)
		_, events := whileDown(t, server, db, readCase(t, "ddl-not-understood"))
		require.Equal(t, []string{`up.created {"id":1}`, `up.created {"n":"::1","id":2}`}, rows(events))
	})
}

// notUnderstood is a statement that no parser will ever know, for the server a plain change of the table.
const notUnderstood = "ALTER TABLE u ADD n NATIONAL VARCHAR(5) FIRST"

// A statement that is not understood is followed by a look at the server, also where more changes follow.
func TestStatementNotUnderstood(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		_, events := whileDown(t, server, db, `CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(5)); INSERT INTO u VALUES (1,'a');
			`+notUnderstood+`; INSERT INTO u VALUES ('n',2,'b'); ALTER TABLE u ADD INDEX (a), COMMENT 'x'; CREATE TABLE v (id INT);
			INSERT INTO u VALUES ('m',3,'c')`)
		require.Equal(t, []string{`u.created {"id":1,"a":"a"}`, `u.created {"n":"n","id":2,"a":"b"}`, `u.created {"n":"m","id":3,"a":"c"}`}, rows(events))
	})
}

// Where rows come that cannot be read for sure, binlogd stops before them and says how to go on.
func TestUnknownSchemaStops(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		s := newSettings(t, server, db+".*")
		s.once(t, server)
		server.Exec(t, "USE "+db, `CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(5)); INSERT INTO u VALUES (1,'a');
			`+notUnderstood+`; INSERT INTO u VALUES ('n',2,'b'); ALTER TABLE u MODIFY n NATIONAL VARCHAR(5) AFTER id; INSERT INTO u VALUES (3,'m','c')`)
		if full := server.Query(t, "SELECT @@global.binlog_row_metadata AS m")[0]["m"] == "FULL"; full {
			s.once(t, server)
			require.Len(t, s.events(t), 3)
			return
		}
		err := s.run(t, nil).fails(t)
		var schema *canal.SchemaError
		require.ErrorAs(t, err, &schema)
		require.Equal(t, [2]string{db, "u"}, [2]string{schema.Database, schema.Table})
		for _, word := range []string{"ALTER TABLE u MODIFY n", "binlogd schema set " + db + ".u --file FILE --from ", "binlog_row_metadata=FULL"} {
			require.Contains(t, err.Error(), word)
		}
		require.Equal(t, []string{`u.created {"id":1,"a":"a"}`}, rows(s.events(t)))
	})
}

// Starting in the past without a history, rows of an altered table are refused and those of others read.
func TestStartInThePast(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		server.Exec(t, "USE "+db, "CREATE TABLE calm (a VARCHAR(3), b VARCHAR(3)); CREATE TABLE swapped (a VARCHAR(3), b VARCHAR(3))")
		before := server.GTIDExecuted(t)
		server.Exec(t, "USE "+db, `INSERT INTO calm VALUES ('a','b'); ALTER TABLE calm ADD KEY (a); INSERT INTO calm VALUES ('c','d');
			INSERT INTO swapped VALUES ('a','b'); ALTER TABLE swapped RENAME COLUMN a TO b, RENAME COLUMN b TO a; INSERT INTO swapped VALUES ('b','a')`)
		s := newSettings(t, server, db+".*")
		s.Start = "gtid:" + before
		want := []string{`calm.created {"a":"a","b":"b"}`, `calm.created {"a":"c","b":"d"}`, `swapped.created {"a":"a","b":"b"}`, `swapped.created {"b":"b","a":"a"}`}
		if full := server.Query(t, "SELECT @@global.binlog_row_metadata AS m")[0]["m"] == "FULL"; full {
			s.once(t, server)
			require.Equal(t, want, rows(s.events(t)))
			return
		}
		err := s.run(t, nil).fails(t)
		require.ErrorContains(t, err, db+".swapped")
		require.ErrorContains(t, err, "RENAME COLUMN")
		require.ErrorContains(t, err, "--from start")
		require.Equal(t, want[:2], rows(s.events(t)))
	})
}

func TestTruncateGivesAnEvent(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		db := server.Database(t)
		s, events := whileDown(t, server, db, `CREATE TABLE a (id INT PRIMARY KEY); INSERT INTO a VALUES (1); TRUNCATE TABLE a; TRUNCATE a; INSERT INTO a VALUES (1)`)
		require.Equal(t, []string{"a.created", "a.truncated", "a.truncated", "a.created"}, types(events))
		for _, e := range events[1:3] {
			require.Equal(t, db+".a", e.PartitionKey)
			require.Empty(t, e.Subject)
			require.True(t, strings.HasSuffix(e.raw, `,"data":{}}`), e.raw)
		}
		server.Exec(t, "TRUNCATE "+db+".a")
		s.once(t, server)
		require.Len(t, s.events(t), 5)
	})
}

func types(events []event) []string {
	var names []string
	for _, e := range events {
		names = append(names, e.Type)
	}
	return names
}
