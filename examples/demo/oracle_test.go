package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestCountChangesIsNotFooledByValues(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		"# at 158",
		"SET @@SESSION.GTID_NEXT= '3E11FA47-71CA-11E1-9E33-C80AA9429562:23'/*!*/;",
		"### INSERT INTO `shop`.`orders`",
		"### SET",
		"###   @1='### DELETE FROM `shop`.`orders`' /* VARSTRING(400) meta=400 nullable=0 is_null=0 */",
		"### INSERT INTO `shop`.`orders`",
		"### SET",
		"###   @1=2",
		"### UPDATE `other`.`orders`",
		"SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ /*!*/;",
		"SET @@SESSION.GTID_NEXT= '3e11fa47-71ca-11e1-9e33-c80aa9429562:24'/*!*/;",
		"### DELETE FROM `shop`.`orders`",
	}, "\n")
	changes, err := countChanges(strings.NewReader(text), "shop")
	require.NoError(t, err)
	require.Equal(t, map[change]int{
		{"3e11fa47-71ca-11e1-9e33-c80aa9429562:23", "orders", created}: 2,
		{"3e11fa47-71ca-11e1-9e33-c80aa9429562:24", "orders", deleted}: 1,
	}, changes)

	_, err = countChanges(strings.NewReader("### DELETE FROM `shop`.`orders`\n"), "shop")
	require.ErrorContains(t, err, "without a GTID")
}

// The shop counts what it does; mysqlbinlog must come to the same numbers.
func TestMysqlbinlogCountsWhatTheShopDid(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	mysql := testenv.MySQL(t)
	s, err := openServer(ctx, mysql.RootUser+":"+mysql.RootPassword+"@"+mysql.Addr)
	require.NoError(t, err)
	defer s.DB.Close()
	php, err := fetch.PHP(ctx)
	require.NoError(t, err)
	shop, err := openShop(ctx, filepath.Join("..", "php-shop"), php, s)
	require.NoError(t, err)
	began, err := s.position(ctx)
	require.NoError(t, err)

	require.NoError(t, shop.start(300, 3, 0))
	defer shop.stop()
	did, err := shop.report(ctx)
	require.NoError(t, err)
	for _, name := range []string{"repeated_orders", "repeated_callbacks", "refunded", "forgotten"} {
		require.NotZero(t, did[name], "the load is too small to have %s", name)
	}

	software, err := fetch.MySQL(ctx)
	require.NoError(t, err)
	mysqlbinlog, err := software.Command("usr/bin/mysqlbinlog")
	require.NoError(t, err)
	committed, err := committedChanges(ctx, mysqlbinlog, s, shop.database, began)
	require.NoError(t, err)
	number := func(name string) int { return int(did[name].(float64)) }
	require.Equal(t, number("placed"), total(committed, "orders", created))
	require.Equal(t, number("forgotten"), total(committed, "orders", deleted))
	require.Equal(t, number("paid")+number("cancelled")+number("shipped"), total(committed, "orders", updated))
	require.Equal(t, number("paid"), total(committed, "payments", created))
	require.Equal(t, number("refunded"), total(committed, "payments", updated))
	require.Equal(t, number("paid")+number("refunded"), total(committed, "points", created))

	rows, err := currentRows(ctx, s.DB, shop.database)
	require.NoError(t, err)
	require.Len(t, rows["orders"], number("placed")-number("forgotten"))
	figures, err := figures(ctx, s.DB, shop.database, rows)
	require.NoError(t, err)
	for _, f := range figures {
		require.Equal(t, f.Database, f.Events, f.Name)
		require.NotEmpty(t, f.Database)
	}
	require.NoError(t, shop.drop(ctx))
}
