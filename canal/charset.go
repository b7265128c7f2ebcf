package canal

import (
	"errors"
	"sort"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// charsetForm says how a character set's bytes are read.
type charsetForm uint8

const (
	formBinary charsetForm = iota // no text
	formUTF8                      // utf8mb3, utf8mb4, ascii: bytes are UTF-8 already
	formASCII
	formSingleByte
	formMultiByte // one to four bytes a character; bytes below 0x80 are ASCII
	formUCS2      // big-endian, two bytes, no surrogates
	formUTF16     // big-endian
	formUTF16LE
	formUTF32 // big-endian
)

// charset is a character set of MySQL or MariaDB. Its mapping to Unicode is the servers' own,
// which other libraries' mappings of the same name differ from in places.
type charset struct {
	name   string
	form   charsetForm
	once   sync.Once
	single [256]rune // formSingleByte; utf8.RuneError where a byte stands for nothing
	ascii  bool      // bytes below 0x80 are ASCII
	multi  *multiByteTable
}

var errInvalidText = errors.New("the bytes are no text in its character set")

// collationRange maps collation ids first to last to a character set.
type collationRange struct {
	first, last uint64
	charset     string
}

// charsetOfCollation names the character set of a collation id, or is empty.
func charsetOfCollation(id uint64) string {
	i := sort.Search(len(collationRanges), func(i int) bool { return collationRanges[i].last >= id })
	if i == len(collationRanges) || collationRanges[i].first > id {
		return ""
	}
	return collationRanges[i].charset
}

// charsets are all character sets by name. Tables are built on first use.
var charsets = func() map[string]*charset {
	all := map[string]*charset{}
	for name, form := range map[string]charsetForm{
		"binary": formBinary, "utf8mb4": formUTF8, "utf8mb3": formUTF8, "utf8": formUTF8, "ascii": formASCII,
		"ucs2": formUCS2, "utf16": formUTF16, "utf16le": formUTF16LE, "utf32": formUTF32,
	} {
		all[name] = &charset{name: name, form: form}
	}
	for name := range singleByteTables {
		all[name] = &charset{name: name, form: formSingleByte}
	}
	for name := range multiByteSources {
		all[name] = &charset{name: name, form: formMultiByte}
	}
	return all
}()

// charsetByName returns the character set of that name, or nil.
func charsetByName(name string) *charset {
	cs := charsets[name]
	if cs != nil {
		cs.once.Do(cs.load)
	}
	return cs
}

func (cs *charset) load() {
	switch cs.form {
	case formSingleByte:
		table := []rune(singleByteTables[cs.name])
		cs.ascii = len(table) == 128
		if cs.ascii {
			for i := range 128 {
				cs.single[i] = rune(i)
			}
		}
		copy(cs.single[256-len(table):], table)
	case formMultiByte:
		cs.ascii = true
		cs.multi = newMultiByteTable(cs.name)
	default: // the Unicode forms have no tables
	}
}

// label converts an ENUM or SET label. A server sends only labels that are valid.
func (cs *charset) label(b []byte) (string, error) {
	if cs == nil {
		// MariaDB and MySQL send labels with their character sets or not at all.
		return "", errors.New("its character set is unknown")
	}
	if cs.form == formBinary || cs.isUTF8(b, scanText(b)) {
		return string(b), nil
	}
	text, invalid := cs.appendUTF8(nil, b)
	if invalid > 0 {
		return "", errInvalidText
	}
	return string(text), nil
}

// isUTF8 reports whether b, text of this character set of which scan was found, is the same text in UTF-8.
func (cs *charset) isUTF8(b []byte, scan textScan) bool {
	switch cs.form {
	case formUTF8:
		return scan.validUTF8(b)
	case formASCII:
		return scan.ascii
	default:
		return cs.ascii && scan.ascii
	}
}

// appendUTF8 converts text to UTF-8. invalid is the number of places with bytes that stand for
// nothing; U+FFFD is in theirs.
func (cs *charset) appendUTF8(dst, b []byte) (out []byte, invalid int) {
	switch cs.form {
	case formUTF8, formASCII:
		return appendValid(dst, b, cs.form == formASCII)
	case formSingleByte:
		for _, c := range b {
			r := cs.single[c]
			if r == utf8.RuneError {
				invalid++
			}
			dst = utf8.AppendRune(dst, r)
		}
		return dst, invalid
	case formMultiByte:
		return cs.multi.appendUTF8(dst, b)
	default:
		return cs.appendWide(dst, b)
	}
}

// appendWide converts text whose characters have units of two or four bytes.
func (cs *charset) appendWide(dst, b []byte) (out []byte, invalid int) {
	for len(b) > 0 {
		r, size := cs.wideRune(b)
		if r < 0 {
			r = utf8.RuneError
			invalid++
		}
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst, invalid
}

// appendValid copies UTF-8, or ASCII, and replaces what is invalid.
func appendValid(dst, b []byte, ascii bool) (out []byte, invalid int) {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size <= 1 || ascii && r >= utf8.RuneSelf {
			invalid++
			r, size = utf8.RuneError, 1
		}
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst, invalid
}

// wideRune reads the first character of a form with units of two or four bytes; a
// character that is invalid or cut off is negative.
func (cs *charset) wideRune(b []byte) (r rune, size int) {
	unit := func(i int) rune {
		if cs.form == formUTF16LE {
			return rune(b[i]) | rune(b[i+1])<<8
		}
		return rune(b[i])<<8 | rune(b[i+1])
	}
	if len(b) < 2 {
		return -1, len(b)
	}
	switch cs.form {
	case formUTF32:
		if len(b) < 4 {
			return -1, len(b)
		}
		r, size = unit(0)<<16|unit(2), 4
	case formUCS2:
		r, size = unit(0), 2
	default:
		r, size = unit(0), 2
		if utf16.IsSurrogate(r) {
			if len(b) < 4 {
				return -1, len(b)
			}
			if r = utf16.DecodeRune(r, unit(2)); r == utf8.RuneError {
				return -1, 2
			}
			size = 4
		}
	}
	if !utf8.ValidRune(r) {
		r = -1
	}
	return r, size
}

func isASCII(b []byte) bool { return scanText(b).ascii }
