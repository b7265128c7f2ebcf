package canal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// draft is a snapshot while one statement changes it.
type draft struct {
	base     *schemaSnapshot
	flavor   Flavor
	database string // of the session
	server   string // character set of databases that are created without one
	// concerns says which tables are tracked. Others that the statement brings in are passed over.
	concerns func(tableName) bool

	order    []tableName
	changed  map[tableName]draftTable
	charsets map[string]string
	// keyed are tables of which the statement changes keys alone, while it is not known how they look.
	keyed []tableName
	// truncated are tables that TRUNCATE emptied.
	truncated []tableName
}

// draftTable is a table as the statement leaves it: with a schema, in doubt, or, where both are empty, gone.
type draftTable struct {
	schema *Schema
	doubt  string
}

func (d *draft) name(t *ast.TableName) tableName {
	if t.Schema.O != "" {
		return d.base.kept(tableName{t.Schema.O, t.Name.O})
	}
	return d.base.kept(tableName{d.database, t.Name.O})
}

// databaseName is a database as the server keeps its name.
func (d *draft) databaseName(written string) string {
	return d.base.kept(tableName{database: written}).database
}

// table is a table as it is now; known is false where nothing is known of one.
func (d *draft) table(n tableName) (t draftTable, known bool) {
	if t, ok := d.changed[d.base.key(n)]; ok {
		return t, t.schema != nil || t.doubt != ""
	}
	found := d.base.find(n)
	if found == nil {
		return draftTable{}, false
	}
	if found.schema != nil && found.reading != nil && !found.reading.passed.Load() {
		return draftTable{doubt: "how it looked before was not known for sure"}, true
	}
	return draftTable{found.schema, found.doubt}, true
}

func (d *draft) put(n tableName, t draftTable) {
	if d.concerns(n) {
		d.keep(n, t)
	}
}

// keep is put for a table that may not have been tracked so far.
func (d *draft) keep(n tableName, t draftTable) {
	n = d.base.kept(n)
	key := d.base.key(n)
	if _, again := d.changed[key]; !again {
		d.order = append(d.order, n)
	}
	if d.changed == nil {
		d.changed = make(map[tableName]draftTable)
	}
	d.changed[key] = t
}

// doubt notes that it is not known how a table looks after the statement.
func (d *draft) doubt(n tableName, format string, args ...any) {
	d.put(n, draftTable{doubt: fmt.Sprintf(format, args...)})
}

// alter changes a table's schema; where that is not known it stays unknown.
func (d *draft) alter(n tableName, f func(*Schema) error) {
	if !d.concerns(n) {
		return
	}
	t, known := d.table(n)
	switch {
	case !known:
		d.doubt(n, "how it looked before was not known")
	case t.schema == nil:
		d.put(n, t)
	default:
		changed := t.schema.clone()
		if err := f(changed); err != nil {
			d.doubt(n, "the statement does not fit what was known of it: %s", err)
			return
		}
		d.put(n, draftTable{schema: changed})
	}
}

func (d *draft) rename(from, to tableName) {
	t, known := d.table(from)
	if !known {
		t = draftTable{doubt: "how " + from.String() + " looked before was not known"}
		if !d.concerns(from) {
			t.doubt = from.String() + " was not followed"
		}
	}
	d.put(from, draftTable{})
	if known { // wherever it goes: it may come back
		d.keep(to, t)
	} else {
		d.put(to, t)
	}
}

func (d *draft) charsetOf(database string) string {
	if charset, ok := d.charsets[database]; ok {
		return charset
	}
	return d.base.charsets[database]
}

// apply makes the changes of a parsed statement.
func (d *draft) apply(statement ast.StmtNode) {
	switch s := statement.(type) {
	case *ast.CreateTableStmt:
		d.createTable(s)
	case *ast.AlterTableStmt:
		d.alterTable(s)
	case *ast.RenameTableStmt:
		for _, pair := range s.TableToTables {
			d.rename(d.name(pair.OldTable), d.name(pair.NewTable))
		}
	case *ast.DropTableStmt:
		if !s.IsView && s.TemporaryKeyword == ast.TemporaryNone {
			for _, t := range s.Tables {
				d.put(d.name(t), draftTable{})
			}
		}
	case *ast.DropIndexStmt:
		d.dropIndex(s)
	case *ast.CreateIndexStmt:
		d.createIndex(s)
	case *ast.TruncateTableStmt:
		d.truncated = append(d.truncated, d.name(s.Table))
	case *ast.CreateDatabaseStmt:
		name := d.databaseName(s.Name.O)
		if _, exists := d.base.charsets[name]; !exists || !s.IfNotExists {
			d.setCharset(name, s.Options, d.server)
		}
	case *ast.AlterDatabaseStmt:
		name := d.databaseName(s.Name.O)
		if name == "" {
			name = d.database
		}
		d.setCharset(name, s.Options, d.charsetOf(name))
	case *ast.DropDatabaseStmt:
		d.dropDatabase(d.databaseName(s.Name.O))
	}
}

// droppedDatabase is the database that a statement drops, or empty.
func droppedDatabase(statement ast.StmtNode) string {
	if s, ok := statement.(*ast.DropDatabaseStmt); ok {
		return s.Name.O
	}
	return ""
}

// createsIfMissing: the statement leaves a table alone that is there.
func createsIfMissing(statement ast.StmtNode) bool {
	s, ok := statement.(*ast.CreateTableStmt)
	return ok && s.IfNotExists
}

func (d *draft) setCharset(database string, options []*ast.DatabaseOption, charset string) {
	for _, option := range options {
		named := ""
		switch option.Tp { //nolint:exhaustive // the others do not matter for reading rows
		case ast.DatabaseOptionCharset:
			named = knownCharset(option.Value)
		case ast.DatabaseOptionCollate:
			named = charsetOfOption(option.Value)
		}
		if named != "" {
			charset = named
		}
	}
	if d.charsets == nil {
		d.charsets = make(map[string]string)
	}
	d.charsets[database] = charset
}

func (d *draft) dropDatabase(name string) {
	d.base.each(name, func(t *trackedTable) { d.put(t.name, draftTable{}) })
	slices.SortFunc(d.order, func(a, b tableName) int { return strings.Compare(a.name, b.name) })
	if d.charsets == nil {
		d.charsets = make(map[string]string)
	}
	d.charsets[name] = ""
}

func (d *draft) createTable(s *ast.CreateTableStmt) {
	n := d.name(s.Table)
	if s.TemporaryKeyword != ast.TemporaryNone || !d.concerns(n) {
		return
	}
	if _, exists := d.table(n); exists && s.IfNotExists {
		return // logged although it did nothing
	}
	if s.ReferTable != nil {
		from := d.name(s.ReferTable)
		t, known := d.table(from)
		if !known {
			t.doubt = "how " + from.String() + " looks was not known"
		} else if t.schema != nil {
			t.schema = t.schema.clone()
			t.schema.sortUnique() // MariaDB's may be as ALTER TABLE left them
		}
		d.put(n, t)
		return
	}
	if s.Select != nil {
		d.doubt(n, "its columns come from a SELECT")
		return
	}
	schema, err := createdSchema(s, d.charsetOf(n.database), d.flavor)
	if err != nil {
		d.doubt(n, "%s", err)
		return
	}
	d.put(n, draftTable{schema: schema})
}

// createdSchema is the schema that a CREATE TABLE with columns makes. charset is the database's default.
func createdSchema(s *ast.CreateTableStmt, charset string, flavor Flavor) (*Schema, error) {
	schema := &Schema{Charset: tableCharset(s.Options, charset)}
	if schema.Charset == "" {
		return nil, errors.New("the database's default character set is not known")
	}
	for _, def := range s.Cols {
		if err := schema.add(def, nil, flavor); err != nil {
			return nil, err
		}
	}
	if len(schema.Columns) == 0 {
		return nil, errors.New("no columns are named")
	}
	return schema, schema.createKeys(s, flavor)
}

// tableCharset is the default character set that a table's options name.
func tableCharset(options []*ast.TableOption, charset string) string {
	collated := ""
	named := ""
	for _, option := range options {
		switch option.Tp { //nolint:exhaustive // the others do not matter for reading rows
		case ast.TableOptionCharset:
			named = knownCharset(option.StrValue)
		case ast.TableOptionCollate:
			collated = charsetOfOption(option.StrValue)
		}
	}
	switch {
	case named != "":
		return named
	case collated != "":
		return collated
	}
	return charset
}

// add adds a column where position says; nil: at the end.
func (s *Schema) add(def *ast.ColumnDef, position *ast.ColumnPosition, flavor Flavor) error {
	if s.index(def.Name.Name.O) >= 0 {
		return fmt.Errorf("it has a column %s already", def.Name.Name.O)
	}
	c, err := columnOf(def, s.Charset, flavor)
	if err != nil {
		return err
	}
	if err := s.insert(c, position); err != nil {
		return err
	}
	for _, option := range def.Options {
		if option.Tp == ast.ColumnOptionPrimaryKey {
			s.PrimaryKey = []string{c.Name}
		}
	}
	return nil
}

func (s *Schema) insert(c SchemaColumn, position *ast.ColumnPosition) error {
	at := len(s.Columns)
	if position != nil {
		switch position.Tp {
		case ast.ColumnPositionFirst:
			if len(s.Columns) > 0 && s.Columns[0].Invisible && s.Columns[0].Name == generatedKey {
				return errors.New("a generated invisible key may stay the first column")
			}
			at = 0
		case ast.ColumnPositionAfter:
			i := s.index(position.RelativeColumn.Name.O)
			if i < 0 {
				return fmt.Errorf("it has no column %s", position.RelativeColumn.Name.O)
			}
			at = i + 1
		case ast.ColumnPositionNone:
		}
	}
	s.Columns = slices.Insert(s.Columns, at, c)
	return nil
}

// generatedKey is the primary key that MySQL makes for tables without one (sql_generate_invisible_primary_key).
const generatedKey = "my_row_id"

// index finds a column without regard to case, as the servers do.
func (s *Schema) index(name string) int {
	return slices.IndexFunc(s.Columns, func(c SchemaColumn) bool { return strings.EqualFold(c.Name, name) })
}

func (s *Schema) setPrimaryKey(parts []*ast.IndexPartSpecification) error {
	key := make([]string, 0, len(parts))
	for _, part := range parts {
		if part.Column == nil {
			return errors.New("its primary key has an expression")
		}
		i := s.index(part.Column.Name.O)
		if i < 0 {
			return fmt.Errorf("it has no column %s", part.Column.Name.O)
		}
		key = append(key, s.Columns[i].Name)
	}
	s.PrimaryKey = key
	return nil
}

// ParseCreateTable reads the schema that a CREATE TABLE makes, as `binlogd schema set` is given it. charset is the database's
// default character set. The error says what was not understood.
func ParseCreateTable(text string, flavor Flavor, charset string) (*Schema, error) {
	p := &ddlParser{flavor: flavor}
	statements, err := p.parse(query{text: []byte(text)})
	if err != nil {
		return nil, err
	}
	if len(statements) == 1 {
		if s, ok := statements[0].(*ast.CreateTableStmt); ok && s.ReferTable == nil && s.Select == nil {
			return createdSchema(s, charset, flavor)
		}
	}
	return nil, errors.New("it is not one CREATE TABLE with columns")
}
