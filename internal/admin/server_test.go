package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/binlogd/binlogd/internal/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipeline is what the server under test tells of.
type pipeline struct {
	mu sync.Mutex
	s  admin.Snapshot
}

func (p *pipeline) snapshot() admin.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.s
}

func (p *pipeline) set(change func(s *admin.Snapshot)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.s)
}

// healthy is a pipeline that runs well.
func healthy() *pipeline {
	return &pipeline{s: admin.Snapshot{
		Name: "shop", Version: "1.2.3", GoMySQL: "v1.16.0", StartedAt: time.Now().Add(-time.Hour).UTC(),
		Source: admin.Source{
			Address: "127.0.0.1:3306", Connected: true, LastHeardAt: time.Now().UTC(), Reconnects: 2,
			Flavor: "mysql", Version: "9.7.4", UUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", ServerID: 7,
		},
		Sink:       admin.Sink{Kind: "kafka", Connected: true, Retries: 3},
		Position:   "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23",
		LagSeconds: 0.25, LagTransactions: 4, InFlightBytes: 4096, CheckpointAt: time.Now().Add(-10 * time.Second).UTC(),
		Transactions: 23, Events: 30, Bytes: 3000,
		Tables: []admin.Table{
			{Table: "shop.orders", Topic: "shop.orders", Type: "order.created", Events: 10, Bytes: 1000},
			{Table: "shop.orders", Topic: "shop.orders", Type: "order.paid", Events: 20, Bytes: 2000},
		},
	}}
}

// serve runs a server for as long as the test.
func serve(t *testing.T, p *pipeline) (url string) {
	t.Helper()
	server, err := admin.Listen(t.Context(), admin.Options{Listen: "127.0.0.1:0", Snapshot: p.snapshot, DeadAfter: 20 * time.Second})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	return "http://" + server.Address()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	return request(t, http.MethodGet, url)
}

func request(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(text)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	p := healthy()
	url := serve(t, p)
	status, body := get(t, url+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"ready": true}`, body)

	p.set(func(s *admin.Snapshot) { s.Sink.Connected, s.Sink.LastError = false, "connection refused" })
	status, body = get(t, url+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"ready": false, "not_ready": [{"part": "sink", "reason": "not connected to kafka: connection refused"}]}`, body)

	p.set(func(s *admin.Snapshot) { s.Source.Connected = false })
	status, body = get(t, url+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"ready": false, "not_ready": [
		{"part": "source", "reason": "not connected to 127.0.0.1:3306"},
		{"part": "sink", "reason": "not connected to kafka: connection refused"}]}`, body)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *admin.Snapshot)
		reason string // empty where healthy
	}{
		{name: "running", change: func(*admin.Snapshot) {}},
		{name: "sink away", change: func(s *admin.Snapshot) { s.Sink.Connected = false }},
		{name: "just lost", change: func(s *admin.Snapshot) { s.Source.Connected = false }},
		{name: "connected and held back by the sink", change: func(s *admin.Snapshot) {
			s.Source.LastHeardAt = time.Now().Add(-time.Hour)
		}},
		{name: "connecting for the first time", change: func(s *admin.Snapshot) {
			s.StartedAt, s.Source = time.Now(), admin.Source{Address: "127.0.0.1:3306"}
		}},
		{name: "dead", reason: "the source 127.0.0.1:3306 has been dead for 1m0s, longer than 20s: broken pipe", change: func(s *admin.Snapshot) {
			s.Source.Connected, s.Source.LastError, s.Source.LastHeardAt = false, "broken pipe", time.Now().Add(-time.Minute)
		}},
		{name: "never there", reason: "the source 127.0.0.1:3306 has been dead for 1h0m0s, longer than 20s", change: func(s *admin.Snapshot) {
			s.Source = admin.Source{Address: "127.0.0.1:3306"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := healthy()
			p.set(tt.change)
			status, body := get(t, serve(t, p)+"/healthz")
			if tt.reason == "" {
				require.Equal(t, http.StatusOK, status)
				require.JSONEq(t, `{"healthy": true}`, body)
				return
			}
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.JSONEq(t, fmt.Sprintf(`{"healthy": false, "reason": %q}`, tt.reason), body)
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	p := healthy()
	status, body := get(t, serve(t, p)+"/status")
	require.Equal(t, http.StatusOK, status)
	var got admin.Snapshot
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Empty(t, cmp.Diff(p.snapshot(), got))
	require.Contains(t, body, `"lag_transactions": 4`)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	p := healthy()
	url := serve(t, p)
	status, body := get(t, url+"/metrics")
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`binlogd_lag_seconds{name="shop"} 0.25`,
		`binlogd_lag_transactions{name="shop"} 4`,
		`binlogd_transactions_total{name="shop"} 23`,
		`binlogd_inflight_bytes{name="shop"} 4096`,
		`binlogd_source_connected{name="shop"} 1`,
		`binlogd_source_reconnects_total{name="shop"} 2`,
		`binlogd_sink_connected{name="shop"} 1`,
		`binlogd_sink_retries_total{name="shop"} 3`,
		`binlogd_events_total{name="shop",table="shop.orders",topic="shop.orders",type="order.created"} 10`,
		`binlogd_events_total{name="shop",table="shop.orders",topic="shop.orders",type="order.paid"} 20`,
		`binlogd_event_bytes_total{name="shop",table="shop.orders",topic="shop.orders"} 3000`,
		`binlogd_build_info{go_mysql="v1.16.0",name="shop",version="1.2.3"} 1`,
		"# TYPE binlogd_events_total counter",
		"# TYPE binlogd_lag_seconds gauge",
		"# TYPE go_goroutines gauge",
		"# TYPE process_resident_memory_bytes gauge",
	} {
		require.Contains(t, body, line+"\n")
	}
	require.Regexp(t, `binlogd_checkpoint_age_seconds\{name="shop"\} 1\d\.`, body)

	p.set(func(s *admin.Snapshot) {
		s.Source.Connected, s.Sink.Connected = false, false
		s.LagSeconds, s.LagTransactions, s.CheckpointAt = -1, -1, time.Time{}
	})
	_, body = get(t, url+"/metrics")
	require.Contains(t, body, `binlogd_source_connected{name="shop"} 0`)
	require.Contains(t, body, `binlogd_sink_connected{name="shop"} 0`)
	for _, unknown := range []string{"binlogd_lag_seconds{", "binlogd_lag_transactions{", "binlogd_checkpoint_age_seconds{"} {
		require.NotContains(t, body, unknown)
	}
}

func TestMetricsOfManyTables(t *testing.T) {
	t.Parallel()
	p := healthy()
	const tables = 5000
	p.set(func(s *admin.Snapshot) {
		s.Tables = nil
		for i := range tables {
			name := fmt.Sprintf("shop.t%04d", i)
			s.Tables = append(s.Tables, admin.Table{Table: name, Topic: name, Type: "t.created", Events: 1, Bytes: 100})
		}
	})
	began := time.Now()
	_, body := get(t, serve(t, p)+"/metrics")
	require.Equal(t, tables, strings.Count(body, "\nbinlogd_events_total{"))
	require.Equal(t, tables, strings.Count(body, "\nbinlogd_event_bytes_total{"))
	require.Less(t, time.Since(began), 10*time.Second)
}

// A label that Prometheus cannot carry fails the scrape, and must not end the process.
func TestMetricsOfUnprintableTable(t *testing.T) {
	t.Parallel()
	p := healthy()
	p.set(func(s *admin.Snapshot) { s.Tables[0].Table = "shop.\xff" })
	url := serve(t, p)
	status, _ := get(t, url+"/metrics")
	require.Equal(t, http.StatusInternalServerError, status)
	status, _ = get(t, url+"/readyz")
	require.Equal(t, http.StatusOK, status)
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	url := serve(t, healthy())
	status, body := get(t, url+"/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "/metrics")
	status, _ = get(t, url+"/nothing")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = request(t, http.MethodPost, url+"/healthz")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, body = request(t, http.MethodHead, url+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, body)
}

func TestOff(t *testing.T) {
	t.Parallel()
	server, err := admin.Listen(t.Context(), admin.Options{})
	require.NoError(t, err)
	require.Empty(t, server.Address())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, server.Serve(ctx))
	require.NoError(t, server.Close())
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for listen, remedy := range map[string]string{
		taken.Addr().String(): "another process, perhaps another binlogd, has the port",
		"192.0.2.1:9808":      "this machine does not have that address",
		"9808":                "set admin.listen to host:port",
		"127.0.0.1:99999":     "set admin.listen to host:port",
	} {
		_, err := admin.Listen(t.Context(), admin.Options{Listen: listen, Snapshot: healthy().snapshot})
		var refused *admin.ListenError
		require.ErrorAs(t, err, &refused, listen)
		require.ErrorContains(t, err, "admin.listen")
		require.ErrorContains(t, err, listen)
		require.ErrorContains(t, err, remedy)
	}
}

// A server that is never served gives its port up, and a served one when it ends, even
// while somebody holds a connection open.
func TestPortIsGivenUp(t *testing.T) {
	t.Parallel()
	o := admin.Options{Listen: "127.0.0.1:0", Snapshot: healthy().snapshot}
	server, err := admin.Listen(t.Context(), o)
	require.NoError(t, err)
	o.Listen = server.Address()
	require.NoError(t, server.Close())
	require.NoError(t, server.Close())

	server, err = admin.Listen(t.Context(), o)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	idle, err := new(net.Dialer).DialContext(t.Context(), "tcp", o.Listen)
	require.NoError(t, err)
	defer func() { require.NoError(t, idle.Close()) }()
	_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\n")
	require.NoError(t, err)
	stop()
	require.NoError(t, <-served)

	server, err = admin.Listen(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, server.Close())
}

func TestServeReportsLostListener(t *testing.T) {
	t.Parallel()
	server, err := admin.Listen(t.Context(), admin.Options{Listen: "127.0.0.1:0", Snapshot: healthy().snapshot})
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.ErrorContains(t, server.Serve(t.Context()), "serve admin.listen at 127.0.0.1:")
}
