package canal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

// statementReach tells whether a change in statement format can reach a captured table that it does not name: through a view, a trigger,
// a stored routine or a foreign key. It asks the server how these look now, and again after each statement that may have changed
// them. Where the account does not see enough to tell, that is an answer too: what cannot be shown to be harmless is not passed over.
//
// It errs on the side of too much: a trigger that only reads a captured table counts as one that writes it. What was dropped between
// the statement and the moment when it is read cannot be seen.
type statementReach struct {
	ctx      context.Context
	connect  func() ConnectOptions
	captured func(database, table string) bool
	objects  *serverObjects // nil: to be asked for
	// temporary are the tables of sessions, by the statements in the binlog that make them.
	temporary map[tableName]bool
}

// serverObjects are what can lead from one table to another. Names are as the server shows them, looked up in lower case.
type serverObjects struct {
	tables   map[tableName]bool
	leads    map[tableName][]lead // from tables, views and routines
	captured map[string]bool      // databases with captured tables
	sees     func(database string) bool
	exists   map[string]bool // databases
}

// lead is a way from one object to others: the text that names them, or a table.
type lead struct {
	what     string // "trigger shop.t"
	database string // in use where text runs
	text     string
	hidden   bool // there is a text, which the account may not see
	child    tableName
}

func (n tableName) lower() tableName {
	return tableName{strings.ToLower(n.database), strings.ToLower(n.name)}
}

func (r *statementReach) isCaptured(n tableName) bool {
	return r.captured(n.database, n.name) || r.captured(n.lower().database, n.lower().name)
}

// changed says that a statement other than a change of rows was read.
func (r *statementReach) changed(q query) {
	r.objects = nil
	words := newTokens(string(q.text), q.ansiQuotes)
	verb := strings.ToUpper(words.next())
	word := words.next()
	for strings.EqualFold(word, "OR") || strings.EqualFold(word, "REPLACE") {
		word = words.next()
	}
	if !strings.EqualFold(word, "TEMPORARY") {
		return
	}
	words.next() // TABLE
	word = words.next()
	for slices.Contains([]string{"IF", "NOT", "EXISTS"}, strings.ToUpper(word)) && !words.quotes {
		word = words.next()
	}
	const most = 10_000 // sessions that ended without a word leave theirs behind
	switch n := readTarget(words, word, q).lower(); {
	case verb == "CREATE" && len(r.temporary) < most:
		if r.temporary == nil {
			r.temporary = make(map[tableName]bool)
		}
		r.temporary[n] = true
	case verb == "DROP":
		delete(r.temporary, n)
	}
}

// of gives the captured table that a statement may change and the way to it; or why that cannot be told; or nothing where it changes none.
func (r *statementReach) of(q query) (table, way, unknown string, err error) {
	if r.objects == nil {
		if r.objects, err = r.ask(); err != nil {
			return "", "", "", fmt.Errorf("look for views, triggers, routines and foreign keys: %w", err)
		}
	}
	o := r.objects
	safe := q.updates != nil // MySQL says in which databases a statement changes tables, but not what foreign keys change
	for _, database := range q.updates {
		safe = safe && !o.captured[strings.ToLower(database)]
	}
	w := &reachWalk{reach: r, seen: make(map[tableName]bool), keysOnly: safe}
	w.text(lead{what: "the statement", database: string(q.database), text: string(q.text)}, q.ansiQuotes, "")
	if w.table == "" && w.found == 0 && !safe && w.unknown == "" {
		w.unknown = "the server shows none of the tables that it may name"
	}
	if w.table != "" {
		w.unknown = ""
	}
	return w.table, w.way, w.unknown, nil
}

// reachWalk follows the leads of one statement.
type reachWalk struct {
	reach    *statementReach
	seen     map[tableName]bool
	keysOnly bool // nothing but foreign keys matters
	found    int  // tables, views and routines
	table    string
	way      string
	unknown  string
}

// text follows the names in a text.
func (w *reachWalk) text(l lead, ansiQuotes bool, way string) {
	o := w.reach.objects
	q := query{database: []byte(l.database), text: []byte(l.text), ansiQuotes: ansiQuotes}
	var named []tableName
	plain := map[string]bool{"new": true, "old": true} // that may stand before a column
	names(q, func(database, name string) bool {
		n := tableName{database, name}
		named = append(named, n)
		plain[strings.ToLower(name)] = true
		return false
	})
	for _, n := range named {
		if w.table != "" {
			return
		}
		if way != "" && w.reach.isCaptured(n) && o.tables[n.lower()] {
			w.table, w.way = n.String(), way
			return
		}
		w.object(n, way)
		database := strings.ToLower(n.database)
		alias := plain[database] && !o.exists[database]
		if !w.keysOnly && !alias && !isSystemDatabase(database) && !o.sees(database) && !w.reach.temporary[n.lower()] && w.unknown == "" {
			w.unknown = fmt.Sprintf("the account of source.user does not see all views, triggers and routines of database %s", n.database)
		}
	}
}

// object follows the leads from a table, view or routine, if there is one of that name.
func (w *reachWalk) object(n tableName, way string) {
	o := w.reach.objects
	key := n.lower()
	if o.tables[key] || len(o.leads[key]) > 0 || w.reach.temporary[key] || isSystemDatabase(key.database) {
		w.found++
	}
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	for _, l := range o.leads[key] {
		next := l.what
		if way != "" {
			next = way + ", " + l.what
		}
		switch {
		case w.table != "":
			return
		case l.child != (tableName{}):
			if w.reach.isCaptured(l.child) {
				w.table, w.way = l.child.String(), next
				return
			}
			w.object(l.child, next)
		case w.keysOnly:
		case l.hidden:
			w.unknown = "the account of source.user may not see " + l.what
		default:
			w.text(l, false, next)
		}
	}
}

func isSystemDatabase(name string) bool { // where nobody can make triggers
	return slices.Contains([]string{"mysql", "sys", "information_schema", "performance_schema"}, strings.ToLower(name))
}

// ask reads the objects from the server.
func (r *statementReach) ask() (*serverObjects, error) {
	options := r.connect()
	ctx, cancel := context.WithTimeout(r.ctx, 6*options.timeout())
	defer cancel()
	conn, err := options.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it only reads
	if err := prepareCatalog(ctx, conn); err != nil {
		return nil, err
	}
	o := &serverObjects{tables: make(map[tableName]bool), leads: make(map[tableName][]lead), captured: make(map[string]bool), exists: make(map[string]bool)}
	found, err := listTables(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, n := range found {
		o.tables[n.lower()] = true
		if r.isCaptured(n) {
			o.captured[strings.ToLower(n.database)] = true
		}
	}
	databases, err := readDatabases(ctx, conn)
	if err != nil {
		return nil, err
	}
	for name := range databases {
		o.exists[strings.ToLower(name)] = true
	}
	if err := o.readLeads(ctx, conn); err != nil {
		return nil, err
	}
	o.sees, err = readSight(ctx, conn)
	return o, err
}

// readLeads reads the four kinds of them.
func (o *serverObjects) readLeads(ctx context.Context, conn *client.Conn) error {
	const others = " NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
	for _, kind := range []struct{ what, statement string }{ // from database and name, what, text
		{"view", "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA" + others},
		{"trigger", "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA" + others},
		{"routine", "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA" + others},
	} {
		r, err := ask(ctx, conn, kind.statement)
		if err != nil {
			return err
		}
		for _, row := range r.rows {
			from := tableName{row[0], row[1]}.lower()
			o.leads[from] = append(o.leads[from], lead{
				what: fmt.Sprintf("%s %s.%s", kind.what, row[0], row[2]), database: row[0], text: row[3], hidden: row[3] == "",
			})
		}
	}
	r, err := ask(ctx, conn, `SELECT DISTINCT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_NAME, TABLE_SCHEMA, TABLE_NAME
		FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA`+others)
	if err != nil {
		return err
	}
	for _, row := range r.rows {
		from := tableName{row[0], row[1]}.lower()
		o.leads[from] = append(o.leads[from], lead{what: "foreign key " + row[2], child: tableName{row[3], row[4]}})
	}
	return nil
}

// readSight reads of which databases the account sees all views, triggers and routines.
func readSight(ctx context.Context, conn *client.Conn) (func(database string) bool, error) {
	r, err := ask(ctx, conn, "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	granted := make(map[string][]string) // privileges by scope: *.* or a database's name in lower case
	for _, row := range r.rows {
		privileges, scope := readGrant(row[0])
		granted[scope] = append(granted[scope], privileges...)
	}
	return func(database string) bool {
		have := slices.Concat(granted["*"], granted[strings.ToLower(database)])
		if slices.Contains(have, "ALL PRIVILEGES") {
			return true
		}
		return slices.Contains(have, "SELECT") && slices.Contains(have, "SHOW VIEW") && slices.Contains(have, "TRIGGER") &&
			(slices.Contains(have, "EXECUTE") || slices.Contains(have, "SHOW_ROUTINE"))
	}, nil
}

// readGrant reads a line of SHOW GRANTS: GRANT SELECT, TRIGGER ON `shop`.* TO …. The scope is * or a database's name in lower case, and
// empty for what is granted on less than a database.
func readGrant(line string) (privileges []string, scope string) {
	list, rest, ok := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON ")
	if !ok {
		return nil, ""
	}
	on, _, _ := strings.Cut(rest, " TO ")
	database, whole := strings.CutSuffix(on, ".*")
	if !whole {
		return nil, ""
	}
	database = strings.NewReplacer("`", "", `\_`, "_", `\%`, "%").Replace(database)
	return strings.Split(strings.ReplaceAll(list, ", ", ","), ","), strings.ToLower(database)
}
