package canal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

func (d *draft) alterTable(s *ast.AlterTableStmt) {
	n := d.name(s.Table)
	if changesColumns(s.Specs) {
		d.alter(n, func(schema *Schema) error { return schema.alter(s.Specs, d.flavor) })
	} else if changesKeys(s.Specs) {
		d.alterKeys(n, func(schema *Schema) error { return schema.alter(s.Specs, d.flavor) })
	}
	for _, spec := range s.Specs {
		if spec.Tp == ast.AlterTableRenameTable {
			to := d.name(spec.NewTable)
			if spec.NewTable.Schema.O == "" {
				to.database = d.database
			}
			d.rename(n, to)
		}
	}
}

// changesColumns reports whether rows are read in another way after an ALTER TABLE. Other indexes, partitions, comments, engines and
// defaults do not matter.
func changesColumns(specs []*ast.AlterTableSpec) bool {
	return slices.ContainsFunc(specs, func(spec *ast.AlterTableSpec) bool {
		switch spec.Tp { //nolint:exhaustive // the others leave columns and character sets as they are
		case ast.AlterTableAddColumns, ast.AlterTableDropColumn, ast.AlterTableModifyColumn, ast.AlterTableChangeColumn,
			ast.AlterTableRenameColumn, ast.AlterTableDropPrimaryKey:
			return true
		case ast.AlterTableAddConstraint:
			return spec.Constraint.Tp == ast.ConstraintPrimaryKey
		case ast.AlterTableDropIndex:
			return strings.EqualFold(spec.Name, "PRIMARY")
		case ast.AlterTableDropCheck:
			return strings.EqualFold(spec.Constraint.Name, "PRIMARY")
		case ast.AlterTableOption:
			return tableCharset(spec.Options, "") != "" || convertsCharset(spec.Options)
		}
		return false
	})
}

func convertsCharset(options []*ast.TableOption) bool {
	return slices.ContainsFunc(options, func(o *ast.TableOption) bool {
		return o.Tp == ast.TableOptionCharset && o.UintValue == ast.TableOptionCharsetWithConvertTo
	})
}

// alter carries out an ALTER TABLE in the order of the servers' mysql_prepare_alter_table: columns are dropped and changed in
// place by their old names, then those that are new or that move are put where they belong, by the new names.
func (s *Schema) alter(specs []*ast.AlterTableSpec, flavor Flavor) error {
	converts, before := false, s.clone()
	for _, spec := range specs {
		if spec.Tp == ast.AlterTableOption {
			if convertsCharset(spec.Options) && tableCharset(spec.Options, "") == "" {
				return fmt.Errorf("its conversion names no character set")
			}
			s.Charset = tableCharset(spec.Options, s.Charset)
			converts = converts || convertsCharset(spec.Options)
		}
	}
	a := alteration{schema: s, flavor: flavor, renamed: make(map[string]string), taken: make(map[*ast.AlterTableSpec]bool)}
	if err := a.inPlace(specs, converts); err != nil {
		return err
	}
	for _, spec := range specs {
		if err := a.place(spec); err != nil {
			return err
		}
	}
	return a.keys(specs, before)
}

// alteration is one ALTER TABLE under way.
type alteration struct {
	schema  *Schema
	flavor  Flavor
	renamed map[string]string // new names by old ones, in lower case
	taken   map[*ast.AlterTableSpec]bool
}

// inPlace drops and changes the columns that there are.
func (a *alteration) inPlace(specs []*ast.AlterTableSpec, converts bool) error {
	var columns []SchemaColumn
	var dropped []string
	for _, c := range a.schema.Columns {
		spec, drops := a.specOf(specs, c.Name)
		switch {
		case drops:
			dropped = append(dropped, c.Name)
			continue
		case spec == nil:
			if converts {
				if err := c.convert(a.schema.Charset); err != nil {
					return err
				}
			}
		case spec.Tp == ast.AlterTableRenameColumn:
			a.renamed[strings.ToLower(c.Name)] = spec.NewColumnName.Name.O
			c.Name = spec.NewColumnName.Name.O
		default:
			changed, err := columnOf(spec.NewColumns[0], a.schema.Charset, a.flavor)
			if err != nil {
				return err
			}
			a.renamed[strings.ToLower(c.Name)] = changed.Name
			c = changed
		}
		columns = append(columns, c)
	}
	a.schema.Columns = columns
	dropped = slices.DeleteFunc(dropped, func(name string) bool { return addsColumn(specs, name) }) // keys are of names: they stay
	a.schema.dropColumns(dropped)
	a.schema.renameColumns(a.renamed)
	for i := range columns {
		if j := a.schema.index(columns[i].Name); j != i {
			return fmt.Errorf("it has column %s twice", columns[i].Name)
		}
	}
	return a.missing(specs)
}

// addsColumn reports whether an ALTER TABLE adds a column of a name.
func addsColumn(specs []*ast.AlterTableSpec, name string) bool {
	return slices.ContainsFunc(specs, func(spec *ast.AlterTableSpec) bool {
		return spec.Tp == ast.AlterTableAddColumns && slices.ContainsFunc(spec.NewColumns, func(def *ast.ColumnDef) bool {
			return strings.EqualFold(def.Name.Name.O, name)
		})
	})
}

// specOf finds what is done to a column that there is.
func (a *alteration) specOf(specs []*ast.AlterTableSpec, name string) (found *ast.AlterTableSpec, drops bool) {
	for _, spec := range specs {
		switch spec.Tp { //nolint:exhaustive // the others change no column
		case ast.AlterTableDropColumn:
			if strings.EqualFold(spec.OldColumnName.Name.O, name) {
				a.taken[spec] = true
				return nil, true
			}
		case ast.AlterTableRenameColumn, ast.AlterTableChangeColumn:
			if strings.EqualFold(spec.OldColumnName.Name.O, name) {
				a.taken[spec] = true
				found = spec
			}
		case ast.AlterTableModifyColumn:
			if strings.EqualFold(spec.NewColumns[0].Name.Name.O, name) {
				a.taken[spec] = true
				found = spec
			}
		}
	}
	return found, false
}

// missing refuses what was to be done to a column that there is not.
func (a *alteration) missing(specs []*ast.AlterTableSpec) error {
	for _, spec := range specs {
		switch spec.Tp { //nolint:exhaustive // the others change no column
		case ast.AlterTableDropColumn, ast.AlterTableRenameColumn, ast.AlterTableChangeColumn:
			if !a.taken[spec] && !spec.IfExists {
				return fmt.Errorf("it has no column %s", spec.OldColumnName.Name.O)
			}
		case ast.AlterTableModifyColumn:
			if !a.taken[spec] && !spec.IfExists {
				return fmt.Errorf("it has no column %s", spec.NewColumns[0].Name.Name.O)
			}
		}
	}
	return nil
}

// place adds new columns and puts changed ones elsewhere.
func (a *alteration) place(spec *ast.AlterTableSpec) error {
	switch spec.Tp { //nolint:exhaustive // the others place no column
	case ast.AlterTableAddColumns:
		position := spec.Position
		for _, def := range spec.NewColumns {
			if spec.IfNotExists && a.schema.index(def.Name.Name.O) >= 0 {
				continue
			}
			if err := a.schema.add(def, position, a.flavor); err != nil {
				return err
			}
		}
	case ast.AlterTableModifyColumn, ast.AlterTableChangeColumn:
		if !a.taken[spec] || spec.Position == nil || spec.Position.Tp == ast.ColumnPositionNone {
			return nil
		}
		i := a.schema.index(spec.NewColumns[0].Name.Name.O)
		c := a.schema.Columns[i]
		a.schema.Columns = slices.Delete(a.schema.Columns, i, i+1)
		return a.schema.insert(c, spec.Position)
	}
	return nil
}
