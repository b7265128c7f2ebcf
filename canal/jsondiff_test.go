package canal

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// Partial JSON updates give the whole value that the server then has.
func TestPartialJSON(t *testing.T) {
	s := testenv.MySQL(t)
	database := s.Database(t)
	s.Exec(t, "USE "+database+"; CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, j JSON, k JSON, n JSON)")
	insert := `INSERT INTO t (a,j,k) VALUES (1,'{"name":"x","tags":["a","b","c"],"deep":{"list":[{"v":1},{"v":2}],"é \\"q\\"":5},"pad":"0123456789012345678901234567890123456789"}','[1,2,3,"four four four four four four four four"]')`
	updates := []string{
		`j=JSON_SET(j,'$.name','yy')`,
		`j=JSON_REPLACE(j,'$.tags[1]','B'), k=JSON_SET(k,'$[0]',100)`,
		`j=JSON_REMOVE(j,'$.tags[0]')`,
		`j=JSON_REMOVE(j,'$.name','$.tags')`,
		`j=JSON_SET(j,'$.deep.list[1].v',2.50)`,
		`j=JSON_SET(JSON_REMOVE(j,'$.pad'),'$.b',1,'$.aa',2,'$.z',JSON_ARRAY(1,NULL))`,
		`j=JSON_SET(j,'$.deep."é \\"q\\""',JSON_OBJECT('n',18446744073709551615))`,
		`k=JSON_SET(k,'$[3]','4','$[2]',JSON_OBJECT('a',1))`,
		`k=JSON_REMOVE(k,'$[3]','$[1]')`,
		`a=a+1`,
		`j=JSON_SET(j,'$.name','z'), k=JSON_REPLACE(k,'$[0]',CAST('2026-11-29' AS DATE))`,
		`n='[1]'`,
		`j=NULL`,
	}
	partial := 0
	for _, update := range updates {
		s.Exec(t, "USE "+database+"; TRUNCATE t; "+insert+"; "+insert)
		from := here(t, s)
		s.Exec(t, "USE "+database+"; SET binlog_row_value_options=PARTIAL_JSON; UPDATE t SET "+update)
		transaction := rawTransactions(t, s, from, 1)[0]
		partial += partialUpdates(transaction)
		want := s.Query(t, "SELECT a, j, k, n FROM "+database+".t ORDER BY id")
		rows := capturing("t").Rows(t.Context(), transaction)
		for _, w := range want {
			require.True(t, rows.Next(), "%s: %v", update, rows.Err())
			after := rows.Row().After
			require.Equal(t, w["a"], asText(after[1]))
			for i, name := range []string{"j", "k", "n"} {
				v := after[2+i]
				if v.Kind == KindNull {
					require.Contains(t, []string{"", "NULL"}, w[name], update)
					continue
				}
				require.Equal(t, KindJSON, v.Kind)
				require.Equal(t, compactJSON(w[name]), string(v.Bytes), update)
			}
		}
		require.False(t, rows.Next())
		require.NoError(t, rows.Err())
	}
	require.Greater(t, partial, 8, "the server sent whole values")
}

func partialUpdates(t *Transaction) (n int) {
	for _, e := range t.events {
		if rawEvent(e).kind() == replication.PARTIAL_UPDATE_ROWS_EVENT {
			n++
		}
	}
	return n
}

// Without the value before there is nothing to apply differences to: that stops, with the
// remedy.
func TestPartialJSONNeedsTheValueBefore(t *testing.T) {
	s := testenv.MySQL(t)
	database := s.Database(t)
	s.Exec(t, "USE "+database+`; CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1,'{"a":1,"pad":"01234567890123456789"}')`)
	from := here(t, s)
	s.Exec(t, "USE "+database+"; SET binlog_row_value_options=PARTIAL_JSON; SET binlog_row_image=MINIMAL; UPDATE t SET j=JSON_SET(j,'$.a',2)")
	transaction := rawTransactions(t, s, from, 1)[0]
	require.Equal(t, 1, partialUpdates(transaction))
	rows := capturing("t").Rows(t.Context(), transaction)
	require.False(t, rows.Next())
	require.ErrorIs(t, rows.Err(), errPartialBefore)
	require.ErrorContains(t, rows.Err(), database+".t, column j JSON")
	require.ErrorContains(t, rows.Err(), "binlog_row_value_options")
}
