package canal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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
	shown   string                    // SQL over column v; empty: its text
	given   func(v Value) string      // in the form of shown; nil: asText
	normal  func(shown string) string // applied to what is shown; nil: as it is
	kind    Kind
}

// oracleServer is a server that the oracle asks, with the types that it has.
type oracleServer struct {
	name     string
	start    func(testing.TB) *testenv.Server
	cases    func() []oracleCase
	metadata []string // values of binlog_row_metadata
	images   []rowImage
}

func oracleServers() []oracleServer {
	images := []rowImage{imageFull, imageMinimal, imageNoBlob}
	return []oracleServer{
		{"mysql", testenv.MySQL, mysqlCases, []string{"FULL", "MINIMAL"}, images},
		{"mariadb-10.11", testenv.MariaDB, mariaDBCases, []string{"FULL", "MINIMAL", "NO_LOG"}, images},
		{"mariadb-11.8", testenv.MariaDB118, mariaDB118Cases, []string{"FULL", "MINIMAL", "NO_LOG"}, append(images, imageFullNoDup)},
	}
}

func (s oracleServer) allCases() []oracleCase { return append(commonCases(), s.cases()...) }

// The oracle: for every type the server itself is asked what a value is, while the value is
// in the table, and its answer is compared with what the decoder reads from the binlog. What a
// row image leaves out must be absent.
func TestOracle(t *testing.T) {
	for _, server := range oracleServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			for _, metadata := range server.metadata {
				t.Run("metadata="+metadata, func(t *testing.T) {
					o := newOracle(t, server.start(t), metadata, server.allCases())
					for _, image := range server.images {
						t.Run("image="+image.name, func(t *testing.T) {
							for _, table := range o.tables {
								o.compare(t, o.write(t, table, image))
							}
						})
					}
					t.Logf("%d values compared", o.compared)
					require.Greater(t, o.compared, 30_000)
				})
			}
		})
	}
}

// MariaDB's own temporal formats, as tables have that are older than 10.1 or were made with
// mysql56_temporal_format=OFF.
func TestOracleOldTemporalFormats(t *testing.T) {
	for _, start := range []func(testing.TB) *testenv.Server{testenv.MariaDB, testenv.MariaDB118} {
		for _, metadata := range []string{"FULL", "NO_LOG"} {
			server := start(t)
			setGlobal(t, server, "mysql56_temporal_format", "OFF")
			o := newOracle(t, server, metadata, temporalCases())
			o.types = []byte{mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_DATETIME}
			for _, table := range o.tables {
				o.compare(t, o.write(t, table, imageFull))
				o.compare(t, o.write(t, table, imageMinimal))
			}
			t.Logf("%d values compared", o.compared)
		}
	}
}

// temporalCases are those whose types had other formats.
func temporalCases() (cases []oracleCase) {
	for _, c := range commonCases() {
		switch c.kind { //nolint:exhaustive // the other kinds have had one format only
		case KindDateTime, KindTime, KindInstant:
			cases = append(cases, c)
		}
	}
	return cases
}

// oracle is one run against one server: its tables, and a source that follows them.
type oracle struct {
	server   *testenv.Server
	database string
	random   *rand.Rand
	tables   []*oracleTable
	reading  *reading
	decoder  *Decoder
	read     int    // transactions of reading that were looked at
	types    []byte // those that the table maps must have; nil: any
	compared int
}

// newOracle makes tables for all cases. Their columns are dealt out at random: what stands before a value in
// its row is another in every run.
func newOracle(t *testing.T, s *testenv.Server, metadata string, cases []oracleCase) *oracle {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ORACLE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("ORACLE_SEED=%d", seed)
	setGlobal(t, s, "binlog_row_metadata", metadata)
	catalog := NewCatalog(connectTo(s).Connect)
	t.Cleanup(func() { require.NoError(t, catalog.Close()) })
	o := &oracle{
		server: s, database: s.Database(t), random: rand.New(rand.NewPCG(seed, 0)),
		decoder: NewDecoder(DecoderOptions{Captured: func(string, string) bool { return true }, Schemas: catalog}),
	}
	o.random.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	var names []string
	for len(cases) > 0 {
		const columns = 12
		table := &oracleTable{name: fmt.Sprintf("t%d", len(o.tables)), cases: cases[:min(columns, len(cases))]}
		cases = cases[len(table.cases):]
		o.tables = append(o.tables, table)
		names = append(names, o.database+"."+table.name)
	}
	o.reading = follow(t, s, locate(t, s, "latest"), names...)
	for _, table := range o.tables {
		s.Exec(t, o.prelude()+table.create())
	}
	return o
}

// setGlobal sets a variable of the server until the test ends.
func setGlobal(t *testing.T, s *testenv.Server, name, value string) {
	previous := s.Query(t, "SELECT @@global."+name+" AS v")[0]["v"]
	s.Exec(t, "SET GLOBAL "+name+"="+value)
	t.Cleanup(func() {
		_, err := s.DB().ExecContext(context.WithoutCancel(t.Context()), "SET GLOBAL "+name+"="+previous)
		require.NoError(t, err)
	})
}

// prelude makes a session take any value and show times in UTC.
func (o *oracle) prelude() string {
	return "SET NAMES utf8mb4; SET sql_mode=''; SET time_zone='+00:00'; USE " + o.database + "; "
}
