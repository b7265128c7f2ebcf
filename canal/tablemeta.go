package canal

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Kinds of optional metadata in a TABLE_MAP event, each sent as kind 1, length, value.
// binlog_row_metadata=MINIMAL sends signedness, character sets and geometry types (MySQL),
// NO_LOG sends none (MariaDB's default), FULL sends all.
// https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
const (
	metaSignedness            = 1
	metaDefaultCharset        = 2
	metaColumnCharset         = 3
	metaColumnName            = 4
	metaSetLabels             = 5
	metaEnumLabels            = 6
	metaGeometryType          = 7
	metaSimplePrimaryKey      = 8
	metaPrimaryKeyWithPrefix  = 9
	metaEnumSetDefaultCharset = 10
	metaEnumSetColumnCharset  = 11
	metaVisibility            = 12
)

var errMetaShort = errors.New("optional metadata is cut off")

// optionalMeta is what a TABLE_MAP event says beyond types.
type optionalMeta struct {
	columns    []Column
	primaryKey []int
	named      bool // names were sent, hence everything else was (binlog_row_metadata=FULL)
	signed     bool // signedness was sent
	charsets   bool // collations of the text columns were sent
}

// readOptionalMeta completes columns from a TABLE_MAP event's optional metadata.
// Labels are converted to UTF-8 last, since their character set may follow them.
func readOptionalMeta(columns []Column, b []byte, flavor Flavor) (optionalMeta, error) {
	m := optionalMeta{columns: columns}
	var enumLabels, setLabels []byte
	for len(b) > 0 {
		kind := b[0]
		size, n := lengthEncoded(b[1:])
		if n == 0 || size > uint64(len(b)-1-n) {
			return m, errMetaShort
		}
		value := b[1+n : 1+n+int(size)]
		b = b[1+n+int(size):]
		var err error
		switch kind {
		case metaSignedness:
			m.signed = true
			err = m.readSignedness(value)
		case metaDefaultCharset:
			m.charsets = true
			err = m.readDefaultCharset(value, func(c *Column) bool { return sendsCollation(c, flavor) })
		case metaColumnCharset:
			m.charsets = true
			err = m.readColumnCharsets(value, func(c *Column) bool { return sendsCollation(c, flavor) })
		case metaEnumSetDefaultCharset:
			err = m.readDefaultCharset(value, isEnumOrSet)
		case metaEnumSetColumnCharset:
			err = m.readColumnCharsets(value, isEnumOrSet)
		case metaColumnName:
			err = m.readNames(value)
		case metaEnumLabels:
			enumLabels = value
		case metaSetLabels:
			setLabels = value
		case metaSimplePrimaryKey:
			err = m.readPrimaryKey(value, false)
		case metaPrimaryKeyWithPrefix:
			err = m.readPrimaryKey(value, true)
		case metaVisibility:
			err = m.readVisibility(value)
		}
		if err != nil {
			return m, fmt.Errorf("optional metadata of kind %d: %w", kind, err)
		}
	}
	if err := m.readLabels(enumLabels, mysql.MYSQL_TYPE_ENUM); err != nil {
		return m, fmt.Errorf("ENUM labels: %w", err)
	}
	if err := m.readLabels(setLabels, mysql.MYSQL_TYPE_SET); err != nil {
		return m, fmt.Errorf("SET labels: %w", err)
	}
	return m, nil
}

// readSignedness reads a bit per numeric column, the highest bit first.
func (m *optionalMeta) readSignedness(bits []byte) error {
	i := 0
	for c := range m.columns {
		if !isNumeric(m.columns[c].Type) {
			continue
		}
		if i/8 >= len(bits) {
			return errMetaShort
		}
		m.columns[c].Unsigned = bits[i/8]&(0x80>>(i%8)) != 0
		i++
	}
	return nil
}

// readDefaultCharset reads a collation for all columns that match, and pairs of place
// (counted among those columns) and collation for the exceptions.
func (m *optionalMeta) readDefaultCharset(b []byte, match func(*Column) bool) error {
	numbers, err := packedInts(b)
	if err != nil {
		return err
	}
	if len(numbers)%2 != 1 {
		return errMetaShort
	}
	exceptions := make(map[uint64]uint64, len(numbers)/2)
	for i := 1; i < len(numbers); i += 2 {
		exceptions[numbers[i]] = numbers[i+1]
	}
	place := uint64(0)
	for i := range m.columns {
		c := &m.columns[i]
		if !match(c) {
			continue
		}
		collation, ok := exceptions[place]
		if !ok {
			collation = numbers[0]
		}
		if err := c.setCollation(collation); err != nil {
			return err
		}
		place++
	}
	for exception := range exceptions {
		if exception >= place {
			return fmt.Errorf("collation of text column %d, there are %d", exception+1, place)
		}
	}
	return nil
}

// readColumnCharsets reads one collation for each column that matches.
func (m *optionalMeta) readColumnCharsets(b []byte, match func(*Column) bool) error {
	numbers, err := packedInts(b)
	if err != nil {
		return err
	}
	for i := range m.columns {
		c := &m.columns[i]
		if !match(c) {
			continue
		}
		if len(numbers) == 0 {
			return errMetaShort
		}
		if err := c.setCollation(numbers[0]); err != nil {
			return err
		}
		numbers = numbers[1:]
	}
	if len(numbers) > 0 {
		return fmt.Errorf("%d collations more than text columns", len(numbers))
	}
	return nil
}

func (c *Column) setCollation(id uint64) error {
	if c.Type == mysql.MYSQL_TYPE_GEOMETRY || c.Type == mysql.MYSQL_TYPE_VECTOR {
		return nil // "binary", which says nothing
	}
	name := charsetOfCollation(id)
	if name == "" {
		return fmt.Errorf("collation %d is unknown", id)
	}
	c.Charset = name
	return nil
}

func (m *optionalMeta) readNames(b []byte) error {
	for i := range m.columns {
		n, size := lengthEncoded(b)
		if size == 0 || n > uint64(len(b)-size) {
			return errMetaShort
		}
		m.columns[i].Name = string(b[size : size+int(n)])
		b = b[size+int(n):]
	}
	m.named = true
	return nil
}

// readLabels reads for each column of the type a count and that many strings.
func (m *optionalMeta) readLabels(b []byte, columnType byte) error {
	if b == nil {
		return nil
	}
	for i := range m.columns {
		c := &m.columns[i]
		if c.Type != columnType {
			continue
		}
		count, n := lengthEncoded(b)
		if n == 0 || count > uint64(len(b)-n) {
			return errMetaShort
		}
		b = b[n:]
		cs := charsetByName(c.Charset)
		c.Labels = make([]string, count)
		for l := range c.Labels {
			size, n := lengthEncoded(b)
			if n == 0 || size > uint64(len(b)-n) {
				return errMetaShort
			}
			label, err := cs.label(b[n : n+int(size)])
			if err != nil {
				return fmt.Errorf("label %d: %w", l+1, err)
			}
			c.Labels[l] = label
			b = b[n+int(size):]
		}
	}
	return nil
}

// readPrimaryKey reads column indexes, each followed by a prefix length where the key
// has prefixes.
func (m *optionalMeta) readPrimaryKey(b []byte, prefixes bool) error {
	numbers, err := packedInts(b)
	if err != nil {
		return err
	}
	step := 1
	if prefixes {
		step = 2
	}
	for i := 0; i < len(numbers); i += step {
		if numbers[i] >= uint64(len(m.columns)) {
			return fmt.Errorf("primary key names column %d of %d", numbers[i]+1, len(m.columns))
		}
		m.primaryKey = append(m.primaryKey, int(numbers[i]))
	}
	return nil
}

// readVisibility reads a bit per column, the highest bit first, set on visible ones.
func (m *optionalMeta) readVisibility(bits []byte) error {
	for i := range m.columns {
		if i/8 >= len(bits) {
			return errMetaShort
		}
		m.columns[i].Invisible = bits[i/8]&(0x80>>(i%8)) == 0
	}
	return nil
}

// packedInts reads length-encoded integers to the end of b.
func packedInts(b []byte) ([]uint64, error) {
	var numbers []uint64
	for len(b) > 0 {
		v, n := lengthEncoded(b)
		if n == 0 {
			return nil, errMetaShort
		}
		numbers = append(numbers, v)
		b = b[n:]
	}
	return numbers, nil
}

// isNumeric: the types that have a bit in the signedness metadata.
func isNumeric(t byte) bool {
	switch t {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG,
		mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL,
		mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_YEAR:
		return true
	}
	return false
}

// sendsCollation: the types that have a place in the character set metadata.
func sendsCollation(c *Column, flavor Flavor) bool {
	switch c.Type {
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR,
		mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB:
		return true
	case mysql.MYSQL_TYPE_VECTOR: // MySQL only; MariaDB's is a VARCHAR here
		return true
	case mysql.MYSQL_TYPE_GEOMETRY, typeMariaDBBlobCompressed, typeMariaDBVarcharCompressed:
		return flavor == MariaDB
	}
	return false
}

func isEnumOrSet(c *Column) bool {
	return c.Type == mysql.MYSQL_TYPE_ENUM || c.Type == mysql.MYSQL_TYPE_SET
}
