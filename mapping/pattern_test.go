package mapping

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPatternMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string // "database/table"
	}{
		{"shop.orders", []string{"shop/orders"}, []string{"shop/Orders", "Shop/orders", "shop/orders2", "shop/order", "shop/", "/orders"}},
		{"shop.*", []string{"shop/orders", "shop/a.b", "shop/"}, []string{"shop2/orders", "ashop/orders"}},
		{"*.orders", []string{"a/orders", "/orders"}, []string{"a/orders_old", "mysql/orders", "sys/orders"}},
		{"shop_?.t", []string{"shop_1/t", "shop_ü/t", "shop_世/t"}, []string{"shop_/t", "shop_12/t"}},
		{"a*b*c.t", []string{"abc/t", "aXbYc/t", "abbcc/t"}, []string{"ab/t", "acb/t", "abcd/t"}},
		{"{shop,crm}.{orders,users*}", []string{"shop/orders", "crm/users_old", "crm/users"}, []string{"shop/ordersx", "cr/orders", "/orders"}},
		{"shop.orders{,_archive}", []string{"shop/orders", "shop/orders_archive"}, []string{"shop/orders_", "shop/orders,"}},
		{
			"shop_*.orders_{0000..1023}",
			[]string{"shop_1/orders_0000", "shop_/orders_1023", "shop_a/orders_0512"},
			[]string{"shop_1/orders_1024", "shop_1/orders_512", "shop_1/orders_00512", "shop_1/orders_", "shop_1/orders_051x", "shop_1/orders_+512"},
		},
		{"s.t{8..12}", []string{"s/t8", "s/t9", "s/t10", "s/t12"}, []string{"s/t7", "s/t08", "s/t13", "s/t", "s/t012"}},
		{"s.t{8..12}0", []string{"s/t80", "s/t100"}, []string{"s/t8", "s/t010", "s/t1000"}},
		{"s.t{0..3,07..09,x}", []string{"s/t0", "s/t3", "s/t07", "s/tx"}, []string{"s/t7", "s/t00", "s/t4"}},
		{"s.{00..99}{00..99}", []string{"s/0000", "s/9942"}, []string{"s/000", "s/00000"}},
		{`a\.b.c\*`, []string{"a.b/c*"}, []string{"a/b", "a.b/cx", `a\.b/c\*`}},
		{`s.\{a\,b\}\[\]\\\?`, []string{`s/{a,b}[]\?`}, []string{"s/a", `s/{a,b}[]\x`}},
		{`s.{a\,b,c\}}`, []string{"s/a,b", "s/c}"}, []string{"s/a", "s/b"}},
		{"s.a,b", []string{"s/a,b"}, []string{"s/a"}},
		{"mysql.user", []string{"mysql/user"}, nil},
		{"{mysql,shop}.*", []string{"mysql/user", "shop/t"}, nil},
		{"*.*", []string{"shop/t", "mysql2/t"}, []string{"mysql/user", "sys/x", "information_schema/x", "performance_schema/x"}},
		{"{my*,x}.*", []string{"my/t", "x/t"}, []string{"mysql/user"}},
	} {
		p, err := parsePattern(c.pattern)
		require.NoError(t, err, c.pattern)
		for want, names := range map[bool][]string{true: c.yes, false: c.no} {
			for _, name := range names {
				database, table, _ := strings.Cut(name, "/")
				require.Equal(t, want, p.matches(database, table), "%s on %s", c.pattern, name)
			}
		}
	}
}

func TestPatternRefuses(t *testing.T) {
	for pattern, problem := range map[string]string{
		"orders":                      `"orders" has no dot: write database.table, or orders.* for all tables of a database`,
		"a.b.c":                       `more than one dot: write \.`,
		".t":                          "names nothing before or after its dot",
		"s.":                          "names nothing before or after its dot",
		".":                           "names nothing before or after its dot",
		"s.{a,b":                      `"{" without "}"`,
		"s.a}":                        `"}" without "{"`,
		"a}.t":                        `"}" without "{"`,
		"s.{}":                        "{} is an empty set: write {a,b}",
		"s.{a,{b,c}}":                 "sets inside sets",
		"s.[ab]":                      "write a set such as {a,b,c}",
		"s.ab]":                       "write a set such as {a,b,c}",
		`s.t\`:                        `it ends with "\": write \\`,
		"s.{1..x}":                    "{1..x} is not a range of numbers: write {0000..1023}",
		"s.{..}":                      "is not a range of numbers",
		"s.{a..c}":                    "is not a range of numbers",
		"s.{-1..1}":                   "is not a range of numbers",
		"s.{1..2..3}":                 "is not a range of numbers",
		"s.{10..2}":                   "{10..2} is empty: write {2..10}",
		"s.{0..0099}":                 "ends of different width: write {0000..0099}, or {0..99}",
		"s.{01..100}":                 "ends of different width: write {001..100}, or {1..100}",
		"s.{a.b,c}":                   "a dot inside a set",
		"s.{0..1":                     "a dot inside a set",
		"s.{0..99999999999999999999}": "is not a range of numbers",
	} {
		_, err := parsePattern(pattern)
		require.ErrorContains(t, err, problem, pattern)
	}
}

// TestPatternTimeIsBounded: a pattern that keeps backtracking matchers busy for ever.
func TestPatternTimeIsBounded(t *testing.T) {
	p, err := parsePattern("s." + strings.Repeat("*a", 200) + strings.Repeat("{0..999,*}", 50) + "b")
	require.NoError(t, err)
	begin := time.Now()
	require.False(t, p.matches("s", strings.Repeat("a1", 128)))
	require.Less(t, time.Since(begin), 5*time.Second)
}

// FuzzPattern: no panic on any pattern; and a quoted name matches itself and nothing longer.
func FuzzPattern(f *testing.F) {
	f.Add("shop_*.orders_{0000..1023}", "shop_1", "orders_0001")
	f.Add(`{a\,b,c}.x?\*`, "a,b", "xy*")
	f.Add("s.{8..12,}", "s", "8")
	f.Fuzz(func(t *testing.T, pattern, database, table string) {
		if len(pattern)+len(database)+len(table) > 1000 {
			return
		}
		if p, err := parsePattern(pattern); err == nil {
			p.matches(database, table)
		}
		if database == "" || table == "" {
			return
		}
		quoted, err := parsePattern(QuotePattern(database) + "." + QuotePattern(table))
		require.NoError(t, err)
		require.True(t, quoted.matches(database, table))
		require.False(t, quoted.matches(database, table+"x"))
		require.False(t, quoted.matches("x"+database, table))
	})
}
