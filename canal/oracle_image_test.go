package canal

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/stretchr/testify/require"
)

// imagePlace is one of the images that changes have.
type imagePlace string

const (
	afterInsert  imagePlace = "after the insert"
	beforeUpdate imagePlace = "before the update"
	afterUpdate  imagePlace = "after the update"
	beforeDelete imagePlace = "before the deletion"
)

// imageColumn is what matters of a column for whether an image carries it.
type imageColumn struct {
	key   bool // of the primary key
	blob  bool
	named bool // the statement gives it a value
}

// rowImage is a value of binlog_row_image and what it makes the binlog carry.
type rowImage struct {
	name    string
	carries func(at imagePlace, c imageColumn) bool
}

var (
	imageFull    = rowImage{"FULL", func(imagePlace, imageColumn) bool { return true }}
	imageMinimal = rowImage{"MINIMAL", func(at imagePlace, c imageColumn) bool {
		switch at {
		case afterInsert:
			return c.named
		case afterUpdate:
			return c.named && !c.key
		case beforeUpdate, beforeDelete:
			return c.key
		}
		panic(fmt.Sprintf("no image is %q", at))
	}}
	imageNoBlob = rowImage{"NOBLOB", func(at imagePlace, c imageColumn) bool {
		return !c.blob || c.named && (at == afterInsert || at == afterUpdate)
	}}
	imageFullNoDup = rowImage{"FULL_NODUP", func(at imagePlace, c imageColumn) bool {
		return at != afterUpdate || c.named && !c.key
	}}
)

// isBlob: NOBLOB leaves these out. GEOMETRY, JSON and VECTOR are stored like BLOBs, but are none to it.
func isBlob(c *Column) bool {
	return c.Type == mysql.MYSQL_TYPE_BLOB || c.Type == typeMariaDBBlobCompressed
}

// Without a primary key a unique key without NULLs stands in for it. Without that too, images before are full, and on MariaDB those after.
func TestRowImagesWithoutPrimaryKey(t *testing.T) {
	const change = "; INSERT INTO t VALUES (1,1,'x'); UPDATE t SET b=2; DELETE FROM t"
	unique := []string{
		"1 t#1 insert [1 1 x]", "1 t#1 update [1 - -] [- 2 -]", "1 t#1 delete [1 - -]",
		"1 t#1 insert [1 1 x]", "1 t#1 update [1 1 -] [1 2 -]", "1 t#1 delete [1 2 -]",
	}
	none := map[string][]string{
		"mysql": {
			"1 t#1 insert [1 1 x]", "1 t#1 update [1 1 x] [- 2 -]", "1 t#1 delete [1 2 x]",
			"1 t#1 insert [1 1 x]", "1 t#1 update [1 1 x] [1 2 -]", "1 t#1 delete [1 2 x]",
		},
		"mariadb": {
			"1 t#1 insert [1 1 x]", "1 t#1 update [1 1 x] [1 2 x]", "1 t#1 delete [1 2 x]",
			"1 t#1 insert [1 1 x]", "1 t#1 update [1 1 x] [1 2 x]", "1 t#1 delete [1 2 x]",
		},
	}
	for _, server := range oracleServers() {
		t.Run(server.name, func(t *testing.T) {
			s := server.start(t)
			for columns, want := range map[string][]string{"(a INT NOT NULL UNIQUE, b INT, c TEXT)": unique, "(a INT, b INT, c TEXT)": none[s.Flavor]} {
				database := s.Database(t)
				s.Exec(t, "USE "+database+"; CREATE TABLE t "+columns)
				from := here(t, s)
				s.Exec(t, "USE "+database+"; SET SESSION binlog_row_image=MINIMAL"+change+"; SET SESSION binlog_row_image=NOBLOB"+change)
				require.Equal(t, want, allRows(t, capturing("t"), rawTransactions(t, s, from, 6)...), columns)
			}
		})
	}
}
