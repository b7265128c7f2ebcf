package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry of its own with binlogd's metrics, and those of Go and of
// the process.
func newRegistry(snapshot func() Snapshot) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(snapshot),
	)
	return registry
}

// metric is one with a single value for the pipeline.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// value reports false where there is none to tell: the metric is then absent.
	value func(s *Snapshot, now time.Time) (float64, bool)
}

// collector makes metrics out of one Snapshot a scrape, so that they fit each other and the
// pipeline keeps its counts once. Every metric has the pipeline's name as the label name.
type collector struct {
	snapshot func() Snapshot
	metrics  []metric
	events   *prometheus.Desc
	bytes    *prometheus.Desc
	inUse    *prometheus.Desc
	build    *prometheus.Desc
}

const (
	counterValue = prometheus.CounterValue
	gaugeValue   = prometheus.GaugeValue
)

func newCollector(snapshot func() Snapshot) *collector {
	c := &collector{
		snapshot: snapshot,
		events:   describe("events_total", "Events that were published and are durable.", "table", "topic", "type"),
		bytes:    describe("event_bytes_total", "Bytes of the payloads of published events.", "table", "topic"),
		inUse:    describe("source_in_use", "1 for the address that the source is read from, 0 for the others.", "address"),
		build:    describe("build_info", "Always 1; its labels tell the versions.", "version", "go_mysql"),
	}
	c.add("lag_seconds", "Age of the oldest change that is not durable yet, in seconds; 0 when caught up, absent when not known.", gaugeValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return s.LagSeconds, s.LagSeconds >= 0 })
	c.add("lag_transactions", "Transactions of the server that are not durable yet; absent when not known.", gaugeValue,
		func(s *Snapshot, _ time.Time) (float64, bool) {
			return float64(s.LagTransactions), s.LagTransactions >= 0
		})
	c.add("transactions_total", "Transactions that were passed, with events and without.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.Transactions), true })
	c.add("inflight_bytes", "Bytes that were read and are not durable yet.", gaugeValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.InFlightBytes), true })
	c.add("checkpoint_age_seconds", "Seconds since the checkpoint was last saved, which it is when it has changed; absent before the first time.", gaugeValue,
		func(s *Snapshot, now time.Time) (float64, bool) {
			return now.Sub(s.CheckpointAt).Seconds(), !s.CheckpointAt.IsZero()
		})
	c.add("replaced_text_total", "Values whose bytes were no text in their character set and were replaced.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.ReplacedText), true })
	c.add("skipped_changes_total", "Changes without an event because a rule failed and says on_error: skip.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.Skipped), true })
	c.add("source_connected", "1 while connected to the source, else 0.", gaugeValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return truth(s.Source.Connected), true })
	c.add("source_reconnects_total", "Connections to the source after the first.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.Source.Reconnects), true })
	c.add("source_failovers_total", "How often reading went on with another server than before.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.Source.Failovers), true })
	c.add("sink_connected", "1 while publishing works, else 0.", gaugeValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return truth(s.Sink.Connected), true })
	c.add("sink_retries_total", "Attempts to publish that failed and were made again.", counterValue,
		func(s *Snapshot, _ time.Time) (float64, bool) { return float64(s.Sink.Retries), true })
	return c
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("binlogd_"+name, help, append([]string{"name"}, labels...), nil)
}

func (c *collector) add(name, help string, kind prometheus.ValueType, value func(*Snapshot, time.Time) (float64, bool)) {
	c.metrics = append(c.metrics, metric{desc: describe(name, help), kind: kind, value: value})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		out <- m.desc
	}
	out <- c.events
	out <- c.bytes
	out <- c.inUse
	out <- c.build
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s, now := c.snapshot(), time.Now()
	for _, m := range c.metrics {
		if value, known := m.value(&s, now); known {
			out <- constMetric(m.desc, m.kind, value, s.Name)
		}
	}
	type stream struct{ table, topic string }
	bytes := make(map[stream]uint64, len(s.Tables))
	for _, t := range s.Tables {
		out <- constMetric(c.events, counterValue, float64(t.Events), s.Name, t.Table, t.Topic, t.Type)
		bytes[stream{t.Table, t.Topic}] += t.Bytes
	}
	for to, n := range bytes {
		out <- constMetric(c.bytes, counterValue, float64(n), s.Name, to.table, to.topic)
	}
	for _, address := range s.Source.Addresses {
		out <- constMetric(c.inUse, gaugeValue, truth(address == s.Source.Address), s.Name, address)
	}
	out <- constMetric(c.build, gaugeValue, 1, s.Name, s.Version, s.GoMySQL)
}

// constMetric makes a scrape fail, and nothing else, where a label cannot be written.
func constMetric(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
