package publish

import "github.com/rcrowley/go-metrics"

// noMetrics is where sarama's own metrics go. It would keep several histograms of some
// kilobytes for every topic, which adds up to far more than binlogd's whole memory where
// thousands of tables are captured, and a goroutine for its meters that never ends.
type noMetrics struct{}

// GetOrRegister returns a metric of the kind that is asked for, which does nothing.
func (noMetrics) GetOrRegister(_ string, metric any) any {
	switch metric.(type) {
	case func() metrics.Histogram, metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Meter, metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Counter, metrics.Counter:
		return metrics.NilCounter{}
	default:
		return metric
	}
}

func (noMetrics) Each(func(string, any)) {}

func (noMetrics) Get(string) any { return nil }

func (noMetrics) GetAll() map[string]map[string]any { return nil }

func (noMetrics) Register(string, any) error { return nil }

func (noMetrics) RunHealthchecks() {}

func (noMetrics) Unregister(string) {}

func (noMetrics) UnregisterAll() {}
