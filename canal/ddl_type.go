package canal

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	tidb "github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/types"
)

// columnOf turns a column's definition into what information_schema would show. charset is the table's default.
func columnOf(def *ast.ColumnDef, charset string, flavor Flavor) (SchemaColumn, error) {
	c := SchemaColumn{Name: def.Name.Name.O}
	own := knownCharset(def.Tp.GetCharset())
	for _, option := range def.Options {
		switch option.Tp { //nolint:exhaustive // the others do not matter for reading rows
		case ast.ColumnOptionCollate:
			if named := charsetOfOption(option.StrValue); own == "" && named != "" {
				own = named
			}
		case ast.ColumnOptionNotNull, ast.ColumnOptionPrimaryKey, ast.ColumnOptionAutoIncrement:
			c.NotNull = true
		case ast.ColumnOptionGenerated:
			c.Virtual = !option.Stored
		case ast.ColumnOptionComment:
			if literal, ok := option.Expr.(ast.ValueExpr); ok && literal.GetString() == invisibleMark {
				c.Invisible = true
			}
		}
	}
	if own == "" {
		own = charset
	}
	var err error
	c.Type, c.Charset, err = typeOf(def.Tp, own, flavor)
	if err != nil {
		return c, fmt.Errorf("column %s: %w", c.Name, err)
	}
	return c, nil
}

// typeOf gives COLUMN_TYPE and CHARACTER_SET_NAME of a type whose text, if it is any, has a character set.
func typeOf(tp *types.FieldType, charset string, flavor Flavor) (text, textCharset string, err error) {
	size := tp.GetFlen()
	switch tp.GetType() {
	case tidb.TypeTiny, tidb.TypeShort, tidb.TypeInt24, tidb.TypeLong, tidb.TypeLonglong, tidb.TypeFloat, tidb.TypeDouble, tidb.TypeNewDecimal:
		return numberType(tp), "", nil
	case tidb.TypeBit:
		return fmt.Sprintf("bit(%d)", max(size, 1)), "", nil
	case tidb.TypeYear:
		return "year", "", nil
	case tidb.TypeDate, tidb.TypeNewDate:
		return "date", "", nil
	case tidb.TypeDuration:
		return withFraction("time", tp.GetDecimal()), "", nil
	case tidb.TypeDatetime:
		return withFraction("datetime", tp.GetDecimal()), "", nil
	case tidb.TypeTimestamp:
		return withFraction("timestamp", tp.GetDecimal()), "", nil
	case tidb.TypeJSON:
		if flavor == MariaDB {
			return "longtext", "utf8mb4", nil
		}
		return "json", "", nil
	case tidb.TypeTiDBVectorFloat32:
		if size <= 0 {
			size = 2048
		}
		return fmt.Sprintf("vector(%d)", size), "", nil
	case tidb.TypeString, tidb.TypeVarchar, tidb.TypeVarString:
		text, textCharset = stringType(tp.GetType() == tidb.TypeString, size, charset)
		return text, textCharset, nil
	case tidb.TypeTinyBlob, tidb.TypeBlob, tidb.TypeMediumBlob, tidb.TypeLongBlob:
		text, textCharset = blobType(tp.GetType(), size, charset)
		return text, textCharset, nil
	case tidb.TypeEnum, tidb.TypeSet:
		return labelType(tp, charset, flavor)
	}
	return "", "", fmt.Errorf("type %s is not understood", tp.String())
}

func numberType(tp *types.FieldType) string {
	text := ""
	switch tp.GetType() {
	case tidb.TypeTiny:
		text = "tinyint"
	case tidb.TypeShort:
		text = "smallint"
	case tidb.TypeInt24:
		text = "mediumint"
	case tidb.TypeLong:
		text = "int"
	case tidb.TypeLonglong:
		text = "bigint"
	case tidb.TypeFloat:
		text = "float"
	case tidb.TypeDouble:
		text = "double"
	case tidb.TypeNewDecimal:
		precision := tp.GetFlen()
		if precision <= 0 {
			precision = 10
		}
		text = fmt.Sprintf("decimal(%d,%d)", precision, max(tp.GetDecimal(), 0))
	}
	if tp.GetFlag()&(tidb.UnsignedFlag|tidb.ZerofillFlag) != 0 {
		text += " unsigned"
	}
	return text
}

func withFraction(base string, digits int) string {
	if digits <= 0 {
		return base
	}
	return fmt.Sprintf("%s(%d)", base, digits)
}

// maxVarchar is the most bytes that a VARCHAR takes; without strict mode a longer one becomes a TEXT.
const maxVarchar = 65535

func stringType(fixed bool, characters int, charset string) (text, textCharset string) {
	text, binary := "varchar", "varbinary"
	if fixed {
		text, binary = "char", "binary"
		if characters < 0 {
			characters = 1
		}
	}
	if charset == "binary" {
		text, textCharset = binary, ""
	} else {
		textCharset = charset
	}
	if bytes := characters * charsetMaxLength(charset); !fixed && bytes > maxVarchar {
		return blobOf(bytes, charset)
	}
	return fmt.Sprintf("%s(%d)", text, characters), textCharset
}

// blobType is the type of a TEXT or BLOB; with a length it is the smallest that holds as much.
func blobType(code byte, size int, charset string) (text, textCharset string) {
	if code == tidb.TypeBlob && size > 0 {
		if charset != "binary" {
			size *= charsetMaxLength(charset)
		}
		return blobOf(size, charset)
	}
	prefix := map[byte]string{tidb.TypeTinyBlob: "tiny", tidb.TypeMediumBlob: "medium", tidb.TypeLongBlob: "long"}[code]
	return blobNamed(prefix, charset)
}

// blobOf is the smallest TEXT or BLOB of a number of bytes.
func blobOf(bytes int, charset string) (text, textCharset string) {
	prefix := "long"
	switch {
	case bytes < 1<<8:
		prefix = "tiny"
	case bytes < 1<<16:
		prefix = ""
	case bytes < 1<<24:
		prefix = "medium"
	}
	return blobNamed(prefix, charset)
}

func blobNamed(prefix, charset string) (text, textCharset string) {
	if charset == "binary" {
		return prefix + "blob", ""
	}
	return prefix + "text", charset
}

func labelType(tp *types.FieldType, charset string, flavor Flavor) (text, textCharset string, err error) {
	labels := tp.GetElems()
	if len(labels) == 1 && strings.HasPrefix(labels[0], typeMark) {
		return strings.TrimPrefix(labels[0], typeMark), "", nil
	}
	var b strings.Builder
	if tp.GetType() == tidb.TypeEnum {
		b.WriteString("enum(")
	} else {
		b.WriteString("set(")
	}
	for i, label := range labels {
		if tp.GetElemIsBinaryLit(i) {
			return "", "", fmt.Errorf("a label is written as a number")
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\'')
		b.WriteString(labelQuotes.Replace(label))
		b.WriteByte('\'')
	}
	b.WriteByte(')')
	if charset == "binary" && flavor == MySQL {
		charset = ""
	}
	return b.String(), charset, nil
}

// labelQuotes quotes a label as parseLabels reads it.
var labelQuotes = strings.NewReplacer("'", "''", `\`, `\\`)

// convert is what CONVERT TO CHARACTER SET makes of a column: text gets the character set, and the type that then holds as many
// characters. Byte strings stay.
func (c *SchemaColumn) convert(charset string) error {
	typ, err := parseColumnType(c.Type)
	if err != nil {
		return err
	}
	from := c.Charset
	if from == "" || from == "binary" {
		return nil
	}
	c.Charset = charset
	grows := charsetMaxLength(charset) > charsetMaxLength(from)
	switch typ.base {
	case "char":
		c.Type, c.Charset = stringType(true, typ.arg(0, 1), charset)
	case "varchar":
		if typ.compressed {
			return fmt.Errorf("conversion of %s is not understood", c.Type)
		}
		c.Type, c.Charset = stringType(false, typ.arg(0, 0), charset)
	case "tinytext", "text", "mediumtext", "longtext":
		prefix := strings.TrimSuffix(typ.base, "text")
		if grows {
			larger := map[string]string{"tiny": "", "": "medium", "medium": "long", "long": "long"}
			prefix = larger[prefix]
		}
		c.Type, c.Charset = blobNamed(prefix, charset)
	}
	return nil
}
