package canal

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// What the catalog says of a table is what the server would have sent with full metadata.
func TestCatalogAgreesWithFullMetadata(t *testing.T) {
	common := map[string]string{
		"no primary key":        "(a INT, b VARCHAR(10) CHARACTER SET gbk)",
		"keys out of order":     "(a INT, b INT UNSIGNED, c INT, PRIMARY KEY (c, a))",
		"key with a prefix":     "(n VARCHAR(100) CHARACTER SET utf8mb3, m TEXT, PRIMARY KEY (n(5), m(3)))",
		"generated columns":     "(id INT PRIMARY KEY, a INT, v INT AS (a+1) VIRTUAL, s BIGINT UNSIGNED AS (a+2) STORED)",
		"an invisible column":   "(id INT PRIMARY KEY, a INT INVISIBLE DEFAULT 3, b INT)",
		"labels":                "(id INT PRIMARY KEY, e ENUM('a','','b,c','it''s','back\\\\slash','é','q\"','new\\nline','x)','y%') CHARACTER SET latin1, s SET('ä','b''c','d\\\\') CHARACTER SET utf8mb4)",
		"types":                 "(a TINYINT, b SMALLINT UNSIGNED ZEROFILL, c MEDIUMINT, d BOOL, e FLOAT, f DOUBLE UNSIGNED, g DECIMAL(20,5), h BIT(13), i YEAR, j DATE, k TIME(2), l DATETIME(6), m TIMESTAMP(3) NULL, n BINARY(3), o CHAR(255) CHARACTER SET utf8mb4, p VARBINARY(300), q TINYTEXT, r MEDIUMBLOB, s LONGTEXT, t GEOMETRY, u POINT, v JSON, w VARCHAR(16000) CHARACTER SET utf8mb3)",
		"quoted `names` and so": "(`od``d` INT PRIMARY KEY, `snow ☃` INT)",
		"foreign charsets":      "(a VARCHAR(5) CHARACTER SET ucs2, b CHAR(3) CHARACTER SET utf32, c TEXT CHARACTER SET sjis, d VARCHAR(3) CHARACTER SET ujis)",
		"key over all":          "(a INT, b INT, PRIMARY KEY (b, a)) PARTITION BY HASH(a) PARTITIONS 3",
	}
	mysqlOnly := map[string]string{
		"generated invisible key": "(a INT)",
		"functional index":        "(id INT PRIMARY KEY, a INT, KEY ((a+1)), KEY ((a*2)))",
		"vector":                  "(id INT PRIMARY KEY, v VECTOR(5))",
	}
	mariaDBOnly := map[string]string{
		"system versioning":          "(id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
		"explicit system versioning": "(id INT PRIMARY KEY, a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(s,e)) WITH SYSTEM VERSIONING",
		"unique by hash":             "(id INT PRIMARY KEY, b BLOB, UNIQUE (b))",
		"versioned, unique by hash":  "(id INT PRIMARY KEY, b BLOB, c TEXT, UNIQUE (b), UNIQUE (c)) WITH SYSTEM VERSIONING",
		"compressed":                 "(id INT PRIMARY KEY, a VARCHAR(10) COMPRESSED, b TEXT COMPRESSED, c BLOB COMPRESSED)",
		"own types":                  "(u UUID PRIMARY KEY, a INET4, b INET6)",
	}
	servers := []struct {
		name  string
		start func(testing.TB) *testenv.Server
		own   map[string]string
		light []string // metadata settings that need the catalog
		setup string
	}{
		{"mysql", testenv.MySQL, mysqlOnly, []string{"MINIMAL"}, "SET sql_generate_invisible_primary_key=ON;"},
		{"mariadb-10.11", testenv.MariaDB, mariaDBOnly, []string{"MINIMAL", "NO_LOG"}, ""},
		{"mariadb-11.8", testenv.MariaDB118, mariaDBOnly, []string{"MINIMAL", "NO_LOG"}, ""},
	}
	for _, s := range servers {
		server := s.start(t)
		for _, tables := range []map[string]string{common, s.own} {
			for name, definition := range tables {
				t.Run(s.name+"/"+name, func(t *testing.T) {
					database := server.Database(t)
					server.Exec(t, s.setup+"SET NAMES utf8mb4; USE "+database+"; CREATE TABLE t "+definition)
					full := tableOf(t, server, database, "FULL")
					for _, metadata := range s.light {
						light := tableOf(t, server, database, metadata)
						ignore := []cmp.Option{cmpopts.IgnoreUnexported(Column{}), cmpopts.IgnoreFields(Column{}, "SourceType", "Geometry"), cmpopts.EquateEmpty()}
						if s.name != "mysql" {
							ignore = append(ignore, cmpopts.IgnoreFields(Column{}, "Invisible")) // MariaDB does not send it
						}
						if diff := cmp.Diff(full, light, ignore...); diff != "" {
							t.Errorf("%s: (-full +%s)\n%s", name, metadata, diff)
						}
					}
				})
			}
		}
	}
}

// tableOf writes a row of defaults to table t and returns the schema it is read with.
func tableOf(t *testing.T, s *testenv.Server, database, metadata string) *Table {
	t.Helper()
	s.Exec(t, "SET GLOBAL binlog_row_metadata="+metadata)
	defer s.Exec(t, "SET GLOBAL binlog_row_metadata=FULL")
	from := here(t, s)
	s.Exec(t, "SET sql_mode=''; USE "+database+"; FLUSH TABLES t; INSERT INTO t () VALUES (); DELETE FROM t")
	options := DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: catalogOf(t, s)}
	transaction := rawTransactions(t, s, from, 1)[0]
	var table *Table
	for _, schemas := range []*schemaSnapshot{transaction.schemas, nil} { // followed, and asked for now
		transaction.schemas = schemas
		rows := NewDecoder(options).Rows(t.Context(), transaction)
		require.True(t, rows.Next(), "%v", rows.Err())
		if table != nil {
			require.Equal(t, table, rows.Row().Table)
		}
		table = rows.Row().Table
		require.False(t, rows.Next())
		require.NoError(t, rows.Err())
	}
	return table
}

func catalogOf(t *testing.T, s *testenv.Server) *Catalog {
	connect := connectTo(s)
	catalog := NewCatalog(connect.Connect)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	return catalog
}

// A table that was altered after its rows were written is never read with the new schema
// where count or types tell.
func TestCatalogRefusesAnotherSchema(t *testing.T) {
	s := testenv.MySQL(t)
	for name, c := range map[string]struct{ alter, problem string }{
		"column added":       {"ALTER TABLE t ADD c INT", "it has 4 columns now, the rows have 3"},
		"column dropped":     {"ALTER TABLE t DROP b", "it has 2 columns now, the rows have 3"},
		"column moved":       {"ALTER TABLE t MODIFY a INT AFTER b", "it is varchar(10) now, the rows have INT in its place"},
		"column lengthened":  {"ALTER TABLE t MODIFY b VARCHAR(11)", "it is varchar(11) now, the rows have VARCHAR(40 bytes) utf8mb4 in its place"},
		"precision changed":  {"ALTER TABLE t MODIFY a DECIMAL(5,1)", "it is decimal(5,1) now, the rows have INT in its place"},
		"table dropped":      {"DROP TABLE t", "the server shows no such table to this account"},
		"another table here": {"DROP TABLE t; CREATE TABLE t (x DATE)", "it is date now, the rows have INT in its place"},
	} {
		t.Run(name, func(t *testing.T) {
			database := s.Database(t)
			s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10))")
			s.Exec(t, "SET GLOBAL binlog_row_metadata=MINIMAL")
			defer s.Exec(t, "SET GLOBAL binlog_row_metadata=FULL")
			from := here(t, s)
			s.Exec(t, "USE "+database+"; INSERT INTO t VALUES (1,2,'x'); "+c.alter)
			decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: catalogOf(t, s)})
			transaction := rawTransactions(t, s, from, 1)[0]
			transaction.schemas = nil // today's schema is what is under test
			rows := decoder.Rows(t.Context(), transaction)
			require.False(t, rows.Next())
			var schema *SchemaError
			require.True(t, errors.As(rows.Err(), &schema), "%v", rows.Err())
			require.Equal(t, c.problem, schema.Problem)
			require.Equal(t, [2]string{database, "t"}, [2]string{schema.Database, schema.Table})
			require.Contains(t, schema.Remedy, "binlog_row_metadata=FULL")
		})
	}
}

// Without full metadata and without a catalog nothing is guessed.
func TestDecoderAsksForMetadata(t *testing.T) {
	s := testenv.MySQL(t)
	database := s.Database(t)
	s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY)")
	s.Exec(t, "SET GLOBAL binlog_row_metadata=MINIMAL")
	defer s.Exec(t, "SET GLOBAL binlog_row_metadata=FULL")
	from := here(t, s)
	s.Exec(t, "USE "+database+"; INSERT INTO t VALUES (1)")
	transaction := rawTransactions(t, s, from, 1)[0]
	transaction.schemas = nil
	rows := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }}).Rows(t.Context(), transaction)
	require.False(t, rows.Next())
	var schema *SchemaError
	require.ErrorAs(t, rows.Err(), &schema)
	require.Equal(t, "SET GLOBAL binlog_row_metadata=FULL", schema.Remedy)
}
