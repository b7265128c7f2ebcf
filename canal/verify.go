package canal

import (
	"context"
	"errors"
	"net"
	"time"
)

// Answer is what a server at one of the addresses says to a place.
type Answer struct {
	Address string
	Server  Identity // as far as it answered
	// Err is why reading cannot go on there: a *ConfigError or *SourceError where waiting does not help, a *LagError where
	// a replica has not caught up, else that the server does not answer. Nil if it can.
	Err error

	executed *GTIDSet // nil where it did not say
	errant   *GTIDSet // transactions of its own while it is a replica, beyond the place
}

// verify makes sure that the server behind the address can serve a place, and says who it is.
func verify(ctx context.Context, o ConnectOptions, from Resume) Answer {
	// A replica hears of a transaction a moment before the server counts it as executed.
	const (
		attempts = 4
		pause    = 300 * time.Millisecond
	)
	for attempt := 1; ; attempt++ {
		answer := verifyOnce(ctx, o, from)
		var source *SourceError
		var rewritten *rewrittenError
		if !errors.As(answer.Err, &source) || errors.As(answer.Err, &rewritten) || attempt == attempts {
			return answer
		}
		if !sleep(ctx, pause) {
			answer.Err = ctx.Err()
			return answer
		}
	}
}

func verifyOnce(ctx context.Context, o ConnectOptions, from Resume) Answer {
	ctx, cancel := context.WithTimeout(ctx, 2*o.timeout())
	defer cancel()
	answer := Answer{Address: o.Address}
	inspector, err := Inspect(ctx, o)
	if err != nil {
		answer.Err = err
		return answer
	}
	defer func() { _ = inspector.Close() }()
	answer.Server = inspector.Server()
	answer.Err = answer.look(ctx, inspector, from)
	return answer
}

// look asks the server whether it can serve the place.
func (a *Answer) look(ctx context.Context, i *Inspector, from Resume) error {
	for _, c := range append([]Check{i.checkBinlog()}, i.checkReplica(ctx)...) {
		if c.Err != nil {
			return c.Err
		}
	}
	if from.Position.GTIDs == nil && from.Position.File == "" { // a first start: any will do
		return nil
	}
	for _, c := range i.CheckPlace(ctx, PreflightAt(from)) {
		if c.Err != nil {
			return c.Err
		}
	}
	if from.Position.GTIDs == nil {
		return nil
	}
	var err error
	if a.executed, err = i.executed(); err != nil {
		return err
	}
	r, err := i.replica(ctx)
	if err != nil {
		return err
	}
	a.errant, err = i.ownTransactions(r, from.needed())
	return err
}

// needed are the GTIDs that a server must have to go on from there, all that was published of included.
func (r Resume) needed() *GTIDSet {
	if r.Position.GTIDs == nil {
		return nil
	}
	needed := r.Position.GTIDs.Clone()
	if r.Published != nil {
		needed.AddSet(r.Published.GTIDs)
	}
	for _, held := range r.Held {
		needed.Add(held.GTID)
	}
	if r.Inside != nil {
		needed.Add(r.Inside.GTID)
	}
	return needed
}

// PreflightAt are the options to check whether a server can serve a place.
func PreflightAt(from Resume) PreflightOptions {
	return PreflightOptions{Checkpoint: &from.Position, Server: from.Server, Needs: from.needed(), ReadAt: from.ReadAt}
}

// nameNotFound: the name server does not know the host; while a daemon runs that is often for a moment only.
func nameNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns)
}
