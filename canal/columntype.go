package canal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// columnType is a column's type as information_schema.COLUMNS.COLUMN_TYPE shows it.
type columnType struct {
	text       string
	base       string // "decimal", in lower case
	args       []int  // of decimal(10,2)
	labels     []string
	unsigned   bool
	compressed bool // MariaDB's COMPRESSED columns
}

// parseColumnType reads a COLUMN_TYPE: a name, in parentheses numbers or quoted labels, then
// attributes.
func parseColumnType(text string) (columnType, error) {
	t := columnType{text: text}
	end := strings.IndexAny(text, "( ")
	if end < 0 {
		end = len(text)
	}
	t.base = strings.ToLower(text[:end])
	rest := text[end:]
	if strings.HasPrefix(rest, "(") {
		var err error
		if t.base == "enum" || t.base == "set" {
			t.labels, rest, err = parseLabels(rest[1:])
		} else {
			t.args, rest, err = parseArgs(rest[1:])
		}
		if err != nil {
			return t, fmt.Errorf("type %q: %w", text, err)
		}
	}
	rest = strings.ToLower(rest)
	t.unsigned = t.base == "year" || strings.Contains(rest, "unsigned") || strings.Contains(rest, "zerofill")
	t.compressed = strings.Contains(rest, "compressed") // varchar(10) /*M!100301 COMPRESSED*/
	return t, nil
}

// parseArgs reads numbers up to the closing parenthesis.
func parseArgs(s string) (args []int, rest string, err error) {
	inside, rest, closed := strings.Cut(s, ")")
	if !closed {
		return nil, "", fmt.Errorf("no closing parenthesis")
	}
	for arg := range strings.SplitSeq(inside, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(arg))
		if err != nil {
			return nil, "", err
		}
		args = append(args, n)
	}
	return args, rest, nil
}

// parseLabels reads quoted labels up to the closing parenthesis. Quotes are doubled, and
// four characters have a backslash before them.
func parseLabels(s string) (labels []string, rest string, err error) {
	errOpen := fmt.Errorf("labels are not closed")
	var label strings.Builder
	for {
		if s == "" || s[0] != '\'' {
			return nil, "", errOpen
		}
		s = s[1:]
		label.Reset()
		for {
			if s == "" {
				return nil, "", errOpen
			}
			c := s[0]
			s = s[1:]
			if c == '\'' {
				if !strings.HasPrefix(s, "'") {
					break
				}
				s = s[1:]
			} else if c == '\\' && s != "" {
				c = s[0]
				s = s[1:]
				if i := strings.IndexByte("0nr", c); i >= 0 {
					c = "\x00\n\r"[i]
				}
			}
			label.WriteByte(c)
		}
		labels = append(labels, label.String())
		switch {
		case strings.HasPrefix(s, ","):
			s = s[1:]
		case strings.HasPrefix(s, ")"):
			return labels, s[1:], nil
		default:
			return nil, "", errOpen
		}
	}
}

// isBlob reports whether the values are kept as BLOBs are: an index holds a prefix of them only.
func (t *columnType) isBlob() bool {
	return strings.HasSuffix(t.base, "blob") || strings.HasSuffix(t.base, "text") || slices.Contains(t.wireTypes("binary"), wireType{mysql.MYSQL_TYPE_GEOMETRY, 4})
}

// arg is the number in the parentheses, or otherwise where there is none.
func (t *columnType) arg(i, otherwise int) int {
	if i < len(t.args) {
		return t.args[i]
	}
	return otherwise
}

// wireType is what a table map says of a column.
type wireType struct {
	code byte
	meta uint16
}

// wireTypes lists how a column of this type and character set may look in a table map;
// empty where the type is unknown.
func (t *columnType) wireTypes(charset string) []wireType {
	only := func(code byte, meta int) []wireType { return []wireType{{code, uint16(meta)}} }
	temporal := func(old, current byte) []wireType {
		return []wireType{{current, uint16(t.arg(0, 0))}, {old, 0}}
	}
	varchar := func(bytes int) []wireType {
		if t.compressed {
			return only(typeMariaDBVarcharCompressed, bytes+1)
		}
		return only(mysql.MYSQL_TYPE_VARCHAR, bytes)
	}
	blob := func(lengthBytes int) []wireType {
		if t.compressed {
			return only(typeMariaDBBlobCompressed, lengthBytes)
		}
		return only(mysql.MYSQL_TYPE_BLOB, lengthBytes)
	}
	switch t.base {
	case "tinyint", "bool", "boolean":
		return only(mysql.MYSQL_TYPE_TINY, 0)
	case "smallint":
		return only(mysql.MYSQL_TYPE_SHORT, 0)
	case "mediumint":
		return only(mysql.MYSQL_TYPE_INT24, 0)
	case "int", "integer":
		return only(mysql.MYSQL_TYPE_LONG, 0)
	case "bigint":
		return only(mysql.MYSQL_TYPE_LONGLONG, 0)
	case "float":
		return only(mysql.MYSQL_TYPE_FLOAT, 4)
	case "double", "real":
		return only(mysql.MYSQL_TYPE_DOUBLE, 8)
	case "decimal", "numeric":
		return only(mysql.MYSQL_TYPE_NEWDECIMAL, t.arg(0, 10)<<8|t.arg(1, 0))
	case "bit":
		bits := t.arg(0, 1)
		return only(mysql.MYSQL_TYPE_BIT, bits/8<<8|bits%8)
	case "year":
		return only(mysql.MYSQL_TYPE_YEAR, 0)
	case "date":
		return []wireType{{mysql.MYSQL_TYPE_DATE, 0}, {mysql.MYSQL_TYPE_NEWDATE, 0}}
	case "time":
		return temporal(mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_TIME2)
	case "datetime":
		return temporal(mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_DATETIME2)
	case "timestamp":
		return temporal(mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIMESTAMP2)
	case "char":
		return only(mysql.MYSQL_TYPE_STRING, t.arg(0, 1)*charsetMaxLength(charset))
	case "binary":
		return only(mysql.MYSQL_TYPE_STRING, t.arg(0, 1))
	case "varchar":
		return varchar(t.arg(0, 0) * charsetMaxLength(charset))
	case "varbinary":
		return varchar(t.arg(0, 0))
	case "tinytext", "tinyblob":
		return blob(1)
	case "text", "blob":
		return blob(2)
	case "mediumtext", "mediumblob":
		return blob(3)
	case "longtext", "longblob":
		return blob(4)
	case "enum":
		if len(t.labels) < 256 {
			return only(mysql.MYSQL_TYPE_ENUM, 1)
		}
		return only(mysql.MYSQL_TYPE_ENUM, 2)
	case "set":
		bytes := (len(t.labels) + 7) / 8
		if bytes > 4 {
			bytes = 8
		}
		return only(mysql.MYSQL_TYPE_SET, bytes)
	case "json":
		return only(mysql.MYSQL_TYPE_JSON, 4)
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return only(mysql.MYSQL_TYPE_GEOMETRY, 4)
	case "vector":
		bytes := 4 * t.arg(0, 2048)
		return []wireType{{mysql.MYSQL_TYPE_VECTOR, 4}, {mysql.MYSQL_TYPE_VARCHAR, uint16(bytes)}}
	case "uuid", "inet6":
		return only(mysql.MYSQL_TYPE_STRING, uuidSize)
	case "inet4":
		return only(mysql.MYSQL_TYPE_STRING, inet4Size)
	}
	return nil
}

// fits reports whether a column of the table map may be of this type.
func (t *columnType) fits(c *Column, charset string) bool {
	for _, w := range t.wireTypes(charset) {
		if w.code == c.Type && w.meta == c.Meta {
			return true
		}
	}
	return false
}

// charsetMaxLength is the most bytes that a character takes, by which the servers
// multiply lengths.
func charsetMaxLength(name string) int {
	switch name {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return 4
	case "utf8mb3", "utf8", "ujis", "eucjpms":
		return 3
	case "big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2":
		return 2
	}
	return 1
}
