package mapping

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

func TestValidateNamesTheKeyAndTheRemedy(t *testing.T) {
	for _, c := range []struct {
		opts Options
		want string
	}{
		{Options{Tables: []TableRule{{Table: "s.t"}}}, "name: missing: write a name for this pipeline, such as name: shop"},
		{Options{Name: "shop"}, "events: no tables: write at least one entry, such as - table: shop.*"},
		{Options{Name: "shop", Tables: []TableRule{{Table: "s.t"}, {}}}, "events[1].table: missing: write database.table; * stands for any"},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t"}, {Table: "s.u"}, {Table: "orders"}}},
			`events[2].table: "orders" has no dot: write database.table, or orders.* for all tables of a database`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t"}, {Table: "s.t"}}},
			`events[1].table: "s.t" stands in events[0] already, which decides: remove one of them`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Topic: "a b"}}},
			`events[0].topic: topic "a b" has the character ' ': only letters of ASCII, digits, ".", "_" and "-" are allowed`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Topic: "{schema}.x"}}},
			`events[0].topic: "{schema}.x" has a brace that belongs to neither {database} nor {table} nor {shard}, the only placeholders`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Topic: ".."}}},
			`events[0].topic: topic ".." is reserved: write a name`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Topic: strings.Repeat("x", 250)}}},
			`has 250 characters: at most 249 are allowed`,
		},
		{Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Key: []string{"id", ""}}}}, "events[0].key[1]: empty: write the name of a column"},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t", Key: []string{"id", "id"}}}},
			`events[0].key[1]: column "id" stands in the key twice: remove one of them`,
		},
		{
			Options{Name: "shop", Tables: []TableRule{{Table: "s.t"}}, Exclude: []string{"s.u", "log"}},
			`exclude[1]: "log" has no dot`,
		},
	} {
		_, err := New(c.opts)
		require.ErrorContains(t, err, c.want)
		var mistake *OptionError
		require.ErrorAs(t, err, &mistake)
		require.True(t, strings.HasPrefix(c.want, mistake.Key+": ") || strings.Contains(mistake.Problem, c.want))
	}
}

func TestValidateGivesAllMistakes(t *testing.T) {
	err := Options{Tables: []TableRule{{Table: "s"}, {Table: "s.t", Topic: "ä"}}, Exclude: []string{"x"}}.Validate()
	for _, key := range []string{"name: ", "events[0].table: ", "events[1].topic: ", "exclude[0]: "} {
		require.ErrorContains(t, err, key)
	}
}

func TestFirstMatchDecides(t *testing.T) {
	m, err := New(Options{
		Name: "shop",
		Tables: []TableRule{
			{Table: "shop.orders", Topic: "first"},
			{Table: "shop.*", Topic: "second"},
			{Table: "*.orders"},
		},
		Exclude: []string{"shop.tmp_*"},
	})
	require.NoError(t, err)
	for range 2 { // the second time from memory
		for name, want := range map[string]int{
			"shop.orders": 0, "shop.users": 1, "crm.orders": 2, "crm.users": notCaptured, "shop.tmp_1": notCaptured, "mysql.orders": notCaptured,
		} {
			database, table, _ := strings.Cut(name, ".")
			got, ok := m.Match(database, table)
			require.Equal(t, want, got, name)
			require.Equal(t, want != notCaptured, ok, name)
			require.Equal(t, ok, m.Captured(database, table), name)
		}
	}
}

func TestTopic(t *testing.T) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{
		{Table: "shop_{00..15}.orders", Topic: "orders.{database}"},
		{Table: "shop.orders", Topic: "o"},
		{Table: "*.*"},
	}})
	require.NoError(t, err)
	for name, want := range map[string]string{
		"shop_07/orders": "orders.shop_07", "shop/orders": "o", "crm/users": "crm.users", "{table}/x": "",
	} {
		database, table, _ := strings.Cut(name, "/")
		got, err := m.Topic(database, table)
		if want == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	_, err = m.Topic("shop", "a$b")
	var mistake *OptionError
	require.ErrorAs(t, err, &mistake)
	require.Equal(t, "events[2].topic", mistake.Key)
	require.ErrorContains(t, err, `table shop.a$b: topic "shop.a$b" has the character '$'`)
	require.ErrorContains(t, err, "write an entry for this table before events[2]")

	_, err = m.Topic("mysql", "user")
	require.ErrorContains(t, err, "not captured")
}

func TestCheck(t *testing.T) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.users"}, {Table: "shop.orders", Key: []string{"customer", "Id"}}}})
	require.NoError(t, err)
	require.NoError(t, m.Check(table("shop", "users", nil, "name")))
	require.NoError(t, m.Check(table("shop", "orders", []int{0}, "Id", "customer")))

	err = m.Check(table("shop", "orders", []int{0}, "id", "customer"))
	var mistake *OptionError
	require.ErrorAs(t, err, &mistake)
	require.Equal(t, "events[1].key", mistake.Key)
	require.Equal(t, `table shop.orders has no column "Id": write one of id, customer`, mistake.Problem)
}

// TestDecisionsAreBounded: tables that come and go do not fill the memory.
func TestDecisionsAreBounded(t *testing.T) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "shop.orders"}}})
	require.NoError(t, err)
	for i := range maxDecisions + 10 {
		require.False(t, m.Captured("tmp", fmt.Sprint(i)))
	}
	require.LessOrEqual(t, len(m.decisions), maxDecisions)
	require.True(t, m.Captured("shop", "orders"))
}

// TestWorkersShareAMapper is for the race detector: the events of one worker are read
// while others, and the same one, go on.
func TestWorkersShareAMapper(t *testing.T) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}})
	require.NoError(t, err)
	row := inserted(keyed("kc"), number(1), number(1))
	row.Ordinal, row.Place = 1, 1
	want := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}, mysqlTransaction(1), []canal.Row{row})[0]

	events := make(chan Event)
	var mappers, readers sync.WaitGroup
	for n := range 4 {
		mappers.Go(func() {
			w := m.NewWorker()
			for i := range 500 {
				own := row
				if i%2 == n%2 {
					own.Table = keyed(fmt.Sprint("other", i))
				}
				if w.Begin(mysqlTransaction(1)) != nil {
					return
				}
				got, err := w.Append(nil, &own)
				if err != nil {
					return
				}
				events <- got[0]
			}
		})
	}
	seen := 0
	readers.Go(func() {
		for e := range events {
			if e.ID == want.ID && string(e.Payload) == string(want.Payload) {
				seen++
			}
		}
	})
	mappers.Wait()
	close(events)
	readers.Wait()
	require.Equal(t, 4*250, seen)
}
