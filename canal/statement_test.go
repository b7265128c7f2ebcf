package canal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]statementKind{
		"BEGIN": statementBegin, "begin": statementBegin, "START TRANSACTION": statementBegin,
		"COMMIT": statementCommit, "ROLLBACK": statementRollback,
		"SAVEPOINT `a`": statementSavepoint, "ROLLBACK TO `a`": statementRollbackTo,
		"XA START X'61',X'',1": statementXAStart, "XA END X'61',X'',1": statementXAEnd,
		"XA COMMIT X'61',X'',1": statementXACommit, "XA ROLLBACK X'61',X'',1": statementXARollback,
		"/* app */ update t set a=1":         statementDML,
		"-- why\nINSERT INTO t VALUES (1)":   statementDML,
		"(SELECT f())":                       statementDML,
		"/*!50003 DELETE */ FROM t":          statementDML,
		"WITH c AS (SELECT 1) DELETE FROM t": statementDML,
		"CREATE TABLE t (id INT)":            statementOther,
		"ALTER TABLE t ADD c INT":            statementOther,
		"TRUNCATE t":                         statementOther,
		"ANALYZE TABLE t":                    statementOther,
		"GRANT UPDATE ON *.* TO u":           statementOther,
	} {
		require.Equal(t, want, classify(text), text)
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct {
		text string
		ansi bool
		want []string // the first names of the statement; the database in use is d
	}{
		{"UPDATE t SET v=2", false, []string{"d.t"}},
		{"UPDATE LOW_PRIORITY IGNORE `t` SET v=2", false, []string{"d.t"}},
		{"INSERT INTO other.t VALUES (1)", false, []string{"other.t"}},
		{"INSERT INTO other . `t` VALUES (1)", false, []string{"other.t"}},
		{"INSERT INTO other.set VALUES (1)", false, []string{"other.set"}},
		{"INSERT INTO `select` VALUES (1)", false, []string{"d.select"}},
		{"DELETE FROM data WHERE 'x' = \"y\"", false, []string{"d.data"}},
		{`REPLACE INTO "t" VALUES ('it''s', 'a\'b')`, true, []string{"d.t"}},
		{"DELETE a FROM a JOIN b USING (id)", false, []string{"d.a", "d.a", "d.b"}},
		{"UPDATE d2.a, b SET a.v=b.v", false, []string{"d2.a", "d.b", "a.v", "b.v"}},
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE `t` FIELDS TERMINATED BY ','", false, []string{"d.t"}},
		{"/* t1 */ UPDATE /*!50000 t2 */ SET v=1 -- t3", false, []string{"d.t2"}},
	} {
		var got []string
		names(query{database: []byte("d"), text: []byte(test.text), ansiQuotes: test.ansi}, func(database, table string) bool {
			got = append(got, database+"."+table)
			return len(got) == len(test.want)
		})
		require.Equal(t, test.want, got, test.text)
	}
}
