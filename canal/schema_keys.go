package canal

import (
	"slices"
	"strconv"
	"strings"
)

// UniqueKey is a unique key other than the primary one.
type UniqueKey struct {
	Name  string
	Parts []KeyPart
	// Hash: MariaDB keeps hashes of values that are too long for an index, or where USING HASH asks for it.
	Hash bool
	// Made: the server chose the name, and may have put another number behind it.
	Made bool
}

// KeyPart is one part of a key.
type KeyPart struct {
	Column string // empty: an expression
	Prefix int    // in characters, of the column's value; 0: all of it
}

// Key names the columns that the servers take for a row's key, in its order: the primary key's, or without one those of the first
// unique key, if it is over whole columns none of which may be NULL or is computed when it is read. With full metadata it comes with the
// rows as their primary key, and with the row image MINIMAL the rows before a change hold it alone. Empty where there is neither.
//
// The rule is that of MySQL's prepare_share and MariaDB's init_from_binary_frm_image.
func (s *Schema) Key() []string {
	if len(s.PrimaryKey) > 0 || len(s.Unique) == 0 || s.rank(&s.Unique[0]) > 0 {
		return s.PrimaryKey
	}
	names := make([]string, 0, len(s.Unique[0].Parts))
	for _, part := range s.Unique[0].Parts {
		names = append(names, part.Column)
	}
	return names
}

// The order of unique keys: each has a rank, and those of one rank are in the order of their making. It is that of sort_keys in the
// servers' sql_table.cc.
const (
	rankPartial  = 1 << iota // a part is the prefix of a column
	rankComputed             // a part is computed when it is read
	rankNullable             // a part may be NULL
	rankHashed               // MariaDB keeps hashes
)

func (s *Schema) rank(key *UniqueKey) int {
	rank := 0
	if key.Hash {
		rank |= rankHashed
	}
	for _, part := range key.Parts {
		i := s.index(part.Column)
		if i < 0 {
			rank |= rankNullable | rankComputed
			continue
		}
		c := &s.Columns[i]
		if !c.NotNull {
			rank |= rankNullable
		}
		if c.Virtual {
			rank |= rankComputed
		}
		if !c.whole(part.Prefix) {
			rank |= rankPartial
		}
	}
	return rank
}

func (s *Schema) sortUnique() {
	slices.SortStableFunc(s.Unique, func(a, b UniqueKey) int { return s.rank(&a) - s.rank(&b) })
}

// whole reports whether a key's part of so many characters is the whole column.
func (c *SchemaColumn) whole(prefix int) bool {
	base, _, _ := strings.Cut(strings.ToLower(c.Type), "(")
	base, _, _ = strings.Cut(base, " ")
	if t := (columnType{base: base}); t.isBlob() {
		return strings.HasPrefix(base, "tiny") && prefix*charsetMaxLength(c.Charset) == maxTinyBlob
	}
	return prefix == 0
}

// maxTinyBlob is the most bytes of a TINYBLOB or TINYTEXT.
const maxTinyBlob = 255

// settleUnique brings the unique keys in line with the columns: prefixes are forgotten that have become whole columns, of types that are
// whole in a key and of texts that are no longer, and MariaDB hashes what has become too long.
func (s *Schema) settleUnique(flavor Flavor) {
	for i := range s.Unique {
		key := &s.Unique[i]
		for j := range key.Parts {
			part := &key.Parts[j]
			at := s.index(part.Column)
			if at < 0 {
				continue
			}
			c := &s.Columns[at]
			typ, err := parseColumnType(c.Type)
			if err != nil {
				continue
			}
			if isText := slices.Contains([]string{"char", "varchar", "binary", "varbinary"}, typ.base); isText && part.Prefix >= typ.arg(0, 1) || !isText && !typ.isBlob() {
				part.Prefix = 0
			}
		}
		key.Hash = key.Hash || flavor == MariaDB && s.tooLong(key)
	}
}

// tooLong reports whether the columns of a key do not fit into an index of InnoDB.
func (s *Schema) tooLong(key *UniqueKey) bool {
	const longest = 3072 // bytes of a column
	return slices.ContainsFunc(key.Parts, func(part KeyPart) bool {
		at := s.index(part.Column)
		if at < 0 || part.Prefix > 0 {
			return false
		}
		c := &s.Columns[at]
		typ, err := parseColumnType(c.Type)
		return err == nil && (typ.isBlob() || strings.HasPrefix(typ.base, "var") && typ.arg(0, 1)*charsetMaxLength(c.Charset) > longest)
	})
}

// doubtHashes forgets the keys where one is hashed that need not be: the next change of the table may make an ordinary one of it.
func (s *Schema) doubtHashes() {
	if slices.ContainsFunc(s.Unique, func(key UniqueKey) bool { return key.Hash && !s.tooLong(&key) }) {
		s.forgetUnique()
	}
}

// addKeyPart adds what a row of information_schema.STATISTICS says of a unique key. Parts that SELECT does not show, as row_end of a
// system-versioned table, do not count.
func (s *Schema) addKeyPart(index, column, prefix, kind string) {
	if column != "" && s.column(column) == nil {
		return
	}
	if index == "PRIMARY" {
		s.PrimaryKey = append(s.PrimaryKey, column)
		return
	}
	if n := len(s.Unique); n == 0 || s.Unique[n-1].Name != index {
		s.Unique = append(s.Unique, UniqueKey{Name: index})
	}
	key := &s.Unique[len(s.Unique)-1]
	key.Hash = kind == "HASH"
	length, _ := strconv.Atoi(prefix) // NULL: all of it
	if c := s.column(column); c != nil && (c.Type == "tinyblob" || c.Type == "tinytext") && length == 0 && !key.Hash {
		length = maxTinyBlob / charsetMaxLength(c.Charset) // of nothing else is a BLOB the whole
	}
	key.Parts = append(key.Parts, KeyPart{Column: column, Prefix: length})
}

// dropColumns takes columns out of the keys, and drops keys of which nothing is left.
func (s *Schema) dropColumns(dropped []string) {
	gone := func(name string) bool {
		return slices.ContainsFunc(dropped, func(d string) bool { return strings.EqualFold(d, name) })
	}
	s.PrimaryKey = slices.DeleteFunc(s.PrimaryKey, gone)
	for i := range s.Unique {
		s.Unique[i].Parts = slices.DeleteFunc(s.Unique[i].Parts, func(part KeyPart) bool { return gone(part.Column) })
	}
	s.Unique = slices.DeleteFunc(s.Unique, func(key UniqueKey) bool { return len(key.Parts) == 0 })
	if gone(s.RowEnd) {
		s.RowEnd = ""
	}
}

// renameColumns gives the parts of keys the new names of their columns, by the old ones in lower case.
func (s *Schema) renameColumns(renamed map[string]string) {
	rename := func(name *string) {
		if now, ok := renamed[strings.ToLower(*name)]; ok {
			*name = now
		}
	}
	for i := range s.PrimaryKey {
		rename(&s.PrimaryKey[i])
	}
	for i := range s.Unique {
		for j := range s.Unique[i].Parts {
			rename(&s.Unique[i].Parts[j].Column)
		}
	}
	rename(&s.RowEnd)
}

// forgetUnique says that the unique keys, or their order, are not known from here on.
func (s *Schema) forgetUnique() { s.Unique, s.UniqueKnown = nil, false }

// named finds the unique key that a statement means by a name. sure is false where a key whose name the server chose may be meant.
func (s *Schema) named(name string) (i int, sure bool) {
	i, sure = -1, true
	for n := range s.Unique {
		key := &s.Unique[n]
		switch {
		case !key.Made && strings.EqualFold(key.Name, name):
			return n, true
		case key.Made && key.mayBeNamed(name):
			sure = false
		}
	}
	return i, sure
}

// mayBeNamed reports whether a key whose name the server chose can have this one: that of its first column, or that with a number.
func (k *UniqueKey) mayBeNamed(name string) bool {
	first := functionalIndex
	if len(k.Parts) > 0 && k.Parts[0].Column != "" {
		first = k.Parts[0].Column
	}
	lower := strings.ToLower(name)
	return strings.EqualFold(first, name) || strings.HasPrefix(lower, strings.ToLower(first)+"_")
}

// functionalIndex is what MySQL names a key that begins with an expression.
const functionalIndex = "functional_index"

// dropUnique drops the key of a name, if that is a unique one.
func (s *Schema) dropUnique(name string) {
	switch i, sure := s.named(name); {
	case !sure:
		s.forgetUnique()
	case i >= 0:
		s.Unique = slices.Delete(s.Unique, i, i+1)
	}
}

// renameUnique renames a key, if it is a unique one.
func (s *Schema) renameUnique(from, to string) {
	switch i, sure := s.named(from); {
	case !sure:
		s.forgetUnique()
	case i >= 0:
		s.Unique[i].Name = to
	}
}
