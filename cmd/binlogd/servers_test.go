package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// binlogd runs this test binary as binlogd in a folder of its own and waits for its end.
func binlogd(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), runAsBinlogd+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run binlogd: %v", err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// setup is a folder with a configuration for a database with one table, orders, and an
// account that may do what binlogd does.
type setup struct {
	server   *testenv.Server
	database string
	user     string
	password string
	dir      string
	address  string
	// What tests change before write.
	tables  []string
	start   string
	publish string
	more    string
}

func grants(server *testenv.Server, database string) []string {
	monitor := "REPLICATION CLIENT"
	if server.Flavor == "mariadb" {
		monitor = "BINLOG MONITOR"
	}
	return []string{"REPLICATION SLAVE, " + monitor + " ON *.*", "SELECT ON `" + database + "`.*"}
}

func newSetup(t *testing.T, server *testenv.Server) *setup {
	t.Helper()
	s := &setup{server: server, database: server.Database(t), dir: t.TempDir(), address: server.Addr, start: "latest", publish: "{file: {path: events.jsonl}}"}
	server.Exec(t, "CREATE TABLE `"+s.database+"`.orders (id INT PRIMARY KEY, state VARCHAR(20))")
	s.user, s.password = server.User(t, grants(server, s.database)...)
	s.tables = []string{s.database + ".orders"}
	return s
}

func (s *setup) write(t *testing.T) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: shop\nsource:\n  address: %s\n  user: %s\n  password: %s\n  start: %s\npublish: %s\nevents:\n", s.address, s.user, s.password, s.start, s.publish)
	for _, table := range s.tables {
		fmt.Fprintf(&b, "  - table: %s\n", table)
	}
	b.WriteString(s.more)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "binlogd.yaml"), []byte(b.String()), 0o600))
}

// requireRefusal asserts that check and run end alike: with the code, naming the problem
// and the remedy, and leaving no checkpoint and nothing published behind.
func (s *setup) requireRefusal(t *testing.T, code int, words ...string) {
	t.Helper()
	s.write(t)
	for _, command := range []string{"check", "run"} {
		got, stdout, stderr := binlogd(t, s.dir, command)
		require.Equal(t, code, got, "%s: %s%s", command, stdout, stderr)
		for _, word := range words {
			require.Contains(t, stdout+stderr, word, command)
		}
		require.NotContains(t, stdout+stderr, s.password)
	}
	require.NoFileExists(t, filepath.Join(s.dir, "shop.checkpoint"))
}

// onBoth runs a test on MySQL and MariaDB.
func onBoth(t *testing.T, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *testenv.Server{"mysql": testenv.MySQL, "mariadb": testenv.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func TestCheckPasses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.write(t)
		code, stdout, stderr := binlogd(t, s.dir, "check")
		require.Equal(t, exitOK, code, stdout+stderr)
		require.Contains(t, stdout, "run would work")
		require.NotContains(t, stdout, "fail")

		code, stdout, _ = binlogd(t, s.dir, "check", "-o", "json")
		require.Equal(t, exitOK, code)
		var report checkReport
		require.NoError(t, json.Unmarshal([]byte(stdout), &report))
		require.True(t, report.OK)
		require.NotEmpty(t, report.Checks)
		require.NoFileExists(t, filepath.Join(s.dir, "events.jsonl"), "check changes nothing")
	})
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.password = "wrong-password"
		s.requireRefusal(t, exitConfig, "ERROR 1045", s.user, "check source.user and source.password")
	})
}

func TestNoReplicationSlavePrivilege(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.user, s.password = server.User(t, "SELECT ON `"+s.database+"`.*")
		s.requireRefusal(t, exitConfig, "privilege REPLICATION SLAVE", "GRANT REPLICATION SLAVE ON *.* TO '"+s.user+"'@'%';")
	})
}

func TestUnknownTable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.tables = []string{s.database + ".order", "no_such_database.*"}
		s.requireRefusal(t, exitConfig, "binlogd.yaml:9: events[0].table: unknown table "+s.database+".order",
			"did you mean "+s.database+".orders?", "binlogd.yaml:10: events[1].table: unknown table no_such_database.*")
	})
}

func TestUnknownKeyColumn(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.tables = []string{s.database + ".orders\n    key: [number]"}
	s.requireRefusal(t, exitConfig, "binlogd.yaml:10: events[0].key", "number")
}

func TestUnknownKeyInTheConfiguration(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.more = "admin:\n  lissten: x\n"
	s.requireRefusal(t, exitConfig, "binlogd.yaml:11: admin.lissten: unknown key; did you mean listen?")
}

// onBothWith runs a test on a MySQL and a MariaDB of its own that were started with an argument.
func onBothWith(t *testing.T, argument string, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, testenv.Options{Args: []string{argument}}))
		})
	}
}

func TestBinlogOff(t *testing.T) {
	t.Parallel()
	onBothWith(t, "--skip-log-bin", func(t *testing.T, server *testenv.Server) {
		newSetup(t, server).requireRefusal(t, exitSource, "log_bin=OFF", "log_bin=binlog", "my.cnf and restart it")
	})
}

func TestFormatsThatAreNotRow(t *testing.T) {
	t.Parallel()
	onBothWith(t, "--binlog-format=MIXED", func(t *testing.T, server *testenv.Server) { // MariaDB's own default
		set := "SET PERSIST binlog_format = ROW;"
		if server.Flavor == "mariadb" {
			set = "SET GLOBAL binlog_format = ROW; and write binlog_format=ROW under [mysqld] in its my.cnf"
		}
		s := newSetup(t, server)
		for _, format := range []string{"MIXED", "STATEMENT"} {
			server.Exec(t, "SET GLOBAL binlog_format = "+format)
			s.requireRefusal(t, exitSource, "binlog_format="+format, set)
		}
		// What the message says to type mends it.
		server.Exec(t, "SET GLOBAL binlog_format = ROW")
		code, stdout, stderr := binlogd(t, s.dir, "check")
		require.Equal(t, exitOK, code, stdout+stderr)
	})
}

func TestUnreachableSource(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.address = "127.0.0.1:1"
	s.requireRefusal(t, exitSource, "connect to 127.0.0.1:1", "connection refused", "check that the server runs")
}

func TestUnknownHost(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.address = "no-such-host.invalid:3306"
	s.requireRefusal(t, exitConfig, "no-such-host.invalid", "check the host in source.address")
}

func TestUnreachableBroker(t *testing.T) {
	t.Parallel()
	for name, sink := range map[string]string{"kafka": "{kafka: {brokers: [127.0.0.1:1]}}", "redis": "{redis: {address: 127.0.0.1:1}}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, testenv.MySQL(t))
			s.publish = sink
			s.requireRefusal(t, exitSink, "127.0.0.1:1", "connection refused", "check publish."+name)
		})
	}
}

// A Redis that can forget what it acknowledged is warned about, by check and by run.
func TestRedisThatForgets(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t, testenv.RedisOptions{Args: []string{"--appendonly", "no", "--appendfsync", "always"}})
	s := newSetup(t, testenv.MySQL(t))
	s.publish = "{redis: {address: " + redis.Addr + "}}"
	s.write(t)
	warnings := func() []canal.Check {
		code, stdout, stderr := binlogd(t, s.dir, "check", "-o", "json")
		require.Equal(t, exitOK, code, stdout+stderr)
		var report checkReport
		require.NoError(t, json.Unmarshal([]byte(stdout), &report))
		return slices.DeleteFunc(report.Checks, func(c canal.Check) bool { return c.Name != "sink settings" })
	}
	found := warnings()
	require.Len(t, found, 1)
	require.Contains(t, found[0].Detail, "appendonly=no")
	require.Contains(t, found[0].Remedy, "CONFIG SET appendonly yes")
	d := startDaemon(t, s.dir, "run")
	d.await(t, "reading the binlog")
	require.Contains(t, d.stderr.String(), "appendonly=no")
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))

	set := func(name, value string) { require.NoError(t, redis.Client().ConfigSet(t.Context(), name, value).Err()) }
	set("appendonly", "yes")
	require.Empty(t, warnings())
	for _, fsync := range []string{"everysec", "no"} {
		set("appendfsync", fsync)
		found = warnings()
		require.Len(t, found, 1)
		require.Contains(t, found[0].Detail, "appendfsync="+fsync)
		require.Contains(t, found[0].Remedy, "CONFIG SET appendfsync always")
	}
	set("appendfsync", "always")
	set("no-appendfsync-on-rewrite", "yes")
	set("maxmemory", "1gb")
	set("maxmemory-policy", "allkeys-lru")
	found = warnings()
	require.Len(t, found, 2)
	require.Contains(t, found[0].Remedy, "no-appendfsync-on-rewrite no")
	require.Contains(t, found[1].Remedy, "maxmemory-policy noeviction")

	// A user that may publish and nothing else is not told.
	require.NoError(t, redis.Client().ACLSetUser(t.Context(), "narrow", "on", ">secret", "~*", "+ping", "+xadd", "+multi", "+exec").Err())
	s.publish = "{redis: {address: " + redis.Addr + ", username: narrow, password: secret}}"
	s.write(t)
	found = warnings()
	require.Len(t, found, 1)
	require.Contains(t, found[0].Remedy, "+config|get")
}

// writeCheckpoint leaves a checkpoint with a GTID set behind.
func (s *setup) writeCheckpoint(t *testing.T, gtids string) {
	t.Helper()
	flavor := canal.MySQL
	if s.server.Flavor == "mariadb" {
		flavor = canal.MariaDB
	}
	set, err := canal.ParseGTIDSet(flavor, gtids)
	require.NoError(t, err)
	store, err := checkpoint.OpenFile(filepath.Join(s.dir, "shop.checkpoint"), "shop")
	require.NoError(t, err)
	require.NoError(t, store.Save(t.Context(), &checkpoint.Record{
		Name: "shop", Position: canal.Position{GTIDs: set, File: "binlog.000001", Offset: 4},
		Server: canal.Identity{Flavor: flavor, ServerID: 1, Version: "1"}, WrittenAt: time.Now(), WrittenBy: "a test",
	}))
	require.NoError(t, store.Close())
}

// requireStop asserts that check and run end with exit code 3 and leave the checkpoint as
// it was.
func (s *setup) requireStop(t *testing.T, words ...string) {
	t.Helper()
	s.write(t)
	path := filepath.Join(s.dir, "shop.checkpoint")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, command := range []string{"check", "run"} {
		code, stdout, stderr := binlogd(t, s.dir, command)
		require.Equal(t, exitSource, code, "%s: %s%s", command, stdout, stderr)
		for _, word := range words {
			require.Contains(t, stdout+stderr, word, command)
		}
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestPurgedBinlogs(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, testenv.Options{})
			s := newSetup(t, server)
			s.writeCheckpoint(t, server.GTIDExecuted(t))
			server.Exec(t, "INSERT INTO `"+s.database+"`.orders VALUES (1, 'new')")
			missing := server.GTIDExecuted(t)
			server.PurgeBinlogs(t)
			if server.Flavor == "mysql" {
				missing = missing[strings.LastIndexAny(missing, "-:")+1:]
			}
			s.requireStop(t, missing, "which the checkpoint", "source.start")
		})
	}
}

func TestAStartThatThisServerDoesNotHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		start string
		code  int
		words []string
	}{
		"a GTID set of another server": {"gtid:3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", exitSource, []string{"another server answers", "of source.start"}},
		"a GTID set of MariaDB":        {"gtid:0-1-5", exitConfig, []string{"source.start", "mysql"}},
		"an unknown file":              {"file:binlog.999999:4", exitConfig, []string{"the server has no place binlog.999999:4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, testenv.MySQL(t))
			s.start = test.start
			s.requireRefusal(t, test.code, test.words...)
		})
	}
	t.Run("purged", func(t *testing.T) {
		t.Parallel()
		server := testenv.StartMySQL(t, testenv.Options{})
		s := newSetup(t, server)
		server.PurgeBinlogs(t)
		uuid, _, _ := strings.Cut(server.GTIDExecuted(t), ":")
		s.start = "gtid:" + uuid + ":1"
		s.requireRefusal(t, exitSource, "the server has purged", "which source.start does not hold")
	})
}

func TestAnotherServer(t *testing.T) {
	t.Parallel()
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		s := newSetup(t, testenv.MySQL(t))
		s.writeCheckpoint(t, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
		s.requireStop(t, "another server answers", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", "correct source.address")
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		s := newSetup(t, testenv.MariaDB(t))
		s.writeCheckpoint(t, "0-1-99999999")
		s.requireStop(t, "another server answers", "0-1-99999999", "correct source.address")
	})
}

func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.write(t)
	path := filepath.Join(s.dir, "shop.checkpoint")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	for _, command := range [][]string{{"check"}, {"run"}, {"checkpoint", "show"}} {
		code, stdout, stderr := binlogd(t, s.dir, command...)
		require.Equal(t, exitCheckpoint, code, stdout+stderr)
		require.Contains(t, stdout+stderr, "is damaged")
	}
}

func TestCheckpointIsHeld(t *testing.T) {
	t.Parallel()
	s := newSetup(t, testenv.MySQL(t))
	s.write(t)
	store, err := checkpoint.OpenFile(filepath.Join(s.dir, "shop.checkpoint"), "shop")
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	code, _, stderr := binlogd(t, s.dir, "run")
	require.Equal(t, exitLocked, code, stderr)
	require.Contains(t, stderr, fmt.Sprintf("process %d", os.Getpid()))
}

func TestWarningsNameTheTables(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		server.Exec(t, "USE `"+s.database+"`; CREATE TABLE log (line TEXT); "+
			"CREATE TABLE items (id INT PRIMARY KEY, order_id INT, FOREIGN KEY of_order (order_id) REFERENCES orders (id) ON DELETE CASCADE)")
		s.tables = []string{s.database + ".*"}
		s.write(t)
		code, stdout, stderr := binlogd(t, s.dir, "check")
		require.Equal(t, exitOK, code, stdout+stderr)
		require.Contains(t, stdout, "none in 1 table: "+s.database+".log")
		if server.Flavor == "mariadb" {
			require.Contains(t, stdout, s.database+".items of_order (ON DELETE CASCADE of orders)")
		} else {
			require.Contains(t, stdout, "the server logs the rows that they change")
		}
	})
}

func TestInitWritesAConfigurationThatCheckAccepts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		server.Exec(t, "USE `"+s.database+"`; CREATE TABLE `odd: $name's {x}` (`a, b` INT, `c\"` INT, PRIMARY KEY (`c\"`, `a, b`)); CREATE TABLE log (line TEXT)")
		source := fmt.Sprintf("%s:%s@%s/%s", s.user, s.password, server.Addr, s.database)
		code, stdout, stderr := binlogd(t, s.dir, "init", "--source", source, "-w", "new.yaml")
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "GRANT REPLICATION SLAVE")

		// The statements work on the server that they were written for.
		account := "'binlogd_" + s.database + "'@'%'"
		statements, _, _ := strings.Cut(stdout, "-- Then")
		server.Exec(t, strings.ReplaceAll(statements, "'binlogd'@'%'", account))
		defer server.Exec(t, "DROP USER "+account)

		written, err := os.ReadFile(filepath.Join(s.dir, "new.yaml"))
		require.NoError(t, err)
		require.NotContains(t, string(written), s.password)
		cfg, err := parseConfig("new.yaml", written, environment("MYSQL_PASSWORD=choose a password"))
		require.NoError(t, err, string(written))
		require.Len(t, cfg.Events, 3)
		require.Equal(t, []string{`c"`, "a, b"}, cfg.Events[1].Key)

		cfg.Source.User = "binlogd_" + s.database
		for _, c := range preflightSource(t.Context(), cfg, nil) {
			require.NotEqual(t, canal.CheckFail, c.Status, "%s: %s", c.Name, c.Detail)
		}

		code, _, stderr = binlogd(t, s.dir, "init", "--source", source, "-w", "new.yaml")
		require.Equal(t, exitConfig, code)
		require.Contains(t, stderr, "--force")
		code, _, stderr = binlogd(t, s.dir, "init", "--source", source, "-w", "new.yaml", "--force")
		require.Equal(t, exitOK, code, stderr)
		code, _, stderr = binlogd(t, s.dir, "init", "--source", source+"x")
		require.Equal(t, exitConfig, code)
		require.Contains(t, stderr, "did you mean "+s.database+"?")
	})
}

func TestCheckpointShow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *testenv.Server) {
		s := newSetup(t, server)
		s.write(t)
		code, _, stderr := binlogd(t, s.dir, "checkpoint", "show")
		require.Equal(t, exitCheckpoint, code)
		require.Contains(t, stderr, "shop.checkpoint")

		gtids := server.GTIDExecuted(t)
		s.writeCheckpoint(t, gtids)
		server.Exec(t, "INSERT INTO `"+s.database+"`.orders VALUES (1, 'new')")
		code, stdout, stderr := binlogd(t, s.dir, "checkpoint", "show")
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "a test")
		require.Contains(t, stdout, "binlog.000001:4")
		require.Regexp(t, `behind +[1-9]\d* transactions`, stdout)

		code, stdout, stderr = binlogd(t, s.dir, "checkpoint", "show", "-o", "json", "--file", "shop.checkpoint")
		require.Equal(t, exitOK, code, stderr)
		var shown shownCheckpoint
		require.NoError(t, json.Unmarshal([]byte(stdout), &shown))
		require.Equal(t, strings.Join(strings.Fields(gtids), ""), shown.Position.GTIDs)
		require.Nil(t, shown.Source)
	})
}
