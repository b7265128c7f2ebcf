package canal

import "strings"

// statementKind is what a QUERY_EVENT does, as far as the reader must know.
type statementKind uint8

const (
	statementOther statementKind = iota // DDL and what changes no rows
	statementBegin
	statementCommit
	statementRollback
	statementSavepoint
	statementRollbackTo
	statementXAStart
	statementXAEnd
	statementXACommit
	statementXARollback
	statementDML // rows changed in statement format
)

// classify tells what a logged statement does. Transaction control is written by the server
// itself, in fixed form; the rest is the application's own text.
func classify(text string) statementKind {
	switch text {
	case "BEGIN":
		return statementBegin
	case "COMMIT":
		return statementCommit
	case "ROLLBACK":
		return statementRollback
	}
	words := newTokens(text, false)
	switch strings.ToUpper(words.next()) {
	case "BEGIN":
		return statementBegin
	case "START":
		if strings.EqualFold(words.next(), "TRANSACTION") {
			return statementBegin
		}
	case "SAVEPOINT":
		return statementSavepoint
	case "ROLLBACK":
		if strings.EqualFold(words.next(), "TO") {
			return statementRollbackTo
		}
		return statementRollback
	case "XA":
		switch strings.ToUpper(words.next()) {
		case "START", "BEGIN":
			return statementXAStart
		case "END":
			return statementXAEnd
		case "COMMIT":
			return statementXACommit
		case "ROLLBACK":
			return statementXARollback
		}
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "SELECT", "(", "EXECUTE":
		// SELECT and DO are logged where they call a function that changes rows.
		return statementDML
	}
	return statementOther
}

// names gives every table that a statement may touch, as pairs of database and table: each identifier, or
// pair of them joined by a dot, that could be one. It errs on the side of too many, and ends when each returns true, which
// it reports.
func names(q query, each func(database, table string) bool) bool {
	words := newTokens(string(q.text), q.ansiQuotes)
	loads := false // between LOAD and INFILE stand no names
	word := words.next()
	for word != "" {
		identifier, plain := words.identifier, !words.quotes
		next := words.next()
		switch upper := strings.ToUpper(word); {
		case !identifier:
		case next == ".":
			if table := words.next(); words.identifier && each(word, table) {
				return true
			}
			next = words.next()
		case plain && reserved[upper]:
			loads = upper == "LOAD" || loads && upper != "INFILE"
		case !loads && each(string(q.database), word):
			return true
		}
		word = next
	}
	return false
}

// reserved are the words of statements that change rows which MySQL and MariaDB both reserve: without quotes, and
// without a database before them, they are never a table.
var reserved = func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(`ALL AND AS ASC BETWEEN BY CALL CASE CROSS DEFAULT DELAYED DELETE DESC DISTINCT DISTINCTROW
		DIV ELSE ENCLOSED ESCAPED EXISTS FALSE FOR FORCE FROM GROUP HAVING HIGH_PRIORITY IF IGNORE IN INDEX INFILE INNER INSERT
		INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT LINES LOAD LOW_PRIORITY MATCH MOD NATURAL NOT NULL ON OPTIONALLY OR ORDER OUTER
		PARTITION REGEXP REPLACE RIGHT RLIKE SELECT SET STARTING STRAIGHT_JOIN TABLE TERMINATED THEN TRUE UNION UPDATE USE USING
		VALUES WHEN WHERE WITH XOR`) {
		words[word] = true
	}
	return words
}()

// tokens splits SQL into words, quoted names without their quotes, and single characters; strings, numbers and
// comments are passed over, the text inside version comments (/*!50000 … */) is not.
type tokens struct {
	text       string
	ansiQuotes bool
	// identifier: the token given last could be a name; quotes: it stood in quotes.
	identifier, quotes bool
	left               int // of the text, from the beginning of the token given last
}

func newTokens(text string, ansiQuotes bool) *tokens {
	return &tokens{text: text, ansiQuotes: ansiQuotes}
}

// next gives the next token, empty at the end.
func (t *tokens) next() string {
	t.identifier, t.quotes = false, false
	for t.text != "" {
		c := t.text[0]
		t.left = len(t.text)
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == ';':
			t.text = t.text[1:]
		case c == '#', strings.HasPrefix(t.text, "-- "), strings.HasPrefix(t.text, "--\n"), strings.HasPrefix(t.text, "--\t"):
			t.skipPast("\n")
		case strings.HasPrefix(t.text, "/*!"), strings.HasPrefix(t.text, "/*M!"):
			t.text = strings.TrimLeft(t.text[strings.IndexByte(t.text, '!')+1:], "0123456789")
		case strings.HasPrefix(t.text, "/*"):
			t.skipPast("*/")
		case strings.HasPrefix(t.text, "*/"):
			t.text = t.text[2:]
		case c == '\'' || c == '"' && !t.ansiQuotes:
			t.quoted(c, true)
		case c == '`' || c == '"':
			t.identifier, t.quotes = true, true
			return t.quoted(c, false)
		case isWordByte(c):
			return t.word()
		default:
			t.text = t.text[1:]
			return string(c)
		}
	}
	return ""
}

func (t *tokens) word() string {
	n := 1
	for n < len(t.text) && isWordByte(t.text[n]) {
		n++
	}
	word := t.text[:n]
	t.text = t.text[n:]
	t.identifier = true
	return word
}

// quoted reads up to the closing quote; a doubled quote stands for one, and so in strings does one
// behind a backslash.
func (t *tokens) quoted(quote byte, backslash bool) string {
	var b strings.Builder
	for i := 1; i < len(t.text); i++ {
		c := t.text[i]
		switch {
		case backslash && c == '\\' && i+1 < len(t.text):
			i++
			b.WriteByte(t.text[i])
		case c == quote && i+1 < len(t.text) && t.text[i+1] == quote:
			i++
			b.WriteByte(c)
		case c == quote:
			t.text = t.text[i+1:]
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	t.text = ""
	return b.String()
}

func (t *tokens) skipPast(end string) {
	if i := strings.Index(t.text, end); i >= 0 {
		t.text = t.text[i+len(end):]
		return
	}
	t.text = ""
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
