package canal

import (
	"context"
	"errors"
	"net"
	"time"
)

// verify makes sure that the server behind the address can serve a place, and says who it is.
func verify(ctx context.Context, o ConnectOptions, from Resume) (Identity, error) {
	// A replica hears of a transaction a moment before the server counts it as executed.
	const (
		attempts = 4
		pause    = 300 * time.Millisecond
	)
	for attempt := 1; ; attempt++ {
		server, err := verifyOnce(ctx, o, from)
		var source *SourceError
		if !errors.As(err, &source) || attempt == attempts {
			return server, err
		}
		if !sleep(ctx, pause) {
			return server, ctx.Err()
		}
	}
}

func verifyOnce(ctx context.Context, o ConnectOptions, from Resume) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*o.timeout())
	defer cancel()
	inspector, err := Inspect(ctx, o)
	if err != nil {
		return Identity{}, err
	}
	defer func() { _ = inspector.Close() }()
	place := from.Position
	for _, c := range inspector.CheckPlace(ctx, PreflightOptions{Checkpoint: &place, Server: from.Server}) {
		if c.Err != nil {
			return inspector.Server(), c.Err
		}
	}
	return inspector.Server(), nil
}

// nameNotFound: the name server does not know the host; while a daemon runs that is often for a moment only.
func nameNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns)
}
