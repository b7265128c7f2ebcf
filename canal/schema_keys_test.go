package canal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// The key of a table is the one that the server sends with full metadata: as it is followed statement by statement, as it is read from
// the server, and as `check` and `init` are told. Tables and statements are random.
func TestKeysAreThoseOfFullMetadata(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		k := &keyMaker{random: rand.New(rand.NewPCG(seed, 0)), mysql: s.Flavor != "mariadb"}
		db := s.Database(t)
		s.Exec(t, "SET GLOBAL binlog_row_metadata=FULL", "USE "+db, "CREATE TABLE anchor (id INT PRIMARY KEY)")
		r := follow(t, s, locate(t, s, "latest"), db+".anchor")
		conn, err := s.DB().Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		run := func(statement string) error {
			_, err := conn.ExecContext(t.Context(), statement)
			return err
		}
		require.NoError(t, run("SET sql_mode=''"))
		require.NoError(t, run("USE "+db))
		var statements []string // those that the server took
		for i := range 70 {
			table := fmt.Sprintf("t%d", i)
			for step := range 5 {
				statement := k.alter(table)
				if step == 0 {
					statement = k.create(table)
				}
				if run(statement) != nil {
					if step == 0 {
						break
					}
					continue
				}
				statements = append(statements, statement)
				for _, write := range []string{"BEGIN", "INSERT INTO anchor VALUES (%[1]d)", "INSERT IGNORE INTO %[2]s (x) VALUES (1)", "DELETE FROM %[2]s", "COMMIT"} {
					require.NoError(t, run(fmt.Sprintf(write+" /* %[1]d %[2]s */", len(statements), table)))
				}
			}
		}
		r.until("the last row", func() bool { return len(r.withRowsOf("anchor")) == len(statements) })
		keyed, unknown := 0, 0
		last := make(map[string]string) // keys by table
		for i, transaction := range r.withRowsOf("anchor") {
			table, sent := sentKey(t, transaction)
			last[table] = strings.Join(sent, ",")
			tracked := transaction.schemas.find(tableName{db, table})
			require.NotNil(t, tracked, statements[i])
			if tracked.schema == nil {
				require.Contains(t, tracked.doubt, "unique keys", statements[i])
				unknown++
				continue
			}
			var before []string
			for _, statement := range statements[:i+1] {
				if strings.Contains(statement, table+" ") {
					before = append(before, statement)
				}
			}
			require.Equal(t, strings.Join(sent, ","), strings.Join(tracked.schema.Key(), ","), "%s\n%+v", strings.Join(before, "\n"), tracked.schema.Unique)
			if len(sent) > 0 {
				keyed++
			}
		}
		t.Logf("%d statements, %d left a key, %d left it unknown", len(statements), keyed, unknown)
		require.Greater(t, keyed, len(statements)/4)
		require.Less(t, unknown, len(statements)/6)

		inspector, err := Inspect(t.Context(), connectTo(s))
		require.NoError(t, err)
		defer func() { require.NoError(t, inspector.Close()) }()
		require.NoError(t, prepareCatalog(t.Context(), inspector.conn))
		tables, err := inspector.Tables(t.Context())
		require.NoError(t, err)
		read, err := readSchemas(t.Context(), inspector.conn, []string{db}, schemaPool{})
		require.NoError(t, err)
		for _, table := range tables {
			if want, ok := last[table.Name]; ok && table.Database == db {
				schema := read[tableName{db, table.Name}]
				var history []string
				for _, statement := range statements {
					if strings.Contains(statement, table.Name+" ") {
						history = append(history, statement)
					}
				}
				require.Equal(t, want, strings.Join(table.PrimaryKey, ","), "%s\n%+v", strings.Join(history, "\n"), schema)
				require.Equal(t, want, strings.Join(schema.Key(), ","), "%s\n%+v", strings.Join(history, "\n"), schema)
				delete(last, table.Name)
			}
		}
		require.Empty(t, last)
	})
}

// sentKey gives the table that a transaction's second table map is of, and the names of the columns of its key.
func sentKey(t *testing.T, transaction *Transaction) (table string, key []string) {
	t.Helper()
	for _, e := range transaction.events {
		if rawEvent(e).kind() != replication.TABLE_MAP_EVENT {
			continue
		}
		_, _, name, rest, err := tableMapNames(rawEvent(e).body())
		require.NoError(t, err)
		if string(name) == "anchor" {
			continue
		}
		columns, optional, err := tableMapColumns(rest)
		require.NoError(t, err)
		meta, err := readOptionalMeta(columns, optional, transaction.GTID.Flavor)
		require.NoError(t, err)
		require.True(t, meta.named)
		for _, i := range meta.primaryKey {
			key = append(key, columns[i].Name)
		}
		return string(name), key
	}
	t.Fatal("the transaction has no rows of the table")
	return "", nil
}

// keyMaker makes statements about tables with unique keys.
type keyMaker struct {
	random *rand.Rand
	mysql  bool
	names  int
}

func (k *keyMaker) one(of ...string) string { return of[k.random.IntN(len(of))] }

func (k *keyMaker) column() string { return k.one("a", "b", "c", "d") }

func (k *keyMaker) definition() string {
	typ := k.one("INT", "INT", "INT", "BIGINT", "VARCHAR(20)", "VARCHAR(20)", "VARCHAR(10)", "CHAR(10)", "VARBINARY(20)")
	if k.random.IntN(14) == 0 {
		typ = k.one("TINYBLOB", "TINYTEXT", "BLOB")
	}
	if k.mysql && k.random.IntN(8) == 0 {
		return "INT AS (x + " + fmt.Sprint(k.random.IntN(9)) + ") " + k.one("VIRTUAL", "STORED") + k.one("", " NOT NULL")
	}
	return typ + k.one("", " NULL", " NOT NULL", " NOT NULL", " NOT NULL", " NOT NULL UNIQUE")
}

func (k *keyMaker) key() string {
	part := func() string {
		if k.mysql && k.random.IntN(9) == 0 {
			return "(x + 1)"
		}
		prefix := ""
		if k.random.IntN(8) == 0 {
			prefix = k.one("(5)", "(10)", "(15)", "(255)")
		}
		return k.column() + prefix
	}
	parts := part()
	if k.random.IntN(4) == 0 {
		parts += ", " + part()
	}
	name := ""
	if k.random.IntN(3) > 0 {
		k.names++
		name = k.one("p", "q", "r", "s")
	}
	return k.one("UNIQUE", "UNIQUE", "UNIQUE", "UNIQUE KEY", "KEY") + " " + name + " (" + parts + ")"
}

func (k *keyMaker) create(table string) string {
	elements := []string{"x INT"}
	for _, c := range []string{"a", "b", "c", "d"} {
		elements = append(elements, c+" "+k.definition())
	}
	for range 1 + k.random.IntN(3) {
		elements = append(elements, k.key())
	}
	if k.random.IntN(6) == 0 {
		elements = append(elements, "PRIMARY KEY ("+k.column()+")")
	}
	if k.random.IntN(4) == 0 {
		k.random.Shuffle(len(elements), func(i, j int) { elements[i], elements[j] = elements[j], elements[i] })
	}
	return "CREATE TABLE " + table + " (" + strings.Join(elements, ", ") + ")"
}

func (k *keyMaker) alter(table string) string {
	switch k.random.IntN(12) {
	case 0:
		return "DROP INDEX " + k.one("p", "q", "r", "s", "a", "b") + " ON " + table + " "
	case 1:
		return "CREATE UNIQUE INDEX " + k.one("p", "q", "r", "s") + " ON " + table + " (" + k.column() + ")"
	}
	clauses := make([]string, 1+k.random.IntN(2))
	for i := range clauses {
		column := k.column()
		clauses[i] = []string{
			"MODIFY " + column + " " + k.definition(), "MODIFY " + column + " " + k.definition(), "MODIFY " + column + " " + k.definition() + " FIRST",
			"CHANGE " + column + " " + k.column() + " " + k.definition(), "DROP COLUMN " + column, "ADD " + column + " " + k.definition(),
			"ADD " + k.key(), "ADD " + k.key(), "DROP INDEX " + k.one("p", "q", "r", "s", "a", "b", "c", "d"),
			"RENAME INDEX " + k.one("p", "q", "a", "b") + " TO " + k.one("r", "s", "q"), "DROP PRIMARY KEY", "ADD PRIMARY KEY (" + column + ")",
			"CONVERT TO CHARACTER SET " + k.one("latin1", "utf8mb4"), "COMMENT 'x'", "RENAME COLUMN " + column + " TO " + k.column(),
		}[k.random.IntN(15)]
	}
	return "ALTER TABLE " + table + " " + strings.Join(clauses, ", ")
}
