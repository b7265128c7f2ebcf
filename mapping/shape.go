package mapping

import (
	"fmt"
	"slices"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// shape says how the columns of a table are shown where whole rows are.
type shape struct {
	// members are the columns' shown names as JSON strings, each with its colon; nil: the column is not shown.
	members [][]byte
	names   []string          // the shown names
	masks   []expression.Mask // nil: shown as it is
	scratch []byte            // what masks make
}

// newShape works the shape of a table out, where it is other than that of the default mapping; else it is nil.
func newShape(table *canal.Table, at string, columns Columns, masks []expression.Mask, exact bool) (*shape, error) {
	if columns.isZero() && masks == nil {
		return nil, nil //nolint:nilnil // the table's own shape
	}
	if exact {
		if err := checkNames(table, at, columns); err != nil {
			return nil, err
		}
	}
	s := &shape{members: make([][]byte, len(table.Columns)), names: make([]string, len(table.Columns)), masks: masks}
	if s.masks == nil {
		s.masks = make([]expression.Mask, len(table.Columns))
	}
	shown := map[string]string{}
	for i := range table.Columns {
		column := table.Columns[i].Name
		if len(columns.Include) > 0 && !slices.Contains(columns.Include, column) || slices.Contains(columns.Exclude, column) {
			continue
		}
		name := column
		if renamed, ok := columns.Rename[column]; ok {
			name = renamed
		}
		if other, taken := shown[name]; taken {
			return nil, &OptionError{
				Key:     at + ".columns.rename",
				Problem: fmt.Sprintf("table %s.%s: columns %q and %q would both be shown as %q: choose another name", table.Database, table.Name, other, column, name),
			}
		}
		shown[name] = column
		s.members[i], s.names[i] = append(appendString(nil, []byte(name)), ':'), name
	}
	return s, nil
}

// checkNames refuses columns that the table does not have.
func checkNames(table *canal.Table, at string, columns Columns) error {
	for _, list := range []struct {
		key   string
		names []string
	}{{"include", columns.Include}, {"exclude", columns.Exclude}, {"rename", sortedKeys(columns.Rename)}} {
		for _, name := range list.names {
			if columnIndex(table, name) < 0 {
				return unknownColumn(table, at+".columns."+list.key, name)
			}
		}
	}
	return nil
}

func columnIndex(table *canal.Table, name string) int {
	return slices.IndexFunc(table.Columns, func(c canal.Column) bool { return c.Name == name })
}

func unknownColumn(table *canal.Table, key, name string) error {
	return &OptionError{
		Key:     key,
		Problem: fmt.Sprintf("table %s.%s has no column %q: write one of %s", table.Database, table.Name, name, columnNames(table)),
	}
}

// newMasks makes the masks of a table by column; nil where there are none.
func newMasks(table *canal.Table, at string, masks []ColumnMask, key []byte, exact bool) ([]expression.Mask, error) {
	var byColumn []expression.Mask
	for _, m := range masks {
		i := columnIndex(table, m.Column)
		if i < 0 {
			if exact {
				return nil, unknownColumn(table, at+".mask."+m.Column, m.Column)
			}
			continue
		}
		if byColumn == nil {
			byColumn = make([]expression.Mask, len(table.Columns))
		}
		byColumn[i] = newMask(m, key)
	}
	return byColumn, nil
}

// appendMember appends a comma and the member of column i, unless it is not shown.
func (s *shape) appendMember(b []byte, i int, v canal.Value) []byte {
	if s.members[i] == nil {
		return b
	}
	b = append(b, ',')
	b = append(b, s.members[i]...)
	if mask := s.masks[i]; mask != nil && v.Kind != canal.KindNull {
		s.scratch, v = mask(s.scratch[:0], v)
	}
	return appendValue(b, &v)
}

// appendRow appends the columns that row carries, as a JSON object.
func (s *shape) appendRow(b []byte, row image) []byte {
	start := len(b)
	for i := range s.members {
		if v := row.at(i); v.Kind != canal.KindAbsent {
			b = s.appendMember(b, i, *v)
		}
	}
	return closeObject(b, start)
}

// appendOld appends the former values of the columns that differ, as a JSON object.
func (s *shape) appendOld(b []byte, before, after []canal.Value) []byte {
	start := len(b)
	for i := range s.members {
		v := &before[i]
		if v.Kind != canal.KindAbsent && after[i].Kind != canal.KindAbsent && !v.Equal(after[i]) {
			b = s.appendMember(b, i, *v)
		}
	}
	return closeObject(b, start)
}
