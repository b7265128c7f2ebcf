package canal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColumnsKnowTheKindOfTheirValues: what is said of a column before there is a row, holds for all of its values.
func TestColumnsKnowTheKindOfTheirValues(t *testing.T) {
	for _, c := range []struct {
		columnType, charset string
		want                Kind
	}{
		{"tinyint(1)", "", KindInt},
		{"bigint unsigned", "", KindUint},
		{"year", "", KindUint},
		{"bit(1)", "", KindUint},
		{"float", "", KindFloat},
		{"double", "", KindDouble},
		{"decimal(10,2)", "", KindDecimal},
		{"date", "", KindDate},
		{"datetime(3)", "", KindDateTime},
		{"timestamp", "", KindInstant},
		{"time(6)", "", KindTime},
		{"char(3)", "ascii", KindText},
		{"varchar(20)", "utf8mb4", KindText},
		{"varchar(20)", "latin1", KindText},
		{"longtext", "gbk", KindText},
		{"binary(16)", "", KindBinary},
		{"varbinary(16)", "", KindBinary},
		{"mediumblob", "", KindBinary},
		{"uuid", "", KindText},
		{"enum('a','b')", "utf8mb4", KindEnum},
		{"set('a','b')", "utf8mb4", KindSet},
		{"json", "", KindJSON},
		{"point", "", KindGeometry},
		{"vector(3)", "", KindVector},
	} {
		column, err := NewColumn("x", c.columnType, c.charset)
		require.NoError(t, err, c.columnType)
		kind, known := column.ValueKind()
		require.True(t, known, c.columnType)
		require.Equal(t, c.want, kind, c.columnType)
	}
	for _, unknown := range []string{"mystery", "enum('a", "decimal(x)"} {
		_, err := NewColumn("x", unknown, "")
		require.Error(t, err, unknown)
	}
	_, known := (&Column{Name: "x"}).ValueKind()
	require.False(t, known)
}
