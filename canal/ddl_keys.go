package canal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// errUnknownKey: without a primary key, rows are told apart by a key that is not known.
var errUnknownKey = errors.New("it has no primary key, and which of its unique keys stands in for it is not known")

// changesKeys reports whether the unique keys of a table, and nothing else of its schema, may be others after an ALTER TABLE that
// does not change its columns.
func changesKeys(specs []*ast.AlterTableSpec) bool {
	return slices.ContainsFunc(specs, func(spec *ast.AlterTableSpec) bool {
		switch spec.Tp { //nolint:exhaustive // the others leave keys as they are
		case ast.AlterTableAddConstraint:
			return isUnique(spec.Constraint)
		case ast.AlterTableDropIndex, ast.AlterTableDropCheck, ast.AlterTableRenameIndex:
			return true
		}
		return false
	})
}

func isUnique(c *ast.Constraint) bool {
	return c.Tp == ast.ConstraintUniq || c.Tp == ast.ConstraintUniqKey || c.Tp == ast.ConstraintUniqIndex
}

// hasUnique reports whether a column is declared UNIQUE.
func hasUnique(def *ast.ColumnDef) bool {
	return slices.ContainsFunc(def.Options, func(o *ast.ColumnOption) bool { return o.Tp == ast.ColumnOptionUniqKey })
}

// alterKeys is alter for a statement that changes keys alone. Rows of a table with a primary key are read as before then, so it puts
// no table in doubt whose columns were not known for sure: what was read of it later has the keys as well.
func (d *draft) alterKeys(n tableName, f func(*Schema) error) {
	if !d.concerns(n) {
		return
	}
	found := d.base.find(n)
	if t, known := d.table(n); known && t.schema == nil && found != nil && found.schema != nil && len(found.schema.PrimaryKey) == 0 {
		d.put(n, t) // read later than this, perhaps with another key in the primary one's place
		return
	} else if !known || t.schema == nil {
		d.keyed = append(d.keyed, n)
		return
	}
	d.alter(n, func(schema *Schema) error {
		if err := f(schema); err != nil {
			return err
		}
		return schema.settleKeys(d.flavor)
	})
}

func (d *draft) createIndex(s *ast.CreateIndexStmt) {
	if s.KeyType != ast.IndexKeyTypeUnique {
		return
	}
	d.alterKeys(d.name(s.Table), func(schema *Schema) error {
		i, sure := schema.named(s.IndexName)
		if s.IfNotExists && (i >= 0 || !sure) {
			return nil
		}
		schema.doubtHashes()
		if i >= 0 && schema.UniqueKnown { // OR REPLACE
			schema.Unique = slices.Delete(schema.Unique, i, i+1)
		}
		schema.addUnique(s.IndexName, s.IndexPartSpecifications, s.IndexOption, d.flavor)
		schema.sortUnique()
		return nil
	})
}

func (d *draft) dropIndex(s *ast.DropIndexStmt) {
	if strings.EqualFold(s.IndexName, "PRIMARY") {
		d.alter(d.name(s.Table), func(schema *Schema) error {
			schema.PrimaryKey = nil
			return schema.settleKeys(d.flavor)
		})
		return
	}
	d.alterKeys(d.name(s.Table), func(schema *Schema) error {
		schema.doubtHashes()
		schema.dropUnique(s.IndexName)
		schema.sortUnique()
		return nil
	})
}

// createKeys makes the keys of a CREATE TABLE, in the order in which it names them.
func (s *Schema) createKeys(create *ast.CreateTableStmt, flavor Flavor) error {
	s.UniqueKnown = true
	columns, constraints := create.Cols, create.Constraints
	taken := make(map[string]bool)
	name := func(given string, parts []*ast.IndexPartSpecification) string {
		if given == "" {
			given = madeName(parts, taken)
		}
		taken[strings.ToLower(given)] = true
		return given
	}
	for _, isConstraint := range elements(create) {
		if !isConstraint {
			def := columns[0]
			columns = columns[1:]
			if hasUnique(def) {
				parts := []*ast.IndexPartSpecification{{Column: def.Name}}
				s.addUnique(name("", parts), parts, nil, flavor)
			}
			continue
		}
		c := constraints[0]
		constraints = constraints[1:]
		switch {
		case c.Tp == ast.ConstraintPrimaryKey:
			if err := s.setPrimaryKey(c.Keys); err != nil {
				return err
			}
		case isUnique(c):
			s.addUnique(name(c.Name, c.Keys), c.Keys, c.Option, flavor)
		case c.Tp == ast.ConstraintKey, c.Tp == ast.ConstraintIndex, c.Tp == ast.ConstraintFulltext:
			name(c.Name, c.Keys)
		}
	}
	s.sortUnique()
	return s.settleKeys(flavor)
}

// madeName is the name that the servers give to a key without one: that of its first column, with a number where it is taken.
func madeName(parts []*ast.IndexPartSpecification, taken map[string]bool) string {
	first := functionalIndex
	if len(parts) > 0 && parts[0].Column != nil {
		first = parts[0].Column.Name.O
	}
	name := first
	for n := 2; taken[strings.ToLower(name)] || strings.EqualFold(name, "PRIMARY"); n++ {
		name = fmt.Sprintf("%s_%d", first, n)
	}
	return name
}

// elements tells for each element in the parentheses of a CREATE TABLE, in their order, whether it is a constraint; else it is a column.
// The parser keeps the two apart, while the servers number keys as they come.
func elements(create *ast.CreateTableStmt) []bool {
	inOrder := make([]bool, 0, len(create.Cols)+len(create.Constraints))
	depth, first, constraints := 0, false, 0
	for _, w := range allWords(create.OriginalText(), false) {
		switch {
		case w.text == "(" && !w.quotes:
			depth++
			first = depth == 1
			continue
		case w.text == ")" && !w.quotes:
			depth--
		case w.text == "," && !w.quotes && depth == 1:
			first = true
			continue
		case first && depth == 1:
			isConstraint := slices.ContainsFunc([]string{"PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "FOREIGN", "CHECK"}, w.is)
			if isConstraint {
				constraints++
			}
			inOrder = append(inOrder, isConstraint)
		}
		first = false
		if depth == 0 && len(inOrder) > 0 {
			break
		}
	}
	if constraints == len(create.Constraints) && len(inOrder)-constraints == len(create.Cols) {
		return inOrder
	}
	inOrder = make([]bool, len(create.Cols)+len(create.Constraints)) // as nearly everybody writes them
	for i := len(create.Cols); i < len(inOrder); i++ {
		inOrder[i] = true
	}
	return inOrder
}

// addUnique adds a unique key behind the others. Without a name it gets one that the server may have chosen.
func (s *Schema) addUnique(name string, parts []*ast.IndexPartSpecification, option *ast.IndexOption, flavor Flavor) {
	if !s.UniqueKnown || len(parts) == 0 {
		return
	}
	key := UniqueKey{Name: name}
	if name == "" {
		taken := make(map[string]bool)
		for i := range s.Unique {
			taken[strings.ToLower(s.Unique[i].Name)] = true
		}
		key.Name, key.Made = madeName(parts, taken), true
	}
	for _, part := range parts {
		if part.Column == nil {
			key.Parts = append(key.Parts, KeyPart{})
			continue
		}
		i := s.index(part.Column.Name.O)
		if i < 0 {
			s.forgetUnique() // as the parser gives a key over an expression, or a column of the server's own
			return
		}
		key.Parts = append(key.Parts, KeyPart{Column: s.Columns[i].Name, Prefix: max(part.Length, 0)})
	}
	key.Hash = flavor == MariaDB && option != nil && option.Tp == ast.IndexTypeHash
	s.Unique = append(s.Unique, key)
	s.settleUnique(flavor)
}

// settleKeys brings the schema in line with its keys after a statement, and fails where rows would be told apart by a key that is not
// known.
func (s *Schema) settleKeys(flavor Flavor) error {
	for _, name := range s.PrimaryKey {
		if i := s.index(name); i >= 0 {
			s.Columns[i].NotNull = true
		}
	}
	s.settleUnique(flavor)
	if len(s.PrimaryKey) == 0 && !s.UniqueKnown {
		return errUnknownKey
	}
	return nil
}

// keys drops and makes the keys.
func (a *alteration) keys(specs []*ast.AlterTableSpec, before *Schema) error {
	s := a.schema
	kept := len(s.Unique)
	for _, spec := range specs {
		switch spec.Tp { //nolint:exhaustive // the others drop no key
		case ast.AlterTableDropPrimaryKey:
			s.PrimaryKey = nil
		case ast.AlterTableDropIndex:
			a.drop(spec.Name)
		case ast.AlterTableDropCheck: // DROP CONSTRAINT
			a.drop(spec.Constraint.Name)
		}
	}
	for _, spec := range specs {
		if spec.Tp == ast.AlterTableRenameIndex {
			s.renameUnique(spec.FromKey.O, spec.ToKey.O)
		}
	}
	dropped := kept - len(s.Unique)
	kept = len(s.Unique)
	for _, spec := range specs {
		if err := a.makeKeys(spec); err != nil {
			return err
		}
	}
	added := len(s.Unique) - kept
	s.doubtHashes()
	if a.flavor == MySQL && a.makesAgain(specs) && len(s.Unique) > 1 {
		s.forgetUnique()
	}
	s.settleUnique(a.flavor)
	// MariaDB leaves the order of keys as it is where nothing makes it look at them.
	if a.flavor == MySQL || added > 0 || dropped > 0 || s.someBecameNullable(before, a.renamed) {
		s.sortUnique()
	}
	return s.settleKeys(a.flavor)
}

func (a *alteration) drop(name string) {
	if strings.EqualFold(name, "PRIMARY") {
		a.schema.PrimaryKey = nil
		return
	}
	a.schema.dropUnique(name)
}

// makeKeys makes the keys of one clause.
func (a *alteration) makeKeys(spec *ast.AlterTableSpec) error {
	s := a.schema
	switch spec.Tp { //nolint:exhaustive // the others make no key
	case ast.AlterTableAddConstraint:
		c := spec.Constraint
		switch {
		case c.Tp == ast.ConstraintPrimaryKey:
			return s.setPrimaryKey(c.Keys)
		case isUnique(c):
			if i, sure := s.named(c.Name); c.IfNotExists && (i >= 0 || !sure) {
				return nil
			}
			s.addUnique(c.Name, c.Keys, c.Option, a.flavor)
		}
	case ast.AlterTableAddColumns, ast.AlterTableModifyColumn, ast.AlterTableChangeColumn:
		for _, def := range spec.NewColumns {
			for _, option := range def.Options {
				switch option.Tp { //nolint:exhaustive // the others make no key
				case ast.ColumnOptionPrimaryKey:
					s.PrimaryKey = []string{def.Name.Name.O}
				case ast.ColumnOptionUniqKey:
					s.addUnique("", []*ast.IndexPartSpecification{{Column: def.Name}}, nil, a.flavor)
				}
			}
		}
		for _, c := range spec.NewConstraints {
			switch {
			case c.Tp == ast.ConstraintPrimaryKey:
				if err := s.setPrimaryKey(c.Keys); err != nil {
					return err
				}
			case isUnique(c):
				if slices.ContainsFunc(spec.NewColumns, hasUnique) { // which comes first cannot be told
					s.forgetUnique()
				}
				s.addUnique(c.Name, c.Keys, c.Option, a.flavor)
			}
		}
	}
	return nil
}

// makesAgain reports whether a key is dropped and made again under its name. MySQL does nothing at all if it is the same one, and else
// moves it to the end.
func (a *alteration) makesAgain(specs []*ast.AlterTableSpec) bool {
	return slices.ContainsFunc(specs, func(drop *ast.AlterTableSpec) bool {
		return drop.Tp == ast.AlterTableDropIndex && slices.ContainsFunc(a.schema.Unique, func(key UniqueKey) bool {
			return strings.EqualFold(key.Name, drop.Name)
		})
	})
}

// someBecameNullable reports whether a column may be NULL now that could not be before.
func (s *Schema) someBecameNullable(before *Schema, renamed map[string]string) bool {
	for i := range before.Columns {
		c := &before.Columns[i]
		name := c.Name
		if now, ok := renamed[strings.ToLower(name)]; ok {
			name = now
		}
		if j := s.index(name); c.NotNull && j >= 0 && !s.Columns[j].NotNull {
			return true
		}
	}
	return false
}
