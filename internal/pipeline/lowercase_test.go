package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// lowerCaseSteps write names in another case than the server keeps them in.
var lowerCaseSteps = []step{
	{name: "create", sql: "ALTER DATABASE CHARACTER SET utf8mb4; CREATE TABLE Orders (Id INT PRIMARY KEY, State VARCHAR(9), Note VARCHAR(9), touched INT DEFAULT 0); INSERT INTO ORDERS (id, State, Note) VALUES (1, 's', 'n')"},
	{name: "alter", silent: true, sql: "ALTER TABLE oRDERS MODIFY Note VARCHAR(9) AFTER ID; INSERT INTO Orders (Id, Note, State) VALUES (2, 'n2', 's2'); ALTER TABLE `ORDERS` ADD Seen INT FIRST, RENAME COLUMN State TO Status; UPDATE orders SET seen = 1"},
	{name: "rename", silent: true, sql: "CREATE TABLE ORDERS_new LIKE Orders; ALTER TABLE Orders_New DROP Seen, ADD Extra VARCHAR(9) AFTER Id; RENAME TABLE Orders TO orders_OLD, ORDERS_NEW TO Orders; INSERT INTO orders (id, extra) VALUES (3, 'x')"},
	{name: "swap", silent: true, sql: "RENAME TABLE Orders TO Swap, ORDERS_OLD TO ORDERS, SWAP TO Orders_Old; INSERT INTO Orders (Id, Note) VALUES (4, 'now'); ALTER TABLE Orders RENAME TO Bills; INSERT INTO BILLS (Id) VALUES (5); ALTER TABLE Bills RENAME AS ORDERS"},
	{name: "truncate", sql: "TRUNCATE TABLE Orders; INSERT INTO Orders (Id) VALUES (6); TRUNCATE ORDERS_OLD"},
	{name: "drop", silent: true, sql: "DROP TABLE Orders; CREATE TABLE ORDERS (Note VARCHAR(9), Id INT PRIMARY KEY, touched INT DEFAULT 0); INSERT INTO oRDERS VALUES ('again', 7, 0)"},
	{name: "database", sql: "ALTER DATABASE {DB} CHARACTER SET gbk; CREATE TABLE {DB}.Eastern (Id INT PRIMARY KEY, V VARCHAR(9)); INSERT INTO EASTERN VALUES (1, '订单')"},
}

// TestLowerCaseNames: on a server with lower_case_table_names=1, the default on Windows and with many hosters, statements may write
// the names of tables as they like; events, and patterns, have them as the server keeps them.
func TestLowerCaseNames(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, testenv.Options{LowerCaseNames: true})
			for _, metadata := range []string{least(server), "FULL"} {
				t.Run(metadata, func(t *testing.T) {
					server.Exec(t, "SET GLOBAL binlog_row_metadata = "+metadata)
					runSteps(t, server, server.Database(t), lowerCaseSteps)

					// A pattern that names the table alone.
					db := server.Database(t)
					s := newSettings(t, server, db+".orders")
					s.once(t, server)
					server.Exec(t, "USE "+db, lowerCaseSteps[0].sql, lowerCaseSteps[1].sql, "TRUNCATE TABLE Orders")
					s.once(t, server)
					require.Equal(t, []string{"orders.created", "orders.created", "orders.updated", "orders.updated", "orders.truncated"}, types(s.events(t)))
				})
			}
		})
	}
}
