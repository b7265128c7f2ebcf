package canal

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
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
