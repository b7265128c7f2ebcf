package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/internal/travel"
)

// published is one line of the file sink.
type published struct {
	ID      string `json:"id"`
	GTID    string `json:"gtid"`
	Time    string `json:"time"`
	Subject string `json:"subject"`
	line    string
}

// lines are the events in the file sink.
func (s *setup) lines(t *testing.T) []published {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "events.jsonl"))
	require.NoError(t, err)
	var events []published
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		p := published{line: line}
		require.NoError(t, json.Unmarshal([]byte(line), &p), line)
		events = append(events, p)
	}
	return events
}

// runUntil runs a daemon until the file sink holds a number of events, and stops it.
func (s *setup) runUntil(t *testing.T, events int) {
	t.Helper()
	d := startDaemon(t, s.dir, "run")
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "events.jsonl"))
		return err == nil && len(s.lines(t)) >= events
	}, fmt.Sprintf("%d events", events))
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
}

// command runs binlogd, which must end with exit code 0, and gives what it writes.
func (s *setup) command(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := binlogd(t, s.dir, args...)
	require.Equal(t, exitOK, code, "%v: %s%s", args, stdout, stderr)
	return stdout
}

// report runs a command that moves the checkpoint and reads its JSON.
func (s *setup) report(t *testing.T, args ...string) moveReport {
	t.Helper()
	var r moveReport
	require.NoError(t, json.Unmarshal([]byte(s.command(t, append(args, "-o", "json")...)), &r))
	return r
}

func (s *setup) checkpoint(t *testing.T) *checkpoint.Record {
	t.Helper()
	record, err := checkpoint.ReadFile(filepath.Join(s.dir, "shop.checkpoint"))
	require.NoError(t, err)
	return record
}

// onEachKind runs a test on servers of its own that send no names with their rows: MySQL with GTIDs and without, and MariaDB.
func onEachKind(t *testing.T, test func(t *testing.T, server *testenv.Server)) {
	t.Helper()
	mysql := []string{"--binlog-row-metadata=MINIMAL"}
	for name, start := range map[string]func(t *testing.T) *testenv.Server{
		"mysql": func(t *testing.T) *testenv.Server {
			return testenv.StartMySQL(t, testenv.Options{Args: mysql})
		},
		"mysql without GTIDs": func(t *testing.T) *testenv.Server {
			return testenv.StartMySQL(t, testenv.Options{Args: append(mysql, "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")})
		},
		"mariadb": func(t *testing.T) *testenv.Server {
			return testenv.StartMariaDB(t, testenv.Options{Args: []string{"--binlog-row-metadata=NO_LOG"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// past is a stretch of history that was published once, and the ways to name a place in it.
type past struct {
	*setup
	events []published // as they were published the first time
	// The place before the transaction of events[from].
	from     int
	gtids    string
	position string
	gtidsOn  bool
}

// newPast writes into a captured table, which is altered and swapped for another one meanwhile, over several binlog files.
func newPast(t *testing.T, server *testenv.Server) *past {
	t.Helper()
	p := &past{setup: newSetup(t, server), gtidsOn: true}
	if server.Flavor == "mysql" {
		p.gtidsOn = server.Query(t, "SELECT @@gtid_mode AS mode")[0]["mode"] == "ON"
	}
	p.write(t)
	d := startDaemon(t, p.dir, "run")
	d.await(t, "reading the binlog")
	db := "`" + p.database + "`."
	p.insert(t, 1)
	server.Exec(t, "INSERT INTO "+db+"orders VALUES (2, 'new'), (3, 'new')", "CREATE TABLE "+db+"quiet (id INT PRIMARY KEY)", "INSERT INTO "+db+"quiet VALUES (1)",
		"FLUSH BINARY LOGS", "INSERT INTO "+db+"orders VALUES (4, 'new')")
	file, offset := server.BinlogPosition(t)
	p.position, p.from = fmt.Sprintf("%s:%d", file, offset), 4
	if p.gtidsOn {
		p.gtids = strings.ReplaceAll(server.GTIDExecuted(t), "\n", "")
	}
	server.Exec(t, "SET SESSION time_zone = '+00:00'", "DO SLEEP(1.1)",
		"BEGIN", "INSERT INTO "+db+"orders VALUES (5, 'new')", "UPDATE "+db+"orders SET state = 'paid' WHERE id IN (1, 5)", "COMMIT",
		"ALTER TABLE "+db+"orders ADD note VARCHAR(20) FIRST", "INSERT INTO "+db+"orders VALUES ('a note', 6, 'new')", "FLUSH BINARY LOGS",
		"CREATE TABLE "+db+"next (state VARCHAR(10), id INT PRIMARY KEY, total INT)", "INSERT INTO "+db+"next VALUES ('new', 7, 70)",
		"RENAME TABLE "+db+"orders TO "+db+"former, "+db+"next TO "+db+"orders", "INSERT INTO "+db+"orders VALUES ('new', 8, 80)", "DELETE FROM "+db+"orders WHERE id = 7")
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "events.jsonl"))
		return err == nil && len(p.lines(t)) == 10
	}, "the events")
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
	p.events = p.lines(t)
	return p
}

// goOn publishes from the checkpoint on, together with a new row, and asserts that those are the events from a place on as they were the
// first time, and the new one behind them.
func (p *past) goOn(t *testing.T, from int) {
	t.Helper()
	before := len(p.lines(t))
	p.server.Exec(t, fmt.Sprintf("INSERT INTO `%s`.orders VALUES ('more', %d, 1)", p.database, 100+len(p.events)))
	p.runUntil(t, before+len(p.events)-from+1)
	again := p.lines(t)[before:]
	require.Len(t, again, len(p.events)-from+1)
	for i, want := range p.events[from:] {
		require.Equal(t, want.line, again[i].line)
	}
	added := again[len(again)-1]
	require.Equal(t, fmt.Sprint(100+len(p.events)), added.Subject)
	p.events = append(p.events, added)
}

// requireServerInIDs asserts that ids without a GTID name the server.
func (p *past) requireServerInIDs(t *testing.T) {
	t.Helper()
	if p.gtidsOn {
		return
	}
	uuid := strings.ReplaceAll(p.server.Query(t, "SELECT @@server_uuid AS uuid")[0]["uuid"], "-", "")
	require.True(t, strings.HasPrefix(p.events[0].ID, uuid+"-"), p.events[0].ID)
}

// transactions is the number of transactions with events from an event on.
func (p *past) transactions(from int) int {
	n, last := 0, ""
	for _, e := range p.events[from:] {
		name := e.GTID
		if name == "" {
			name = e.ID[:49] // server, file and offset
		}
		if name != last {
			n++
		}
		last = name
	}
	return n
}

// TestRewind: each form of a rewind, previewed, made, undone and made again. What is published then has the ids and the bytes of the
// first time, across an ALTER and a table swap, and goes on without a gap.
func TestRewind(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, server *testenv.Server) {
		p := newPast(t, server)
		p.requireServerInIDs(t)
		entries, err := checkpoint.ViewFile(filepath.Join(p.dir, "shop.checkpoint"), "shop").History(t.Context())
		require.NoError(t, err)
		forms := [][]string{
			{"--to-event", p.events[p.from+1].ID},
			{"--to-time", p.events[p.from].Time},
			{"--to-position", p.position},
			{"--transactions"},
			{"--to-entry", entries[len(entries)-1].ID},
		}
		if p.gtidsOn {
			forms = append(forms, []string{"--to-gtid", p.gtids})
		}
		for i, form := range forms {
			from := p.from
			switch form[0] {
			case "--transactions":
				form = append(form, fmt.Sprint(p.transactions(from)))
			case "--to-entry":
				from = 0
			}
			before := p.checkpoint(t)
			args := append([]string{"checkpoint", "rewind"}, form...)
			if i == 0 {
				require.Contains(t, p.command(t, args...), "nothing was changed")
				require.Equal(t, before, p.checkpoint(t), "a preview changes nothing")
			}
			made := p.report(t, append(args, "--yes", "--reason", "a test")...)
			require.True(t, made.Applied)
			require.EqualValues(t, len(p.events)-from, made.Again.Events, form)
			require.EqualValues(t, p.transactions(from), made.Again.WithEvents, form)
			require.Nil(t, made.Skipped)
			require.Contains(t, fmt.Sprint(made.Statements), "ADD note", form)
			require.Contains(t, fmt.Sprint(made.Statements), "RENAME TABLE", form)
			for _, s := range made.Statements {
				require.True(t, s.Covered, s)
			}
			require.NotEqual(t, before.Position, p.checkpoint(t).Position)

			undone := p.report(t, "checkpoint", "undo", "--yes")
			require.True(t, undone.Applied)
			require.Equal(t, before.Position, p.checkpoint(t).Position)
			require.Equal(t, before.SchemaVersion, p.checkpoint(t).SchemaVersion)

			p.command(t, append(args, "--yes")...)
			p.goOn(t, from)
		}
		p.replaysAndTraces(t)
		p.movesLive(t)
		p.movesForward(t)
		p.refusesWhatCannotBe(t)
	})
}

// replaysAndTraces: a replay publishes what was asked for with the ids of the first time, marked, and leaves the checkpoint alone; and
// each event leads back to its row.
func (p *past) replaysAndTraces(t *testing.T) {
	before := p.checkpoint(t)
	replayed := func(args ...string) (events []published) {
		t.Helper()
		for line := range strings.Lines(p.command(t, append([]string{"replay", "--name", "again"}, args...)...)) {
			require.Contains(t, line, `"binlogdreplay":"again"`)
			e := published{line: strings.Replace(line, `"binlogdreplay":"again",`, "", 1)}
			require.NoError(t, json.Unmarshal([]byte(line), &e))
			events = append(events, e)
		}
		return events
	}
	require.Equal(t, p.events, replayed())
	require.Equal(t, p.events[p.from:], replayed("--from-position", p.position))
	require.Equal(t, p.events[:p.from], replayed("--to-position", p.position, "--table", p.database+".*", "--rate", "1000"))
	require.Equal(t, p.events[p.from+1:p.from+3], replayed("--id", p.events[p.from+1].ID, "--id", p.events[p.from+2].ID))
	require.Equal(t, p.events[1:2], replayed("--key", "2", "--type", "orders.created"))
	require.Empty(t, replayed("--table", "other.*"))
	if p.gtidsOn {
		require.Equal(t, p.events[p.from:], replayed("--from-gtid", p.gtids))
		require.Equal(t, p.events[:p.from], replayed("--to-gtid", p.gtids))
	}
	if p.gtidsOn && p.server.Flavor == "mysql" {
		require.Equal(t, []published{p.events[0], p.events[7]}, replayed("--gtids", p.events[0].GTID+","+p.events[7].GTID))
	}
	for range 2 { // the second goes on behind the first: there is nothing left
		p.command(t, "replay", "--progress", "again.progress", "--sink", "file:again.jsonl")
	}
	again, err := os.ReadFile(filepath.Join(p.dir, "again.jsonl"))
	require.NoError(t, err)
	require.Equal(t, len(p.events), strings.Count(string(again), "\n"))
	require.Equal(t, before, p.checkpoint(t))

	for _, i := range []int{0, p.from + 1, p.from + 5} { // a row, one of two changes in a transaction, one behind the table swap
		e := p.events[i]
		var r traceReport
		require.NoError(t, json.Unmarshal([]byte(p.command(t, "trace", e.ID, "-o", "json")), &r))
		require.Equal(t, e.GTID, r.GTID)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, r.Event))
		require.Equal(t, strings.TrimSpace(e.line), compact.String())
		require.True(t, r.Published)
		require.Equal(t, "events[0] (table "+p.database+".orders)", r.Rule)
		require.Len(t, r.Found, 1)
		require.Equal(t, i+1, r.Found[0].Line)
		if i == p.from+1 {
			require.Equal(t, "update", r.Operation)
			require.JSONEq(t, `{"id":1,"state":"new"}`, string(r.Before))
			require.JSONEq(t, `{"id":1,"state":"paid"}`, string(r.After))
		}
	}
}

// movesLive: a checkpoint that a daemon holds is moved by that daemon only, which goes on from there.
func (p *past) movesLive(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	p.more = "admin: {listen: " + address + ", token: a-secret}\n"
	p.write(t)
	d := startDaemon(t, p.dir, "run")
	d.await(t, "reading the binlog")
	rewind := []string{"checkpoint", "rewind", "--to-event", p.events[p.from].ID}
	code, _, stderr := binlogd(t, p.dir, append(rewind, "--yes")...)
	require.Equal(t, exitLocked, code, stderr)
	require.Contains(t, stderr, "--live")
	require.Contains(t, p.command(t, rewind...), "nothing was changed", "a preview is possible meanwhile")

	for token, status := range map[string]int{"": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/checkpoint/move", strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("Authorization", token)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, status, response.StatusCode)
	}

	before := len(p.lines(t))
	require.True(t, p.report(t, append(rewind, "--live", "--yes")...).Applied)
	p.server.Exec(t, fmt.Sprintf("INSERT INTO `%s`.orders VALUES ('live', 300, 1)", p.database))
	eventually(t, func() bool { return len(p.lines(t)) == before+len(p.events)-p.from+1 }, "the events to come again")
	require.Equal(t, exitOK, d.stop(t, syscall.SIGTERM), d.stderr.String())
	again := p.lines(t)[before:]
	for i, want := range p.events[p.from:] {
		require.Equal(t, want.line, again[i].line)
	}
	p.events = append(p.events, again[len(again)-1])
	require.NotContains(t, d.stderr.String(), "a-secret")
}

// movesForward: what set --skip leaves out is not published, unless it is taken back.
func (p *past) movesForward(t *testing.T) {
	insert := "INSERT INTO `" + p.database + "`.orders VALUES ('lost', %d, 1)"
	p.server.Exec(t, fmt.Sprintf(insert, 400), "ALTER TABLE `"+p.database+"`.orders MODIFY total BIGINT", fmt.Sprintf(insert, 401))
	file, offset := p.server.BinlogPosition(t)
	set := []string{"checkpoint", "set", "--to-position", fmt.Sprintf("%s:%d", file, offset), "--yes"}
	code, stdout, stderr := binlogd(t, p.dir, set...)
	require.Equal(t, exitConfig, code, stderr)
	require.Contains(t, stderr, "add --skip")
	require.Contains(t, stdout, "nothing was changed")
	made := p.report(t, append(set, "--skip")...)
	require.True(t, made.Applied)
	require.EqualValues(t, 2, made.Skipped.Events)
	require.Contains(t, fmt.Sprint(made.Statements), "MODIFY total", "the schema history goes on across what is left out")
	p.goOn(t, len(p.events))

	require.True(t, p.report(t, "checkpoint", "undo", "--yes").Applied)
	before := len(p.lines(t))
	p.runUntil(t, before+3)
	var came []string
	for _, e := range p.lines(t)[before:] {
		came = append(came, e.Subject)
	}
	require.Equal(t, []string{"400", "401", p.events[len(p.events)-1].Subject}, came)
	p.events = append(p.events[:len(p.events)-1], p.lines(t)[before:]...)
}

// refusesWhatCannotBe: moves that make no sense, or that the server cannot serve any more.
func (p *past) refusesWhatCannotBe(t *testing.T) {
	before := p.checkpoint(t)
	refused := func(code int, words string, args ...string) {
		t.Helper()
		got, stdout, stderr := binlogd(t, p.dir, append([]string{"checkpoint"}, args...)...)
		require.Equal(t, code, got, stdout+stderr)
		require.Contains(t, stderr, words, args)
		require.Equal(t, before, p.checkpoint(t))
	}
	refused(exitConfig, "--zone", "rewind", "--to-time", "2026-11-29 10:00", "--yes")
	refused(exitConfig, "copy the whole id of an event", "rewind", "--to-event", "nonsense", "--yes")
	refused(exitConfig, "has no entry", "rewind", "--to-entry", "999999", "--yes")
	if p.gtidsOn {
		never := "11111111-71ca-11e1-9e33-c80aa9429562:1-5"
		if p.server.Flavor != "mysql" {
			never = "0-1-4000000000"
		}
		refused(exitConfig, "the server never executed "+never, "set", "--to-gtid", never, "--skip", "--yes")
		refused(exitConfig, "the server never executed "+never, "rewind", "--to-gtid", never, "--yes")
	}
	refused(exitConfig, "is not the beginning of a transaction", "rewind", "--to-position", increment(p.position), "--yes")
	p.server.Exec(t, fmt.Sprintf("INSERT INTO `%s`.orders VALUES ('next', 500, 1)", p.database))
	file, offset := p.server.BinlogPosition(t)
	var shown shownCheckpoint
	require.NoError(t, json.Unmarshal([]byte(p.command(t, "checkpoint", "show", "-o", "json")), &shown))
	require.Empty(t, shown.Source.Error)
	require.Positive(t, *shown.Source.Seconds)
	require.EqualValues(t, offset-shown.Position.Offset, *shown.Source.Bytes)
	require.Equal(t, p.gtidsOn, shown.Source.Behind != nil && *shown.Source.Behind == 1)
	require.True(t, shown.Source.Binlogs.Available)
	require.Equal(t, file, shown.Source.Binlogs.Needed)
	refused(exitConfig, "checkpoint set --skip", "rewind", "--to-position", fmt.Sprintf("%s:%d", file, offset), "--yes")
	p.runUntil(t, len(p.lines(t))+1)
	before = p.checkpoint(t)

	p.server.PurgeBinlogs(t)
	oldest := "the oldest possible point is " + p.server.BinlogFiles(t)[0]
	refused(exitSource, oldest, "rewind", "--to-event", p.events[0].ID, "--yes")
	refused(exitSource, oldest, "rewind", "--to-time", "2001-01-01T00:00:00Z", "--yes")
	refused(exitSource, oldest, "rewind", "--to-position", p.position, "--yes")
	if p.gtidsOn {
		refused(exitSource, oldest, "rewind", "--to-gtid", p.gtids, "--yes")
	}
}

// increment is a place in the middle of the transaction that begins at one.
func increment(position string) string {
	file, offset, _ := travel.ParsePosition(position)
	return fmt.Sprintf("%s:%d", file, offset+1)
}
