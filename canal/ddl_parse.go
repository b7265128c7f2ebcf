package canal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	tidbcharset "github.com/pingcap/tidb/pkg/parser/charset"
	tidb "github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's literals; without one it parses none
)

// ddlParser parses DDL with TiDB's parser. Statements are brought into its dialect before: it lacks types, character sets and
// clauses of MySQL and MariaDB.
type ddlParser struct {
	mu     sync.Mutex // the parser is for one goroutine
	flavor Flavor
	parser *parser.Parser // made when first needed: it takes some memory
}

// parsedModes are the parts of sql_mode that change what a statement means. Their bits are MySQL's.
const parsedModes = tidb.ModeRealAsFloat | tidb.ModePipesAsConcat | tidb.ModeANSIQuotes | tidb.ModeIgnoreSpace | tidb.ModeNoBackslashEscapes

// maxDDL bounds a statement that is parsed, in bytes. A table of 4,096 columns takes less.
const maxDDL = 1 << 20

// parse parses a statement. Its error says what was not understood.
func (p *ddlParser) parse(q query) (statements []ast.StmtNode, err error) {
	if len(q.text) > maxDDL {
		return nil, fmt.Errorf("statement of %d bytes is too long", len(q.text))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil { // a fault of the parser must not take the daemon with it
			p.parser = nil
			statements, err = nil, fmt.Errorf("parse: %v", r)
		}
	}()
	if p.parser == nil {
		p.parser = parser.New()
		p.parser.SetStrictDoubleTypeCheck(false)
	}
	p.parser.SetSQLMode(tidb.SQLMode(q.sqlMode) & parsedModes)
	d := dialect{query: q, flavor: p.flavor}
	text, err := d.translate(false)
	if err != nil {
		return nil, err
	}
	if statements, _, err = p.parser.Parse(text, "", ""); err == nil {
		return slices.Clone(statements), nil // the parser reuses its slice, for whoever parses next
	}
	text, translateErr := d.translate(true)
	if translateErr != nil {
		return nil, translateErr
	}
	if statements, _, more := p.parser.Parse(text, "", ""); more == nil {
		return slices.Clone(statements), nil
	}
	return nil, fmt.Errorf("parse: %w", err)
}

// anyCollation stands for a collation of MariaDB that fits several character sets.
const anyCollation = "binlogd_any_bin"

// The parser refuses character sets and collations that TiDB does not implement. All that matters of a collation
// here is its character set, which its name begins with, so one for each will do.
func init() {
	const ids = 1 << 16 // beyond those of the servers
	n := 0
	add := func(charset, collation string) {
		if _, err := tidbcharset.GetCollationByName(collation); err != nil {
			n++
			tidbcharset.AddCollation(&tidbcharset.Collation{ID: ids + n, CharsetName: charset, Name: collation})
		}
	}
	for name := range charsets {
		if _, err := tidbcharset.GetCharsetInfo(name); err != nil {
			tidbcharset.AddCharset(&tidbcharset.Charset{
				Name: name, DefaultCollation: name + "_bin", Collations: map[string]*tidbcharset.Collation{}, Maxlen: charsetMaxLength(name),
			})
		}
		if name != "binary" {
			add(name, name+"_bin")
		}
	}
	add("utf8mb4", anyCollation)
}

// charsetOfOption is the character set that COLLATE names, as the parser gives it; empty where it fits several.
func charsetOfOption(collation string) string {
	if collation == anyCollation {
		return ""
	}
	return charsetOfCollationName(collation)
}

// dialect rewrites a statement of MySQL or MariaDB for the parser.
type dialect struct {
	query
	flavor Flavor
}

// Marks for what the parser has no words for: the single label of an ENUM, which stands for a type, and a comment, which stands
// for INVISIBLE. No label begins with such a character.
const (
	typeMark      = "\x01type "
	invisibleMark = "\x01invisible"
)

// foreignTypes are types that the parser does not know. None takes arguments.
var foreignTypes = map[string]bool{
	"GEOMETRY": true, "POINT": true, "LINESTRING": true, "POLYGON": true, "MULTIPOINT": true, "MULTILINESTRING": true,
	"MULTIPOLYGON": true, "GEOMETRYCOLLECTION": true, "GEOMCOLLECTION": true, "INET4": true, "INET6": true, "UUID": true,
}

// word is a token with its place in the text.
type word struct {
	text               string
	start, end         int
	identifier, quotes bool
}

func (w word) is(keyword string) bool {
	return w.identifier && !w.quotes && strings.EqualFold(w.text, keyword)
}

// translate brings the statement into the parser's dialect. The types and attributes that the parser lacks are replaced only where
// asked for: words that name them may be names of columns as well.
func (d dialect) translate(types bool) (string, error) {
	text := string(d.text)
	if d.flavor == MariaDB {
		text = strings.ReplaceAll(text, "/*M!", "/*!") // run by MariaDB alone
	}
	// What the server did not run it has made a plain comment before logging it, so versions do not matter.
	text = versionHint.ReplaceAllString(text, "/*! ")
	text = strings.ReplaceAll(text, "/*T!", "/* !") // run by TiDB alone
	words := allWords(text, d.ansiQuotes)

	var out strings.Builder
	last := 0
	replace := func(from, to int, by string) {
		if from >= last {
			out.WriteString(text[last:from])
			out.WriteString(by)
			last = to
		}
	}
	at := func(i int) word {
		if i >= 0 && i < len(words) {
			return words[i]
		}
		return word{}
	}
	for i, w := range words {
		switch {
		case i == 0 && w.is("SET") && at(1).is("STATEMENT"):
			for j := range words {
				if words[j].is("FOR") {
					replace(0, words[j].end, "")
					break
				}
			}
		case w.is("COLLATE"):
			j := i + 1
			if at(j).text == "=" {
				j++
			}
			if name := at(j); name.identifier && !strings.Contains(text[w.end:name.start], "'") {
				replace(name.start, name.end, standInCollation(name.text))
			}
		case w.is("OR") && at(i+1).is("REPLACE") && at(i-1).is("CREATE"):
			replace(w.start, at(i+1).end, "")
		case w.is("IF") && at(i+1).is("EXISTS") && at(i-1).is("TABLE") && i < 6 && slices.ContainsFunc(words[:i], func(w word) bool { return w.is("ALTER") }):
			replace(w.start, at(i+1).end, "")
		case (w.is("ONLINE") || w.is("OFFLINE")) && at(i-1).is("ALTER"):
			replace(w.start, w.end, "")
		case w.is("START") && at(i+1).is("TRANSACTION") && i+2 == len(words): // MySQL's CREATE TABLE … SELECT
			replace(w.start, at(i+1).end, "")
		case w.is("NATIONAL"), w.is("NCHAR"), w.is("NVARCHAR"):
			return "", fmt.Errorf("parse: %s has a character set of its own", w.text)
		case !types:
		case w.identifier && !w.quotes && foreignTypes[strings.ToUpper(w.text)] && isColumnName(at(i-1)):
			replace(w.start, w.end, "ENUM('"+typeMark+strings.ToLower(w.text)+"')")
		case byName[strings.ToUpper(w.text)] != "" && !w.quotes && endsType(at(i-1)):
			replace(w.start, w.end, "CHARACTER SET "+byName[strings.ToUpper(w.text)])
		case w.is("SRID"):
			replace(w.start, at(i+1).end, "")
		case w.is("INVISIBLE"):
			replace(w.start, w.end, "COMMENT '"+invisibleMark+"'")
		case w.is("VISIBLE"):
			replace(w.start, w.end, "")
		case w.is("WITH") && at(i+1).is("SYSTEM") && at(i+2).is("VERSIONING"):
			replace(w.start, at(i+2).end, "")
		}
	}
	out.WriteString(text[last:])
	return out.String(), nil
}

// byName are attributes that stand for a character set.
var byName = map[string]string{"BYTE": "binary", "ASCII": "latin1", "UNICODE": "ucs2"}

// endsType reports whether an attribute of a text type may follow the word.
func endsType(w word) bool {
	return w.text == ")" || w.is("CHAR") || w.is("TEXT") || w.is("TINYTEXT") || w.is("MEDIUMTEXT") || w.is("LONGTEXT")
}

// versionHint begins a comment that servers from some version on run.
var versionHint = regexp.MustCompile(`/\*![0-9]{5,6}`)

// standInCollation is a collation with the same character set that the parser knows.
func standInCollation(name string) string {
	charset := charsetOfCollationName(name)
	switch charset {
	case "":
		return anyCollation
	case "binary":
		return charset
	}
	return charset + "_bin"
}

// isColumnName reports whether a type may follow the word: it stands where a column is declared.
func isColumnName(w word) bool {
	if !w.identifier {
		return false
	}
	if w.quotes {
		return true
	}
	switch strings.ToUpper(w.text) {
	case "ADD", "COLUMN", "DROP", "MODIFY", "CHANGE", "AFTER", "FIRST", "KEY", "INDEX", "UNIQUE", "TO", "AS", "DEFAULT", "TABLE",
		"EXISTS", "CONSTRAINT", "BY", "USING", "ON", "SELECT", "PRIMARY", "REFERENCES":
		return false
	}
	return true
}

// allWords splits a statement.
func allWords(text string, ansiQuotes bool) []word {
	t := newTokens(text, ansiQuotes)
	var words []word
	for s := t.next(); s != "" || t.quotes; s = t.next() {
		words = append(words, word{text: s, start: len(text) - t.left, end: len(text) - len(t.text), identifier: t.identifier, quotes: t.quotes})
	}
	return words
}
