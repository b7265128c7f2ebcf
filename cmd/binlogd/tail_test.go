package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
	"github.com/binlogd/binlogd/mapping"
)

func TestTailLine(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 123e6, time.Local)
	event := func(kind, payload string) *mapping.Event {
		return &mapping.Event{Type: kind, OccurredAt: at, Payload: []byte(payload)}
	}
	for name, c := range map[string]struct {
		event  *mapping.Event
		colors bool
		want   string
	}{
		"created": {
			event: event("orders.created", `{"subject":"7","data":{"row":{"id":7,"status":"pending","note":null}}}`),
			want:  `10:00:00.123 orders.created 7  id: 7  status: "pending"  note: null`,
		},
		"updated": {
			event: event("orders.updated", `{"subject":"7","data":{"row":{"id":7,"status":"paid"},"old":{"status":"pending"}}}`),
			want:  `10:00:00.123 orders.updated 7  id: 7  status: "pending" → "paid"`,
		},
		"colours": {
			event: event("orders.updated", `{"subject":"7","data":{"row":{"id":7,"status":"paid"},"old":{"status":"pending"}}}`), colors: true,
			want: "\x1b[2m10:00:00.123\x1b[0m \x1b[33morders.updated\x1b[0m \x1b[1m7\x1b[0m  \x1b[2mid: 7\x1b[0m  \x1b[1;33mstatus:\x1b[0m \x1b[31m\"pending\"\x1b[0m → \x1b[32m\"paid\"\x1b[0m",
		},
		"a value that would steer the terminal": {
			event: event("t.deleted", "{\"data\":{\"row\":{\"a\u009b\":\"\u009b31m\"}}}"),
			want:  `10:00:00.123 t.deleted  a\u009b: "\u009b31m"`,
		},
		"a long value": {
			event: event("t.created", `{"subject":"1","data":{"row":{"a":"`+strings.Repeat("ü", 100)+`"}}}`),
			want:  `10:00:00.123 t.created 1  a: "` + strings.Repeat("ü", 58) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			line, err := newStyle(c.colors).line(nil, c.event)
			require.NoError(t, err)
			require.Equal(t, c.want+"\n", string(line))
		})
	}
}

func TestTailShowsChanges(t *testing.T) {
	server := testenv.MySQL(t)
	db := server.Database(t)
	server.Exec(t, "USE "+db, "CREATE TABLE orders (id INT PRIMARY KEY, status VARCHAR(10))")
	d := startDaemon(t, t.TempDir(), "tail", "--source", server.RootUser+":"+server.RootPassword+"@"+server.Addr+"/"+db)
	d.await(t, "reading the binlog")
	server.Exec(t, "USE "+db, "INSERT INTO orders VALUES (1,'pending')", "UPDATE orders SET status='paid'", "DELETE FROM orders")
	eventually(t, func() bool { return strings.Count(d.stdout.String(), "\n") == 3 }, "three lines")
	lines := strings.Split(d.stdout.String(), "\n")
	require.Contains(t, lines[0], `orders.created 1  id: 1  status: "pending"`)
	require.Contains(t, lines[1], `orders.updated 1  id: 1  status: "pending" → "paid"`)
	require.Contains(t, lines[2], `orders.deleted 1  id: 1  status: "paid"`)
	require.Equal(t, exitOK, d.stop(t, os.Interrupt))
}
