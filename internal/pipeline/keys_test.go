package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// keysScript has tables without a primary key whose unique keys stand in for it, and changes of those keys between rows.
const keysScript = `
	CREATE TABLE a (x INT, id INT NOT NULL, code VARCHAR(20) NOT NULL, UNIQUE u (id), UNIQUE w (code));
	INSERT INTO a VALUES (1, 1, 'one'), (2, 2, 'two'); UPDATE a SET id = 3 WHERE id = 1; UPDATE a SET x = 9; UPDATE a SET code = 'zwei' WHERE id = 2;
	ALTER TABLE a MODIFY id INT NULL; UPDATE a SET x = x + 1; UPDATE a SET code = 'drei' WHERE id = 3;
	ALTER TABLE a MODIFY id INT NOT NULL; UPDATE a SET x = x + 1, code = CONCAT(code, '!');
	DROP INDEX w ON a; UPDATE a SET id = id + 10;
	CREATE UNIQUE INDEX w ON a (code); DROP INDEX u ON a; UPDATE a SET id = id + 10; UPDATE a SET code = CONCAT(code, '?');
	CREATE TABLE b LIKE a; INSERT INTO b SELECT * FROM a; DELETE FROM b WHERE x > 0;
	ALTER TABLE a DROP COLUMN code; UPDATE a SET x = x + 1; ALTER TABLE a ADD n INT AUTO_INCREMENT UNIQUE FIRST; UPDATE a SET n = n + 50;
	CREATE TABLE p (k VARCHAR(20) NOT NULL, y INT, UNIQUE (k(5))); INSERT INTO p VALUES ('aaaaaaa', 1); ALTER TABLE p MODIFY k VARCHAR(8) NOT NULL, DROP KEY k, ADD UNIQUE kk (k, y);
	UPDATE p SET k = 'b'; ALTER TABLE p MODIFY y INT NOT NULL; UPDATE p SET k = 'c'; ALTER TABLE p ADD PRIMARY KEY (y); UPDATE p SET k = 'd'; ALTER TABLE p DROP PRIMARY KEY; UPDATE p SET y = 3`

// TestUniqueKeysStandIn: with the servers' own default of row metadata, events of tables without a primary key are, ids and keys included,
// those that full metadata gives; also where keys changed, with and without a history that saw it.
func TestUniqueKeysStandIn(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name, light string
		start       func(testing.TB, testenv.Options) *testenv.Server
	}{{"mysql", "MINIMAL", testenv.StartMySQL}, {"mariadb 10.11", "NO_LOG", testenv.StartMariaDB}, {"mariadb 11.8", "NO_LOG", testenv.StartMariaDB118}} {
		t.Run(kind.name, func(t *testing.T) {
			primary := kind.start(t, testenv.Options{Args: []string{"--binlog-row-metadata=" + kind.light}})
			replica := testenv.StartReplica(t, primary, testenv.Options{Name: "replica", Args: []string{"--binlog-row-metadata=FULL"}})
			db := primary.Database(t)
			start := primary.GTIDExecuted(t)
			_, events := whileDown(t, primary, db, keysScript)
			again := newSettings(t, primary, db+".*")
			again.Start = "gtid:" + start
			again.once(t, primary)
			replica.CatchUp(t, primary)
			full := newSettings(t, replica, db+".*")
			full.Start = "gtid:" + start
			full.once(t, replica)
			want := full.events(t)
			require.Len(t, events, len(want))
			keyed := 0
			for i, e := range want {
				require.Equal(t, e.raw, events[i].raw)
				if e.Subject != "" {
					keyed++
				}
			}
			require.Greater(t, keyed, len(want)/2)
			require.Less(t, keyed, len(want))
			require.Equal(t, want, again.events(t))
		})
	}
}
