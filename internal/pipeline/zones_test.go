package pipeline_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// atTheChange are moments around New York's changes of the clock: an hour that it skips, and one that comes twice.
const atTheChange = `SET time_zone = '+00:00'; INSERT INTO tm (id, dt, ts, ts3) VALUES (10, '2026-03-08 02:30:00', '2026-03-08 07:30:00', '2026-03-08 06:59:59.999'),
	(11, '2026-11-01 01:30:00', '2026-11-01 05:30:00', '2026-11-01 06:30:00.5');
	SET time_zone = 'SYSTEM'; INSERT INTO tm (id, ts) VALUES (12, '2026-06-01 12:00:00'); SET time_zone = @@global.time_zone; INSERT INTO tm (id, ts) VALUES (13, '2026-06-01 12:00:00')`

// TestTimesWhateverTheZone: neither the zone of binlogd's process nor those of the server and of the sessions that write reach the events.
func TestTimesWhateverTheZone(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, testenv.Options) *testenv.Server{"mysql": testenv.StartMySQL, "mariadb": testenv.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, testenv.Options{Args: []string{"--default-time-zone=-03:30"}})
			db := server.Database(t)
			zones := []string{"UTC", "Asia/Shanghai", "America/New_York"}
			local := []string{"Z", "+08:00", "-0"} // in the log's times: the process is in its zone
			daemons := make([]*binlogd, len(zones))
			all := make([]settings, len(zones))
			for i, zone := range zones {
				all[i] = newSettings(t, server, db+".*")
				all[i].Zone = zone
				daemons[i] = all[i].daemon(t, "")
			}
			server.Exec(t, "USE "+db, readCase(t, "times"), atTheChange)
			var first []event
			for i, d := range daemons {
				awaitCaughtUp(t, server, all[i].Checkpoint)
				d.stop(t)
				require.Regexp(t, `time=[0-9T:.-]+`+regexp.QuoteMeta(local[i]), d.stderr.String())
				events := all[i].events(t)
				if first == nil {
					first = events
				}
				require.Equal(t, first, events, zones[i])
			}

			// What SELECT shows with time_zone='+00:00' is in them.
			require.Len(t, first, 6)
			for _, e := range first {
				shown := server.Query(t, "SELECT dt, CONVERT_TZ(ts, @@session.time_zone, '+00:00') AS ts, CONVERT_TZ(ts3, @@session.time_zone, '+00:00') AS ts3 FROM "+db+".tm WHERE id = ?", e.number(t, "id"))[0]
				for column, text := range shown {
					want := "null"
					if text != "" {
						want = `"` + text + `"`
						if !strings.HasPrefix(text, "0000") {
							want = `"` + strings.Replace(text, " ", "T", 1) + `"`
						}
						if column != "dt" {
							want = strings.TrimSuffix(want, `"`) + `Z"`
						}
					}
					require.Equalf(t, want, string(e.Data.Row[column]), "column %s of %s", column, e.raw)
				}
			}
		})
	}
}
