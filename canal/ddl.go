package canal

import (
	"slices"
	"strings"
)

// ddlKind is what a logged statement may do to tables.
type ddlKind uint8

const (
	ddlNone     ddlKind = iota // nothing that matters for reading rows
	ddlTables                  // CREATE, ALTER, DROP, RENAME TABLE; CREATE UNIQUE INDEX, DROP INDEX
	ddlDatabase                // CREATE, ALTER, DROP DATABASE
	ddlTruncate
)

// ddlHead is the beginning of a statement: as much as is written in the same way by every server and version.
type ddlHead struct {
	kind   ddlKind
	verb   string // CREATE, ALTER, DROP, RENAME, TRUNCATE
	target tableName
}

// makesIndex: the statement is a CREATE UNIQUE INDEX, which changes the keys of a table and nothing else.
func (h ddlHead) makesIndex() bool {
	return h.kind == ddlTables && h.verb == "CREATE" && h.target == tableName{}
}

// readDDL tells from a statement's first words what it may do.
func readDDL(q query) ddlHead {
	words := newTokens(string(q.text), q.ansiQuotes)
	verb := strings.ToUpper(words.next())
	if verb == "SET" && strings.EqualFold(words.next(), "STATEMENT") { // MariaDB: SET STATEMENT x=1 FOR …
		for word := words.next(); word != "" && !strings.EqualFold(word, "FOR"); {
			word = words.next()
		}
		verb = strings.ToUpper(words.next())
	}
	head := ddlHead{verb: verb}
	switch verb {
	case "TRUNCATE":
		head.kind = ddlTruncate
		word := words.next()
		if strings.EqualFold(word, "TABLE") && !words.quotes {
			word = words.next()
		}
		head.target = readTarget(words, word, q)
		return head
	case "CREATE", "ALTER", "DROP", "RENAME":
	default:
		return ddlHead{}
	}
	unique := false
	for word := words.next(); word != ""; word = words.next() {
		switch strings.ToUpper(word) {
		case "OR", "REPLACE", "ONLINE", "OFFLINE", "IGNORE", "UNIQUE":
			unique = unique || strings.EqualFold(word, "UNIQUE")
			continue
		case "TABLE", "TABLES":
			head.kind = ddlTables
			word = words.next()
			for slices.Contains([]string{"IF", "NOT", "EXISTS"}, strings.ToUpper(word)) && !words.quotes {
				word = words.next()
			}
			head.target = readTarget(words, word, q)
		case "DATABASE", "SCHEMA":
			head.kind = ddlDatabase
		case "INDEX":
			if verb == "DROP" || unique { // of the primary key, perhaps, or of what stands in for it
				head.kind = ddlTables
			}
		}
		break
	}
	if head.kind == ddlNone {
		return ddlHead{}
	}
	return head
}

// readTarget reads a table's name that begins with first, the token that words gave last.
func readTarget(words *tokens, first string, q query) tableName {
	if !words.identifier {
		return tableName{}
	}
	if words.next() == "." {
		return tableName{first, words.next()}
	}
	return tableName{string(q.database), first}
}

// namesIn gives the tables among those of a predicate that a statement's text may name. It errs on the side of too many.
func namesIn(q query, which func(tableName) bool) []tableName {
	var found []tableName
	seen := make(map[tableName]bool)
	names(q, func(database, name string) bool {
		if n := (tableName{database, name}); !seen[n] {
			seen[n] = true
			if which(n) {
				found = append(found, n)
			}
		}
		return false
	})
	return found
}
