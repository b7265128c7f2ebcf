package canal

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestCapturedEvents reads the committed events, from which fuzzing starts, and with -update
// captures them anew from real servers: tables of all types, with all operations.
func TestCapturedEvents(t *testing.T) {
	if *update {
		captureEvents(t)
	}
	for _, transaction := range capturedEvents(t) {
		decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: anySchema{}})
		require.NotEmpty(t, allRows(t, decoder, transaction))
	}
}

func captureEvents(t *testing.T) {
	const types = `(id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(20,5), h BIT(13), i YEAR, j DATE,
		k TIME(2), l DATETIME(6), m TIMESTAMP(3) NULL, n BINARY(16), o CHAR(20) CHARACTER SET gbk, p VARBINARY(300), q TINYTEXT, r MEDIUMBLOB,
		t GEOMETRY, u ENUM('a','b'), v SET('x','y','z') CHARACTER SET latin1%s)`
	const row = `(1,-1,65535,-8388608,-9223372036854775808,1.5,-2.5e300,-123456789.12345,4097,2026,'2026-11-29','-12:13:14.15','2026-11-29 10:00:00.123456',
		'2026-11-29 10:00:00.123',x'01','text','vb','tiny',REPEAT('m',300),ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2),POLYGON((0 0,1 0,1 1,0 0)))'),'b','x,z'%s)`
	for name, c := range map[string]struct {
		server      *testenv.Server
		types, more string
		session     string
	}{
		"mysql":              {testenv.MySQL(t), `, w JSON, y VECTOR(2)`, `,'{"a":[1,2.5,"x",null,{"b":true}],"bb":70000}',STRING_TO_VECTOR('[1,2]')`, "SET binlog_row_value_options=PARTIAL_JSON"},
		"mariadb":            {testenv.MariaDB(t), `, w TEXT COMPRESSED, y UUID`, `,REPEAT('z',300),'123e4567-e89b-12d3-a456-426614174000'`, "SET sql_mode=''"},
		"mariadb-compressed": {testenv.MariaDB118(t), `, w INET6, y INET4`, `,'::1','1.2.3.4'`, "SET GLOBAL log_bin_compress=ON, log_bin_compress_min_len=10"},
	} {
		database := c.server.Database(t)
		c.server.Exec(t, "USE "+database+"; CREATE TABLE t "+fmt.Sprintf(types, c.types))
		from := here(t, c.server)
		update := "UPDATE t SET a=2, b=NULL"
		if name == "mysql" {
			update += ", w=JSON_SET(w,'$.a[0]',5)"
		}
		c.server.Exec(t, "SET time_zone='+00:00'; USE "+database+"; "+c.session+"; BEGIN; INSERT INTO t VALUES "+fmt.Sprintf(row, c.more)+"; "+update+"; DELETE FROM t; COMMIT")
		transaction := rawTransactions(t, c.server, from, 1)[0]
		var text []byte
		for _, e := range transaction.events {
			text = append(hex.AppendEncode(text, e), '\n')
		}
		require.NoError(t, os.MkdirAll("testdata/events", 0o755))
		require.NoError(t, os.WriteFile(filepath.Join("testdata/events", name+".hex"), text, 0o644))
	}
}
