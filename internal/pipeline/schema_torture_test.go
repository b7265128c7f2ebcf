package pipeline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// TestSchemaTorture changes tables at random between writes, and reads from random places: each event must show the row as
// the database showed it when it was written.
func TestSchemaTorture(t *testing.T) {
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		w := &torture{t: t, server: server, db: server.Database(t), random: rand.New(rand.NewPCG(seed, 1)), rows: make(map[string]string)}
		s := newSettings(t, server, w.db+".t*")
		s.once(t, server) // its history begins before the first table
		start := server.GTIDExecuted(t)
		var live *live
		var places []string
		deadline := time.Now().Add(6 * time.Second)
		for round := 0; time.Now().Before(deadline); round++ {
			if round%40 == 0 {
				if live != nil {
					live.stop(t)
					live = nil
				} else if w.random.IntN(2) == 0 {
					live = s.run(t, nil)
				}
			}
			if w.random.IntN(25) == 0 {
				places = append(places, server.GTIDExecuted(t))
			}
			w.step()
		}
		if live != nil {
			live.caughtUp(t, server)
			live.stop(t)
		}
		s.once(t, server)
		w.verify(s.events(t))

		// From checkpoints in between, with the history that is there by now.
		events := s.events(t)
		w.random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		for _, place := range places[:min(len(places), 4)] {
			after := s.rewound(t, place)
			after.once(t, server)
			have := after.events(t)
			require.Equal(t, slices.Concat(events[len(events)-len(have):]), have) // nil where nothing was left to read
			set, err := canal.ParseGTIDSet(flavorOf(server), place)
			require.NoError(t, err)
			if len(have) < len(events) { // nothing was left out
				g, err := canal.ParseGTID(flavorOf(server), events[len(events)-len(have)-1].GTID)
				require.NoError(t, err)
				require.True(t, set.Contains(g))
			}
		}

		// From the first place again, with nothing but the statements to go by.
		again := newSettings(t, server, w.db+".t*")
		again.Start = "gtid:" + start
		again.once(t, server)
		require.Equal(t, s.events(t), again.events(t))
	})
}

func flavorOf(server *testenv.Server) canal.Flavor {
	if server.Flavor == "mariadb" {
		return canal.MariaDB
	}
	return canal.MySQL
}

// rewound are settings for another destination whose checkpoint stands at an earlier place, with the schema history as it is.
func (s settings) rewound(t *testing.T, gtids string) settings {
	t.Helper()
	r := s.into(&fileDestination{path: t.TempDir() + "/events.jsonl"})
	file, err := checkpoint.OpenFile(s.Checkpoint, "test")
	require.NoError(t, err)
	record, err := file.Load(t.Context())
	require.NoError(t, err)
	set, err := canal.ParseGTIDSet(record.Server.Flavor, gtids)
	require.NoError(t, err)
	record.Position = canal.Position{GTIDs: set}
	require.NoError(t, file.Save(t.Context(), record))
	require.NoError(t, file.Close())
	return r
}

// torture is the database under test.
type torture struct {
	t      *testing.T
	server *testenv.Server
	db     string
	random *rand.Rand
	tables []string
	names  int
	id     int
	rows   map[string]string // of each id, as the database showed it
}

func (w *torture) exec(format string, args ...any) {
	w.t.Helper()
	w.server.Exec(w.t, "USE "+w.db, fmt.Sprintf(format, args...))
}

func (w *torture) fresh(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

func (w *torture) pick() string { return w.tables[w.random.IntN(len(w.tables))] }

// columns are a table's columns but for its key, in order.
func (w *torture) columns(table string) []string {
	var names []string
	for _, row := range w.server.Query(w.t, "SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME <> 'id' ORDER BY ORDINAL_POSITION", w.db, table) {
		names = append(names, row["name"])
	}
	return names
}

func (w *torture) kind() string {
	return []string{"VARCHAR(10)", "VARCHAR(10)", "VARCHAR(10) CHARACTER SET latin1", "INT", "INT UNSIGNED", "BIGINT", "SMALLINT UNSIGNED", "ENUM('1','2','3')", "DECIMAL(8,2)"}[w.random.IntN(9)]
}

func (w *torture) step() {
	if len(w.tables) < 3 {
		w.create()
		return
	}
	switch w.random.IntN(24) {
	case 0:
		w.create()
	case 1:
		i := w.random.IntN(len(w.tables))
		w.exec("DROP TABLE %s", w.tables[i])
		w.tables = append(w.tables[:i], w.tables[i+1:]...)
	case 2: // the same name, another table
		name := w.pick()
		w.exec("DROP TABLE %s; CREATE TABLE %[1]s (%s)", name, w.definition())
	case 3: // two tables change names
		a, b := w.pick(), w.pick()
		if a != b {
			w.exec("RENAME TABLE %s TO x_swap, %s TO %[1]s, x_swap TO %[2]s", a, b)
		}
	case 4: // as online schema changes do
		name := w.pick()
		w.exec("CREATE TABLE _new LIKE %s; ALTER TABLE _new ADD %s %s FIRST; RENAME TABLE %[1]s TO _old, _new TO %[1]s; DROP TABLE _old", name, w.fresh("c"), w.kind())
	case 5:
		i := w.random.IntN(len(w.tables))
		name := w.fresh("t")
		w.exec("ALTER TABLE %s RENAME TO %s", w.tables[i], name)
		w.tables[i] = name
	case 6, 7, 8, 9, 10:
		w.alter(w.pick())
	default:
		w.insert(w.pick())
	}
}

func (w *torture) definition() string {
	columns := []string{"id INT PRIMARY KEY"}
	for range 2 + w.random.IntN(3) {
		columns = append(columns, w.fresh("c")+" "+w.kind())
	}
	w.random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	return strings.Join(columns, ", ")
}

func (w *torture) create() {
	name := w.fresh("t")
	w.exec("CREATE TABLE %s (%s)", name, w.definition())
	w.tables = append(w.tables, name)
}

func (w *torture) alter(table string) {
	columns := w.columns(table)
	if len(columns) < 2 {
		w.exec("ALTER TABLE %s ADD %s %s, ADD %s %s", table, w.fresh("c"), w.kind(), w.fresh("c"), w.kind())
		return
	}
	w.random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	a, b := columns[0], columns[1]
	w.exec("SET sql_mode=''; ALTER TABLE %s %s", table, []string{
		"ADD " + w.fresh("c") + " " + w.kind(),
		"ADD " + w.fresh("c") + " " + w.kind() + " AFTER " + a,
		"DROP " + a,
		"DROP " + a + ", ADD " + w.fresh("c") + " " + w.kind() + " FIRST",
		"RENAME COLUMN " + a + " TO " + b + ", RENAME COLUMN " + b + " TO " + a,
		"RENAME COLUMN " + a + " TO " + w.fresh("c"),
		"MODIFY " + a + " VARCHAR(10) FIRST",
		"MODIFY " + a + " VARCHAR(10) AFTER " + b,
		"CHANGE " + a + " " + w.fresh("c") + " VARCHAR(10) AFTER " + b,
		"MODIFY " + a + " VARCHAR(12)",
	}[w.random.IntN(10)])
}

// insert writes a row and keeps what the database shows of it.
func (w *torture) insert(table string) {
	w.id++
	columns := w.columns(table)
	values := make([]string, len(columns))
	shown := make([]string, 0, 2*len(columns))
	for i, c := range columns {
		values[i] = fmt.Sprint(1 + w.random.IntN(3))
		shown = append(shown, "'"+c+"'", "CAST("+c+" AS CHAR)")
	}
	names := strings.Join(append([]string{"id"}, columns...), ", ")
	w.exec("INSERT INTO %s (%s) VALUES (%s)", table, names, strings.Join(append([]string{fmt.Sprint(w.id)}, values...), ", "))
	row := w.server.Query(w.t, fmt.Sprintf("SELECT JSON_OBJECT('id', CAST(id AS CHAR) %s) AS shown FROM %s.%s WHERE id = %d",
		strings.Join(append([]string{""}, shown...), ", "), w.db, table, w.id))[0]["shown"]
	w.rows[fmt.Sprint(w.id)] = table + " " + canonical(w.t, row)
}

// verify holds the created events against what the database showed.
func (w *torture) verify(events []event) {
	found := make(map[string]string)
	for _, e := range events {
		if !strings.HasSuffix(e.Type, ".created") {
			continue
		}
		text, err := json.Marshal(e.Data.Row)
		require.NoError(w.t, err)
		found[strings.Trim(string(e.Data.Row["id"]), `"`)] = e.table() + " " + canonical(w.t, string(text))
	}
	require.Greater(w.t, len(w.rows), 10)
	require.Equal(w.t, w.rows, found)
}

// canonical is a JSON object with its members in order and every scalar as text.
func canonical(t *testing.T, object string) string {
	t.Helper()
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&members))
	for name, value := range members {
		members[name] = fmt.Sprint(value)
	}
	text, err := json.Marshal(members)
	require.NoError(t, err)
	return string(text)
}
