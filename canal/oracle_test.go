package canal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// oracleCase is a column type, values for it and how to compare what the decoder gives
// with what the server shows of the same value.
type oracleCase struct {
	ddl     string
	literal func(r *rand.Rand) string // an SQL expression
	edges   []string                  // more of them, always used
	shown   string                    // SQL over column v; empty: v itself
	given   func(v Value) string      // in the form of shown; nil: asText
	normal  func(shown string) string // applied to what is shown; nil: as it is
	kind    Kind
}

// The oracle: for every type the server itself is asked what a value is, while the value is
// in the table, and its answer is compared with what the decoder reads from the binlog.
func TestOracle(t *testing.T) {
	servers := []struct {
		name  string
		start func(testing.TB) *testenv.Server
		cases func() []oracleCase
	}{
		{"mysql", testenv.MySQL, mysqlCases},
		{"mariadb-10.11", testenv.MariaDB, mariaDBCases},
		{"mariadb-11.8", testenv.MariaDB118, mariaDB118Cases},
	}
	for _, server := range servers {
		for _, metadata := range []string{"FULL", "MINIMAL"} {
			t.Run(server.name+"/"+metadata, func(t *testing.T) {
				o := newOracle(t, server.start(t), metadata)
				for _, c := range append(commonCases(), server.cases()...) {
					o.check(t, c)
				}
				t.Logf("%d values compared", o.compared)
			})
		}
	}
}

// MariaDB's own temporal formats, as tables have that are older than 10.1 or were made with
// mysql56_temporal_format=OFF.
func TestOracleOldTemporalFormats(t *testing.T) {
	for _, start := range []func(testing.TB) *testenv.Server{testenv.MariaDB, testenv.MariaDB118} {
		for _, metadata := range []string{"FULL", "NO_LOG"} {
			s := start(t)
			o := newOracle(t, s, metadata)
			o.types = []byte{mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_DATETIME}
			s.Exec(t, "SET GLOBAL mysql56_temporal_format=OFF")
			for _, c := range commonCases() {
				switch c.kind { //nolint:exhaustive // only these had other formats
				case KindDateTime, KindTime, KindInstant:
					o.check(t, c)
				}
			}
			s.Exec(t, "SET GLOBAL mysql56_temporal_format=ON")
			t.Logf("%d values compared", o.compared)
		}
	}
}

type oracle struct {
	server   *testenv.Server
	database string
	random   *rand.Rand
	metadata string
	catalog  *Catalog
	types    []byte // those that the table maps must have; nil: any
	tables   int
	compared int
}

func newOracle(t *testing.T, s *testenv.Server, metadata string) *oracle {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ORACLE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("ORACLE_SEED=%d", seed)
	connect := connectTo(s)
	catalog := NewCatalog(connect.Connect)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	previous := s.Query(t, "SELECT @@global.binlog_row_metadata AS m")[0]["m"]
	s.Exec(t, "SET GLOBAL binlog_row_metadata="+metadata)
	t.Cleanup(func() {
		_, err := s.DB().ExecContext(context.WithoutCancel(t.Context()), "SET GLOBAL binlog_row_metadata="+previous)
		require.NoError(t, err)
	})
	return &oracle{
		server: s, database: s.Database(t), metadata: metadata, catalog: catalog,
		random: rand.New(rand.NewPCG(seed, 0)),
	}
}

const oracleValues = 120 // random values per type and server

// check inserts, updates and deletes values of one type and compares each image.
func (o *oracle) check(t *testing.T, c oracleCase) {
	t.Run(strings.ReplaceAll(c.ddl, "/", "_"), func(t *testing.T) {
		o.tables++
		table := fmt.Sprintf("t%d", o.tables)
		literals := append([]string{"NULL"}, c.edges...)
		if c.literal != nil {
			for range oracleValues {
				literals = append(literals, c.literal(o.random))
			}
		}
		prelude := "SET NAMES utf8mb4; SET sql_mode=''; SET time_zone='+00:00'; USE " + o.database + "; "
		o.server.Exec(t, prelude+"CREATE TABLE "+table+" (id INT PRIMARY KEY AUTO_INCREMENT, v "+c.ddl+")")
		from := locate(t, o.server, "latest")
		insert := "INSERT INTO " + table + " (v) VALUES ((" + strings.Join(literals, ")),((") + "))"
		o.server.Exec(t, prelude+insert)
		first := o.show(t, table, c)
		// The values change places: each row gets another row's value.
		o.server.Exec(t, prelude+"UPDATE "+table+" a JOIN (SELECT id, v FROM "+table+") b ON b.id = "+strconv.Itoa(len(literals))+"+1-a.id SET a.v=b.v")
		second := o.show(t, table, c)
		o.server.Exec(t, prelude+"DELETE FROM "+table)

		inserted, updated, deleted := map[int64]string{}, map[int64][2]string{}, map[int64]string{}
		given := c.given
		if given == nil {
			given = asText
		}
		read := func(v Value) string {
			o.compared++
			if v.Kind == KindNull {
				return "NULL"
			}
			require.Equal(t, c.kind, v.Kind)
			return given(v)
		}
		decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: o.catalog})
		reading := follow(t, o.server, from, o.database+"."+table)
		done := 0
		reading.until("all rows of "+c.ddl, func() bool {
			for ; done < len(reading.transactions); done++ {
				rows := decoder.Rows(t.Context(), reading.transactions[done])
				for rows.Next() {
					row := rows.Row()
					if o.types != nil {
						require.Contains(t, o.types, row.Table.Columns[1].Type)
					}
					switch row.Op {
					case Insert:
						inserted[row.After[0].Int()] = read(row.After[1])
					case Update:
						updated[row.After[0].Int()] = [2]string{read(row.Before[1]), read(row.After[1])}
					case Delete:
						deleted[row.Before[0].Int()] = read(row.Before[1])
					}
				}
				require.NoError(t, rows.Err())
			}
			return len(deleted) == len(second)
		})
		require.Len(t, inserted, len(literals))
		for id, want := range first {
			require.Equal(t, want, inserted[id], "inserted %s", literals[id-1])
			if want != second[id] {
				require.Equal(t, [2]string{want, second[id]}, updated[id], "updated from %s", literals[id-1])
			}
			require.Equal(t, second[id], deleted[id], "deleted")
		}
	})
}

// show asks the server for all values.
func (o *oracle) show(t *testing.T, table string, c oracleCase) map[int64]string {
	shown := c.shown
	if shown == "" {
		shown = "CAST(v AS CHAR)"
	}
	conn, err := o.server.DB().Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "SET NAMES utf8mb4, time_zone='+00:00', sql_mode=''")
	require.NoError(t, err)
	rows, err := conn.QueryContext(t.Context(), "SELECT id, COALESCE("+shown+", 'NULL') FROM "+o.database+"."+table)
	require.NoError(t, err)
	defer rows.Close()
	all := map[int64]string{}
	for rows.Next() {
		var id int64
		var text string
		require.NoError(t, rows.Scan(&id, &text))
		if c.normal != nil && text != "NULL" {
			text = c.normal(text)
		}
		all[id] = text
	}
	require.NoError(t, rows.Err())
	return all
}

// asText is a value as SELECT shows it: dates without the T and Z that events have.
func asText(v Value) string {
	switch v.Kind { //nolint:exhaustive // the others are shown as they are
	case KindInt:
		return strconv.FormatInt(v.Int(), 10)
	case KindUint:
		return strconv.FormatUint(v.Uint(), 10)
	case KindDateTime:
		return strings.Replace(string(v.Bytes), "T", " ", 1)
	case KindInstant:
		return strings.TrimSuffix(strings.Replace(string(v.Bytes), "T", " ", 1), "Z")
	case KindSet:
		var labels []string
		if err := json.Unmarshal(v.Bytes, &labels); err != nil {
			return err.Error()
		}
		return strings.Join(labels, ",")
	}
	return string(v.Bytes)
}

func asHex(v Value) string { return strings.ToUpper(hex.EncodeToString(v.Bytes)) }

// compactJSON takes the spaces out that MySQL puts between the parts of a document.
func compactJSON(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return err.Error() + ": " + text
	}
	return b.String()
}

// floatBits make equal numbers equal texts: the servers print doubles in their own way.
func floatBits(f float64) string { return strconv.FormatUint(math.Float64bits(f), 16) }

func geoJSON(v Value) string { return sameNumbers(string(v.Bytes)) }

func vectorHex(v Value) string {
	var numbers []float32
	if err := json.Unmarshal(v.Bytes, &numbers); err != nil {
		return err.Error()
	}
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
	}
	return strings.ToUpper(hex.EncodeToString(b))
}
