package publish

import "context"

// Warning is a setting of a sink's server that weakens what "durable" means, or that will
// make publishing fail: it works, at a price that Detail names.
type Warning struct {
	Detail string // what was found, and what it costs
	Remedy string // what to type to mend it
}

// warner is a sink that can say what its server is set to.
type warner interface {
	Warnings(ctx context.Context) ([]Warning, error)
}

// Inspect reports whether a sink can be reached and written to now, as its Ping does, and
// what its server's settings cost. A sink that was decorated is asked for its Ping only.
func Inspect(ctx context.Context, sink Sink) ([]Warning, error) {
	if err := sink.Ping(ctx); err != nil {
		return nil, err
	}
	if w, ok := sink.(warner); ok {
		return w.Warnings(ctx)
	}
	return nil, nil
}
