package pipeline_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// behindProxy are settings for a pipeline that reaches the server through a proxy, and a table a.
func behindProxy(t *testing.T, server *testenv.Server) (s settings, db string, proxy *testenv.Proxy) {
	t.Helper()
	db = server.Database(t)
	server.Exec(t, "CREATE TABLE "+db+".a (id INT PRIMARY KEY)")
	proxy = testenv.NewProxy(t, server.Addr)
	s = newSettings(t, server, db+".*")
	s.Address = proxy.Addr
	return s, db, proxy
}

// requireRefused asserts that the program ends with exit code 3 and says the words, at once and when it is started again, and that the
// checkpoint stays as it is.
func (s settings) requireRefused(t *testing.T, running *binlogd, words ...string) {
	t.Helper()
	var before []byte
	for i, d := range []*binlogd{running, nil, nil} {
		if d == nil {
			d = s.launch(t, "")
		}
		code, message := d.wait(t)
		require.Equal(t, 3, code, message)
		for _, word := range words {
			require.Contains(t, message, word)
		}
		after, err := os.ReadFile(s.Checkpoint)
		require.NoError(t, err)
		if i > 0 {
			require.Equal(t, string(before), string(after))
		}
		before = after
	}
}

// TestCasePurged: binlogs are purged while a running binlogd cannot reach the server.
func TestCasePurged(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		s, db, proxy := behindProxy(t, server)
		d := s.daemon(t, "")
		server.Exec(t, "INSERT INTO "+db+".a VALUES (1)")
		awaitCaughtUp(t, server, s.Checkpoint)
		proxy.Refuse(t, true)
		record, err := checkpoint.ReadFile(s.Checkpoint)
		require.NoError(t, err)
		server.Exec(t, "INSERT INTO "+db+".a VALUES (2)", "INSERT INTO "+db+".a VALUES (3)")
		server.PurgeBinlogs(t)
		executed, err := canal.ParseGTIDSet(record.Position.GTIDs.Flavor(), server.GTIDExecuted(t))
		require.NoError(t, err)
		proxy.Refuse(t, false)
		s.requireRefused(t, d, executed.Subtract(record.Position.GTIDs).String(), "restore the binlogs from a backup", "source.start")
		require.Equal(t, []string{"1"}, keys(s.events(t)))
	})
}

// TestCaseOtherServer: another server answers at the address, with fewer transactions than the checkpoint and with more.
func TestCaseOtherServer(t *testing.T) {
	onEachOwn(t, func(t *testing.T, server *testenv.Server) {
		start := testenv.StartMySQL
		switch {
		case strings.Contains(t.Name(), "10.11"):
			start = testenv.StartMariaDB
		case server.Flavor == "mariadb":
			start = testenv.StartMariaDB118
		}
		other := start(t, testenv.Options{})
		s, db, proxy := behindProxy(t, server)
		d := s.daemon(t, "")
		server.Exec(t, "INSERT INTO "+db+".a VALUES (1)")
		awaitCaughtUp(t, server, s.Checkpoint)
		proxy.SetTarget(other.Addr)
		proxy.Cut()
		s.requireRefused(t, d, "another server answers", "correct source.address")

		other.Exec(t, "CREATE DATABASE "+db, "USE "+db, "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT)", strings.Repeat("INSERT INTO a VALUES ();", 50))
		s.requireRefused(t, s.launch(t, ""), "another server answers", "correct source.address")
		require.Equal(t, []string{"1"}, keys(s.events(t)))
	})
}

// TestCaseHalfDeadConnection: the network swallows packets without closing the connection.
func TestCaseHalfDeadConnection(t *testing.T) {
	onEach(t, func(t *testing.T, server *testenv.Server) {
		s, db, proxy := behindProxy(t, server)
		d := s.daemon(t, "") // its heartbeat is 400 ms
		server.Exec(t, "INSERT INTO "+db+".a VALUES (1)")
		awaitCaughtUp(t, server, s.Checkpoint)

		proxy.Blackhole(true)
		began := time.Now()
		server.Exec(t, "INSERT INTO "+db+".a VALUES (2)")
		require.Contains(t, d.await(t, "/readyz", http.StatusServiceUnavailable), "not even a heartbeat")
		require.Less(t, time.Since(began), 3*time.Second) // two and a half heartbeats, and what a busy machine takes
		require.Contains(t, d.await(t, "/healthz", http.StatusServiceUnavailable), "has been dead")
		server.Exec(t, "INSERT INTO "+db+".a VALUES (3)")

		proxy.Blackhole(false)
		d.await(t, "/readyz", http.StatusOK)
		d.await(t, "/healthz", http.StatusOK)
		server.Exec(t, "INSERT INTO "+db+".a VALUES (4)")
		awaitCaughtUp(t, server, s.Checkpoint)
		d.stop(t)
		require.Equal(t, []string{"1", "2", "3", "4"}, keys(s.events(t)))
	})
}

// TestCaseManySmallTables: 5,000 tables are captured by a pattern.
func TestCaseManySmallTables(t *testing.T) {
	t.Parallel()
	const tables = 5000
	// Tables are made quickly where nothing has to be on the disk.
	quick := []string{"--innodb-file-per-table=OFF", "--innodb-doublewrite=OFF", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"}
	for name, start := range map[string]func() *testenv.Server{
		"mysql": func() *testenv.Server { return testenv.StartMySQL(t, testenv.Options{Args: quick}) },
		"mariadb 11.8": func() *testenv.Server {
			return testenv.StartMariaDB118(t, testenv.Options{Args: append(quick, "--sync-frm=OFF")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start()
			var creates, inserts strings.Builder
			for i := range tables {
				fmt.Fprintf(&creates, "CREATE TABLE many.t%04d (id INT PRIMARY KEY, v VARCHAR(20));", i)
				fmt.Fprintf(&inserts, "INSERT INTO many.t%04d VALUES (%d, 'x');", i, i)
			}
			server.Exec(t, "CREATE DATABASE many", creates.String())
			s := newSettings(t, server, "many.*")
			began := time.Now()
			d := s.daemon(t, "")
			started := time.Since(began)
			server.Exec(t, inserts.String())
			awaitCaughtUp(t, server, s.Checkpoint)
			status, metrics := d.ask(t.Context(), "/metrics")
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, metrics, "many.t4999")
			peak := d.peak(t)
			d.stop(t)
			events := s.events(t)
			require.Len(t, events, tables)
			requireDistinct(t, events)
			t.Logf("ready after %s, peak memory %d MiB", started, peak)
			require.Less(t, started, 15*time.Second)
			require.LessOrEqual(t, peak, memoryLimit)
		})
	}
}

// TestCaseRefusedMessage: one row makes a message above the broker's limit.
func TestCaseRefusedMessage(t *testing.T) {
	t.Parallel()
	server, kafka := testenv.MySQL(t), testenv.Kafka(t)
	db := server.Database(t)
	server.Exec(t, "CREATE TABLE "+db+".letters (id INT PRIMARY KEY, body LONGTEXT)")
	topic := db + ".letters"
	kafka.CreateTopic(t, topic, 1, map[string]string{"max.message.bytes": "100000"})
	s := newSettings(t, server, db+".*").into(&kafkaDestination{cluster: kafka, topics: []string{topic}})
	d := s.daemon(t, "")
	server.Exec(t, "INSERT INTO "+db+".letters VALUES (1, 'short')")
	awaitCaughtUp(t, server, s.Checkpoint)
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise)
	server.Exec(t, "INSERT INTO "+db+".letters VALUES (4711, '"+hex.EncodeToString(noise)+"')")
	refused, err := canal.ParseGTIDSet(canal.MySQL, server.GTIDExecuted(t))
	require.NoError(t, err)
	server.Exec(t, "INSERT INTO "+db+".letters VALUES (2, 'behind it')")
	for range 2 {
		code, message := d.wait(t)
		require.Equal(t, 4, code, message)
		for _, word := range []string{"table " + topic, "key 4711", "GTID ", "max.message.bytes"} {
			require.Contains(t, message, word)
		}
		record, err := checkpoint.ReadFile(s.Checkpoint)
		require.NoError(t, err)
		require.False(t, record.Position.GTIDs.ContainsSet(refused), "the place is kept")
		require.Equal(t, []string{"1"}, keys(s.events(t)))
		d = s.launch(t, "")
	}
	// With what the message says to do, it goes on.
	d.wait(t)
	larger := "1000000"
	require.NoError(t, kafka.Admin(t).AlterConfig(sarama.TopicResource, topic, map[string]*string{"max.message.bytes": &larger}, false))
	d = s.launch(t, "")
	awaitCaughtUp(t, server, s.Checkpoint)
	d.stop(t)
	require.Equal(t, []string{"1", "4711", "2"}, keys(s.events(t)))
}
