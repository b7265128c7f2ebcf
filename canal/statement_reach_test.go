package canal

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// followCaught reads from the end on as an account, with one captured table.
func followCaught(t *testing.T, s *testenv.Server, user, password, db string) *reading {
	t.Helper()
	source, err := OpenSource(t.Context(), SourceOptions{
		Connect: ConnectOptions{Address: s.Addr, User: user, Password: password}, Heartbeat: time.Second, From: locate(t, s, "latest"), SpillDir: t.TempDir(),
		Captured: func(database, table string) bool { return database == db && table == "caught" },
		Logger:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	return &reading{t: t, source: source}
}

// A change in statement format that names no captured table ends the run where it may reach one, or where that cannot be told, and only
// there.
func TestStatementFormatReachesCapturedTables(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		setGlobal(t, s, "log_bin_trust_function_creators", "1")
		db := s.Database(t)
		away := s.Database(t)
		s.Exec(t, "USE "+db, `
			CREATE TABLE caught (id INT PRIMARY KEY, p INT);
			CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE middle (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE);
			ALTER TABLE caught ADD FOREIGN KEY (p) REFERENCES middle (id) ON DELETE CASCADE;
			CREATE TABLE lone (id INT PRIMARY KEY, v INT); CREATE TABLE calm (id INT PRIMARY KEY);
			CREATE TABLE loud (id INT PRIMARY KEY); CREATE TABLE louder (id INT PRIMARY KEY);
			CREATE VIEW plain_view AS SELECT * FROM lone;
			CREATE VIEW view_1 AS SELECT * FROM caught; CREATE VIEW view_2 AS SELECT * FROM view_1;
			CREATE TRIGGER calm_1 AFTER INSERT ON calm FOR EACH ROW INSERT INTO lone VALUES (NEW.id + 100, 1);
			CREATE TRIGGER loud_1 AFTER INSERT ON loud FOR EACH ROW INSERT INTO caught (id) VALUES (NEW.id);
			CREATE TRIGGER louder_1 AFTER INSERT ON louder FOR EACH ROW INSERT INTO loud VALUES (NEW.id + 1);
			CREATE FUNCTION writes(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO caught (id) VALUES (x); RETURN x; END;
			CREATE FUNCTION adds(x INT) RETURNS INT NO SQL RETURN x + 1`)
		s.Exec(t, "CREATE TABLE "+away+".t (id INT PRIMARY KEY, v INT)")
		harmless := []string{
			"INSERT INTO lone VALUES (1, adds(1))", "UPDATE lone AS l SET l.v = 3 WHERE l.id IN (1, 2)", "UPDATE plain_view SET v = 2", "INSERT INTO calm VALUES (1)", "DELETE FROM lone",
			"CREATE TEMPORARY TABLE passing (id INT); INSERT INTO passing VALUES (1); INSERT INTO lone SELECT id + 50, 2 FROM passing; DROP TEMPORARY TABLE passing",
			"INSERT INTO " + away + ".t VALUES (1, 1)",
		}
		statement := []string{"USE " + db, "SET SESSION binlog_format=STATEMENT"}
		for _, test := range []struct{ statement, way string }{
			{"INSERT INTO view_2 (id) VALUES (1)", "view " + db + ".view_2, view " + db + ".view_1"},
			{"INSERT INTO loud VALUES (2)", "trigger " + db + ".loud_1"},
			{"INSERT INTO " + db + ".`louder` VALUES (3)", "trigger " + db + ".louder_1, trigger " + db + ".loud_1"},
			{"SELECT writes(5)", "routine " + db + ".writes"},
			{"INSERT INTO lone VALUES (writes(6), 1)", "routine " + db + ".writes"},
			{"DELETE FROM parent", "foreign key "},
		} {
			t.Run(test.statement, func(t *testing.T) {
				r := followCaught(t, s, s.RootUser, s.RootPassword, db)
				s.Exec(t, append(append(statement, harmless...), test.statement)...)
				err := r.fails()
				var source *SourceError
				require.ErrorAs(t, err, &source)
				require.ErrorContains(t, err, db+".caught through "+test.way)
				require.ErrorContains(t, err, "binlog_format=ROW")
				s.Exec(t, "USE "+db, "DELETE FROM lone", "DELETE FROM calm", "TRUNCATE "+away+".t")
			})
		}

		t.Run("an account that does not see enough", func(t *testing.T) {
			user, password := s.User(t, "REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*", "SELECT ON "+db+".*")
			r := followCaught(t, s, user, password, db)
			s.Exec(t, append(statement, "INSERT INTO "+away+".t VALUES (1, 1)", "INSERT INTO lone VALUES (1, 1)")...)
			require.ErrorContains(t, r.fails(), "cannot be shown to change no captured table")
			// MySQL says that the first statement was in another database.
			require.Equal(t, s.Flavor == "mysql", len(r.transactions) > 0)

			user, password = s.User(t, "REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*", "SELECT, SHOW VIEW, TRIGGER, EXECUTE ON *.*")
			r = followCaught(t, s, user, password, db)
			s.Exec(t, append(statement, "UPDATE lone SET v = 2", "SET SESSION binlog_format=ROW", "INSERT INTO caught (id) VALUES (99)")...)
			r.until("the row after it", func() bool { return len(r.withRows()) == 1 })
		})
	})
}

func TestReadGrant(t *testing.T) {
	for line, want := range map[string]string{
		"GRANT SELECT, SHOW VIEW ON *.* TO `u`@`%`":                   "[SELECT SHOW VIEW] *",
		"GRANT ALL PRIVILEGES ON `my\\_shop`.* TO `u`@`%`":            "[ALL PRIVILEGES] my_shop",
		"GRANT SELECT ON `shop`.`orders` TO `u`@`%`":                  "[] ",
		"GRANT `role`@`%` TO `u`@`%`":                                 "[] ",
		"GRANT TRIGGER ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*x'": "[TRIGGER] *",
	} {
		privileges, scope := readGrant(line)
		require.Equal(t, want, fmt.Sprintf("%v %s", privileges, scope), line)
	}
}

func TestReadSessionNamesUpdatedDatabases(t *testing.T) {
	head := []byte{0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 5, 6, 7, 8, 6, 3, 's', 't', 'd', 3, 1, 0, 1, 0, 4, 33, 0, 33, 0, 255, 0, 5, 3, 'U', 'T', 'C', 8, 1, 0}
	with := func(tail ...byte) []string { return readSession(append(append([]byte(nil), head...), tail...)).updates }
	require.Equal(t, []string{"shop", "x"}, with(12, 2, 's', 'h', 'o', 'p', 0, 'x', 0, 13, 1, 2, 3))
	require.Equal(t, []string{"x"}, with(11, 1, 'u', 1, 'h', 12, 1, 'x', 0))
	require.Nil(t, with(12, 254, 13, 1, 2, 3))
	require.Nil(t, with(12, 2, 'x', 0))
	require.Nil(t, with(11, 200, 'u'))
	require.Nil(t, with(128, 12, 1, 'x', 0))
}
