package canal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// The collations in a table map stand in the order of the columns that have one, which are not the same on every server. Wherever a
// column of another kind stands among them, each text column must find its own.
func TestCharacterSetsBehindOtherColumns(t *testing.T) {
	for name, c := range map[string]struct {
		start  func(testing.TB) *testenv.Server
		others []string
	}{
		"mysql":         {testenv.MySQL, []string{"VECTOR(2)", "JSON", "POINT", "ENUM('a')", "SET('a') CHARACTER SET gbk", "VARBINARY(9)", "BLOB", "INT"}},
		"mariadb-10.11": {testenv.MariaDB, []string{"POINT", "TEXT COMPRESSED", "VARCHAR(9) COMPRESSED", "ENUM('a')", "UUID", "INET6", "BLOB"}},
		"mariadb-11.8":  {testenv.MariaDB118, []string{"VECTOR(2)", "POINT", "TEXT COMPRESSED", "VARCHAR(9) COMPRESSED", "SET('a')", "UUID", "INET4"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := c.start(t)
			database := server.Database(t)
			from := here(t, server)
			var tables []string
			for _, other := range c.others {
				// One text column and many: the server writes the collations in two ways.
				for _, texts := range []string{"a VARCHAR(9) CHARACTER SET latin1", "a VARCHAR(9) CHARACTER SET latin1, b CHAR(9) CHARACTER SET gbk, c TEXT CHARACTER SET latin2"} {
					table := fmt.Sprintf("(id INT PRIMARY KEY, x %s, %s)", other, texts)
					name := fmt.Sprintf("t%d", len(tables))
					tables = append(tables, table)
					server.Exec(t, "USE "+database+"; SET NAMES utf8mb4; CREATE TABLE "+name+table+"; INSERT INTO "+name+" (id, a) VALUES (1, 'é')")
				}
			}
			catalog := NewCatalog(connectTo(server).Connect)
			defer func() { require.NoError(t, catalog.Close()) }()
			decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: catalog})
			for i, transaction := range rawTransactions(t, server, from, len(tables)) {
				rows := decoder.Rows(t.Context(), transaction)
				require.True(t, rows.Next(), "%s: %v", tables[i], rows.Err())
				row := rows.Row()
				require.Equal(t, NewText("é"), row.After[2], tables[i])
				want := []string{"latin1", "gbk", "latin2"}
				for c, column := range row.Table.Columns[2:] {
					require.Equal(t, want[c], column.Charset, tables[i])
				}
			}
		})
	}
}
