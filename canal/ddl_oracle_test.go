package canal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// ddlScripts are statements after each of which the schemas that are followed in the binlog must be those that the server
// shows. A table whose name begins with doubt_ is one that may not be understood.
var ddlScripts = map[string][]string{
	"integers": {
		"CREATE TABLE t (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT ZEROFILL, d INT(5), e BIGINT UNSIGNED NOT NULL, f BOOL, g BOOLEAN DEFAULT TRUE, h INTEGER, i INT1, j INT8 UNSIGNED, k SERIAL)",
		"CREATE TABLE u (id SERIAL PRIMARY KEY, n BIT, m BIT(64), y YEAR)",
	},
	"numbers": {"CREATE TABLE t (a DECIMAL, b DECIMAL(7), c NUMERIC(20,5) UNSIGNED, d DEC(3,1), e FIXED(4,4), f FLOAT, g FLOAT(24), h FLOAT(25), i FLOAT(7,3), j DOUBLE PRECISION, k REAL, l DOUBLE(10,2) UNSIGNED)"},
	"times":   {"CREATE TABLE t (a DATE, b TIME, c TIME(3), d DATETIME, e DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), f TIMESTAMP NULL, g TIMESTAMP(2) NULL)"},
	"strings": {
		"CREATE TABLE t (a CHAR, b CHAR(10), c VARCHAR(20), d BINARY, e BINARY(16), f VARBINARY(300), g TINYTEXT, h TEXT, i MEDIUMTEXT, j LONGTEXT, k TINYBLOB, l BLOB, m MEDIUMBLOB, n LONGBLOB, o TEXT(10), p TEXT(70000), q BLOB(100), r BLOB(300), s LONG VARCHAR, u LONG VARBINARY, v CHARACTER VARYING(7), w LONG)",
		"CREATE TABLE u (a CHAR(3) CHARACTER SET binary, b VARCHAR(3) CHARACTER SET binary, c TEXT CHARACTER SET binary, d CHAR(3) BYTE, e CHAR(3) ASCII, f CHAR(3) UNICODE, g VARCHAR(9) BINARY)",
		"CREATE TABLE v (a CHAR(3), b VARCHAR(3), c TEXT, d ENUM('a')) CHARACTER SET binary",
	},
	"labels": {"CREATE TABLE t (a ENUM('x','it''s','b\\\\s','c,d','tr  ',''), b SET('é','ü','(') CHARACTER SET latin1, c ENUM('só') COLLATE utf8mb4_bin)"},
	"json":   {"CREATE TABLE t (id INT PRIMARY KEY, j JSON)", "ALTER TABLE t ADD k JSON FIRST"},
	"character sets": {
		"CREATE TABLE t (a VARCHAR(5) CHARACTER SET gbk, b CHAR(3) CHARSET big5, c TEXT CHARACTER SET sjis COLLATE sjis_bin, d VARCHAR(3) COLLATE ujis_japanese_ci, e VARCHAR(4) CHARACTER SET cp1251, f VARCHAR(9)) DEFAULT CHARSET=latin2",
		"ALTER TABLE t ADD g VARCHAR(3), ADD h VARCHAR(3) COLLATE latin1_german1_ci",
		"ALTER TABLE t MODIFY a VARCHAR(5)",
		"ALTER TABLE t DEFAULT CHARACTER SET utf8mb4",
		"ALTER TABLE t ADD i VARCHAR(3)",
		"ALTER TABLE t COLLATE latin1_swedish_ci, ADD j VARCHAR(3)",
		"CREATE TABLE u (a CHAR(3), b VARCHAR(5) CHARACTER SET utf8mb4, c TINYTEXT, d TEXT, e ENUM('a'), f BLOB, g INT, h SET('x')) CHARSET=latin1",
		"ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4",
		"ALTER TABLE u CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_bin",
		"ALTER TABLE u CONVERT TO CHARACTER SET latin1, ADD i VARCHAR(3)",
		"ALTER DATABASE CHARACTER SET koi8r",
		"CREATE TABLE v (a VARCHAR(3), b ENUM('x'))",
		"CREATE TABLE w (a VARCHAR(3)) COLLATE = utf8mb4_general_ci",
	},
	"keys": {
		"CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c VARCHAR(90), PRIMARY KEY (b, a), UNIQUE (c(3)))",
		"ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, c(4))",
		"DROP INDEX `PRIMARY` ON t", "ALTER TABLE t ADD CONSTRAINT PRIMARY KEY (b)", "ALTER TABLE t CHANGE b bb BIGINT NOT NULL",
		"CREATE UNIQUE INDEX i ON t (a)", "ALTER TABLE t ADD INDEX (c), ADD id INT AUTO_INCREMENT FIRST, DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
		"CREATE TABLE u (a INT PRIMARY KEY, b INT NOT NULL) PARTITION BY HASH(a) PARTITIONS 2",
		"ALTER TABLE u ADD PARTITION PARTITIONS 2", "ALTER TABLE u COALESCE PARTITION 1", "ALTER TABLE u REMOVE PARTITIONING",
		"CREATE TABLE v (a INT NOT NULL UNIQUE, b INT)", "ALTER TABLE v MODIFY a INT PRIMARY KEY",
		"CREATE TABLE w (a INT, b INT, c INT, PRIMARY KEY (a, b))", "ALTER TABLE w DROP PRIMARY KEY, DROP COLUMN a",
	},
	"unique keys": {
		"CREATE TABLE a (a INT NOT NULL, b INT NOT NULL, UNIQUE (b), UNIQUE (a))", "ALTER TABLE a DROP INDEX b", "ALTER TABLE a ADD UNIQUE x (b)", "ALTER TABLE a MODIFY a INT",
		"ALTER TABLE a MODIFY a INT NOT NULL", "ALTER TABLE a RENAME INDEX x TO y, RENAME COLUMN b TO bb", "DROP INDEX y ON a", "CREATE UNIQUE INDEX z ON a (bb, a)", "ALTER TABLE a DROP INDEX a",
		"ALTER TABLE a ADD id INT AUTO_INCREMENT UNIQUE FIRST", "ALTER TABLE a DROP INDEX z", "ALTER TABLE a DROP COLUMN id", "ALTER TABLE a ADD PRIMARY KEY (a)", "ALTER TABLE a DROP PRIMARY KEY",
		"CREATE TABLE b (a VARCHAR(20) NOT NULL, b INT NOT NULL, UNIQUE p (a(10)), UNIQUE q (b))", "ALTER TABLE b MODIFY a VARCHAR(10) NOT NULL", "ALTER TABLE b MODIFY a VARCHAR(30) NOT NULL", "ALTER TABLE b DROP KEY q", "ALTER TABLE b DROP KEY p, ADD UNIQUE p (a(5))",
		"CREATE TABLE c (a INT NOT NULL, UNIQUE (a), b INT NOT NULL UNIQUE, UNIQUE c (b, a), c INT NOT NULL UNIQUE)", "ALTER TABLE c DROP INDEX a", "ALTER TABLE c DROP INDEX b, DROP INDEX c_2",
		"CREATE TABLE d (a TINYBLOB NOT NULL, b TEXT NOT NULL, c INT NOT NULL, UNIQUE i (a(255)), UNIQUE j (b(9)), UNIQUE k (c))", "ALTER TABLE d DROP INDEX i", "CREATE TABLE e LIKE d", "ALTER TABLE e DROP INDEX k",
		"CREATE TABLE f (x INT NOT NULL, UNIQUE (x), a SERIAL)", "ALTER TABLE f DROP x", "CREATE TABLE g (a INT PRIMARY KEY, b INT NOT NULL, UNIQUE (b))", "ALTER TABLE g DROP PRIMARY KEY", "ALTER TABLE g DROP INDEX b, DROP COLUMN b, ADD UNIQUE (a)",
		"CREATE TABLE h (a INT, b INT, UNIQUE k (a), UNIQUE l (b))", "ALTER TABLE h MODIFY b INT NOT NULL", "ALTER TABLE h MODIFY a INT NOT NULL", "ALTER TABLE h ADD UNIQUE m (b, a)", "ALTER TABLE h MODIFY a INT, ADD KEY (a)", "ALTER TABLE h MODIFY a INT NOT NULL, DROP KEY m",
		"ALTER TABLE h DROP COLUMN b, DROP CONSTRAINT l",
	},
	"columns": {
		"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b VARCHAR(10))",
		"ALTER TABLE t MODIFY b VARCHAR(10) AFTER id", "ALTER TABLE t ADD c INT FIRST, ADD (d DATE, e TEXT), ADD COLUMN f INT AFTER a",
		"ALTER TABLE t CHANGE a b VARCHAR(10), CHANGE b a VARCHAR(10)", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
		"ALTER TABLE t DROP c, DROP COLUMN d, ADD g INT AFTER id, MODIFY e MEDIUMTEXT FIRST",
		"ALTER TABLE t MODIFY g BIGINT AFTER e, CHANGE f ff INT FIRST, ADD h INT AFTER ff", "ALTER TABLE t ALTER g SET DEFAULT 3, ALTER ff DROP DEFAULT",
		"ALTER TABLE t ADD v INT AS (id + 1) VIRTUAL, ADD s INT GENERATED ALWAYS AS (id * 2) STORED AFTER id",
		"ALTER TABLE t COMMENT 'new', ENGINE = InnoDB, AUTO_INCREMENT = 5", "ALTER TABLE t ALTER g SET DEFAULT 4",
		"ALTER TABLE t DROP v, DROP s, ADD s VARCHAR(3)", "ALTER TABLE t RENAME COLUMN id TO Id", "ALTER TABLE t MODIFY ID INT", "ALTER TABLE t ADD i INT INVISIBLE DEFAULT 1",
	},
	"tables": {
		"CREATE TABLE a (id INT PRIMARY KEY, x INT)", "CREATE TABLE b LIKE a", "RENAME TABLE a TO c, b TO a", "RENAME TABLE a TO tmp, c TO a, tmp TO c",
		"ALTER TABLE c ADD y INT, RENAME TO d", "ALTER TABLE d RENAME AS e", "CREATE TABLE IF NOT EXISTS e (z DATE)", "CREATE TABLE IF NOT EXISTS f (z DATE)",
		"DROP TABLE IF EXISTS nothere, f", "CREATE TABLE g AS SELECT id, x + 1 AS y, CAST('a' AS CHAR(3)) AS z FROM a", "CREATE TABLE h (q INT) SELECT * FROM a", "TRUNCATE TABLE a", "TRUNCATE a",
		"CREATE TEMPORARY TABLE a (t INT); ALTER TABLE a ADD temporary INT; DROP TEMPORARY TABLE a", "DROP TABLE a, e",
	},
	"online schema changes": {
		"CREATE TABLE orders (id INT PRIMARY KEY, a INT, b INT)",
		"CREATE TABLE _orders_gho LIKE orders", "ALTER TABLE _orders_gho DROP a, ADD c TEXT", "CREATE TABLE _orders_ghc (id BIGINT AUTO_INCREMENT, hint VARCHAR(64), PRIMARY KEY(id))",
		"RENAME TABLE orders TO _orders_del, _orders_gho TO orders", "DROP TABLE _orders_ghc, _orders_del",
		"CREATE TABLE _orders_new LIKE orders", "ALTER TABLE `_orders_new` MODIFY b BIGINT FIRST", "RENAME TABLE orders TO _orders_old, _orders_new TO orders", "DROP TABLE IF EXISTS `_orders_old`",
	},
	"spelling": {
		"SET sql_mode='ANSI_QUOTES'; CREATE TABLE \"q\" (\"id\" INT PRIMARY KEY, \"a\"\"b\" VARCHAR(3) DEFAULT 'x')",
		"SET sql_mode='ANSI_QUOTES,REAL_AS_FLOAT'; ALTER TABLE \"q\" ADD \"c\" REAL",
		"SET sql_mode='NO_BACKSLASH_ESCAPES'; ALTER TABLE q ADD d VARCHAR(9) DEFAULT '\\', ADD e ENUM('\\')",
		"/* a */ CREATE /*!40000 TABLE */ r ( -- comment\n id INT, # another\n `select` INT /*!50000 , `x y` INT */, `back``tick` INT)",
		"/*!40101 ALTER TABLE r ADD z INT */", "ALTER TABLE r ADD /*!99999 no such thing */ zz INT",
		"CREATE TABLE names (uuid CHAR(36), point INT, inet6 VARBINARY(16), comment TEXT, `key` INT, status ENUM('a'), type INT, value INT, invisible INT)",
		"SET NAMES latin1; CREATE TABLE l (`\xe9t\xe9` INT, e ENUM('\xe0'))", "SET NAMES gbk; ALTER TABLE l ADD `\xc4\xe3` INT",
	},
	"spatial": {"CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY, p POINT NOT NULL, l LINESTRING, m MULTIPOLYGON)", "ALTER TABLE t ADD point POINT AFTER id, ADD q POLYGON"},
	"databases": {
		"CREATE TABLE t (a INT)", "CREATE TABLE keep (a VARCHAR(3))",
	},
}

var ddlScriptsMySQL = map[string][]string{
	"mysql types":   {"CREATE TABLE t (v VECTOR(5), w VECTOR, g POINT SRID 4326 NOT NULL, i INT INVISIBLE, j INT)", "ALTER TABLE t ADD k INT CHECK (k > 1), ADD CONSTRAINT c CHECK (k < 5) NOT ENFORCED", "ALTER TABLE t ADD KEY f ((j + 1)), ALGORITHM=DEFAULT, LOCK=SHARED", "ALTER TABLE t ADD l INT, ALGORITHM=INSTANT"},
	"invisible key": {"SET sql_generate_invisible_primary_key=ON; CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT AFTER a, ADD c INT", "SET sql_generate_invisible_primary_key=ON; CREATE TABLE doubt_t (a INT); ALTER TABLE doubt_t ADD b INT FIRST"},
	"unique keys of MySQL": {
		"CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, v INT AS (a+1) VIRTUAL NOT NULL, s INT AS (a+2) STORED NOT NULL, UNIQUE x (v), UNIQUE ((a+1)), UNIQUE y (b) INVISIBLE, PRIMARY KEY (a, b))",
		"ALTER TABLE t ALTER INDEX y VISIBLE", "ALTER TABLE t ADD UNIQUE z (s)", "ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t DROP INDEX y", "ALTER TABLE t ADD UNIQUE y (a), ADD c INT",
	},
	"key columns": {"CREATE TABLE w (a INT, b INT, c INT, PRIMARY KEY (a, b))", "ALTER TABLE w DROP COLUMN a"},
	"national":    {"CREATE TABLE doubt_n (a NCHAR(3), b NATIONAL VARCHAR(5))"},
}

var ddlScriptsMariaDB = map[string][]string{
	"mariadb types":      {"CREATE TABLE t (id INT PRIMARY KEY, u UUID, a INET6)", "ALTER TABLE t ADD n INET6 FIRST", "CREATE OR REPLACE TABLE t (x INT, y UUID DEFAULT UUID())"},
	"mariadb clauses":    {"CREATE TABLE t (a INT, b INT)", "ALTER TABLE IF EXISTS t ADD IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS c INT, DROP IF EXISTS d", "SET STATEMENT max_statement_time=100 FOR ALTER TABLE t ADD d INT", "/*M!100000 ALTER TABLE t ADD e INT */", "ALTER ONLINE TABLE t ADD f INT FIRST"},
	"system versioning":  {"CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING", "CREATE TABLE u (id INT PRIMARY KEY)", "ALTER TABLE u ADD a INT"},
	"mariadb keys":       {"CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c VARCHAR(800) NOT NULL, d BLOB NOT NULL, UNIQUE h (a), UNIQUE l (c), UNIQUE m (d), UNIQUE n (b)) CHARSET utf8mb4", "ALTER TABLE t DROP KEY n", "ALTER TABLE t ADD k INT NOT NULL, DROP KEY h, DROP KEY m", "ALTER TABLE t MODIFY a INT NULL, DROP KEY l, ADD UNIQUE n (b)", "CREATE OR REPLACE UNIQUE INDEX n ON t (b, a)"},
	"mariadb collations": {"CREATE TABLE t (a VARCHAR(3) COLLATE utf8mb4_nopad_bin, b VARCHAR(3) COLLATE latin1_nopad_bin) COLLATE utf8mb4_unicode_520_nopad_ci"},
}

// The schemas that are followed statement by statement are those that information_schema shows.
func TestDDLAgainstTheServer(t *testing.T) {
	servers(t, func(t *testing.T, s *testenv.Server) {
		scripts := []map[string][]string{ddlScripts, ddlScriptsMySQL}
		if s.Flavor == "mariadb" {
			scripts[1] = ddlScriptsMariaDB
		}
		for _, set := range scripts {
			for name, statements := range set {
				t.Run(name, func(t *testing.T) { compareDDL(t, s, statements) })
			}
		}
	})
}

// compareDDL runs statements, each followed by a row in table anchor, the only captured one: its transaction holds the schemas
// in force.
func compareDDL(t *testing.T, s *testenv.Server, statements []string) {
	db := s.Database(t)
	s.Exec(t, "USE "+db, "CREATE TABLE anchor (id INT PRIMARY KEY)")
	r := follow(t, s, locate(t, s, "latest"), db+".anchor")
	conn, err := connectTo(s).Connect(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, prepareCatalog(t.Context(), conn))

	connection := append([]string{"SET NAMES utf8mb4; USE " + db}, "")
	for i, statement := range statements {
		connection[1] = statement
		s.Exec(t, connection...)
		s.Exec(t, fmt.Sprintf("INSERT INTO %s.anchor VALUES (%d)", db, i))
		want, err := readSchemas(t.Context(), conn, []string{db}, schemaPool{})
		require.NoError(t, err)
		r.until("the row behind the statement", func() bool { return len(r.withRowsOf("anchor")) == i+1 })
		have := r.withRowsOf("anchor")[i].schemas
		for name, schema := range want {
			tracked := have.find(name)
			require.NotNilf(t, tracked, "%s: table %s is not followed", statement, name)
			if strings.HasPrefix(name.name, "doubt_") {
				require.NotEmpty(t, tracked.doubt)
				continue
			}
			require.Emptyf(t, tracked.doubt, "%s: table %s", statement, name)
			require.Emptyf(t, cmp.Diff(readLike(schema), readLike(tracked.schema)), "%s: table %s (-server +followed)", statement, name)
		}
		have.each(db, func(table *trackedTable) {
			require.Containsf(t, want, table.name, "%s: the table is gone", statement)
		})
	}
}

// readLike is a schema as text, with what does not matter for reading rows left out.
func readLike(s *Schema) []string {
	lines := []string{"charset " + s.Charset, "key " + strings.Join(s.Key(), ",")}
	for _, c := range s.Columns {
		typ, err := parseColumnType(c.Type)
		if err != nil {
			lines = append(lines, err.Error())
		}
		lines = append(lines, fmt.Sprintf("%s %s unsigned=%v labels=%q wire=%v charset=%s invisible=%v",
			c.Name, typ.base, typ.unsigned, typ.labels, typ.wireTypes(c.Charset), c.Charset, c.Invisible))
	}
	return lines
}

// withRowsOf are the transactions whose first rows are of a table.
func (r *reading) withRowsOf(table string) []*Transaction {
	var found []*Transaction
	for _, transaction := range r.transactions {
		i := slices.IndexFunc(transaction.events, func(e []byte) bool { return isRowsEvent(rawEvent(e).kind()) })
		if i < 1 {
			continue
		}
		if _, _, name, _, err := tableMapNames(rawEvent(transaction.events[0]).body()); err == nil && string(name) == table {
			found = append(found, transaction)
		}
	}
	return found
}
