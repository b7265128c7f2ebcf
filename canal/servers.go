package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/client"
)

// Servers are the servers that one source may be read from, by address. One of them is in use; Choose changes to another only
// where that one cannot serve the place, and only to one that can: that has all GTIDs of it and has purged none behind it.
type Servers struct {
	connect   ConnectOptions
	addresses []string

	mu        sync.Mutex
	present   string // the address in use
	used      bool   // reading went on there, or began
	failovers uint64
	known     *GTIDSet // executed by the server in use, as it last said
}

// NewServers takes the addresses of o. The first is in use until Choose says otherwise.
func NewServers(o ConnectOptions) *Servers {
	s := &Servers{connect: o, addresses: o.all()}
	if len(s.addresses) == 0 {
		s.addresses = []string{""} // Connect says what is wrong
	}
	s.present = s.addresses[0]
	return s
}

// Addresses are all of them, in the order of the configuration.
func (s *Servers) Addresses() []string { return s.addresses }

// Present is the way to the server in use.
func (s *Servers) Present() ConnectOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connect.At(s.present)
}

// Failovers is how often reading went on with another server than before.
func (s *Servers) Failovers() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failovers
}

// Connect connects to the server in use.
func (s *Servers) Connect(ctx context.Context) (*client.Conn, error) { return s.Present().Connect(ctx) }

// Choose finds the server to go on with from a place: the one in use if it can serve it; at the start the one that the place was
// read from; else the first of the configuration that can. The error is that of the only address. With several it is one that waiting may mend
// as long as one of them does not answer or has not caught up, else a *SourceError or *ConfigError that names what
// each lacks.
func (s *Servers) Choose(ctx context.Context, from Resume) (Answer, error) {
	s.mu.Lock()
	present, used := s.present, s.used
	s.mu.Unlock()
	var answers []Answer
	if used || len(s.addresses) == 1 {
		first := verify(ctx, s.connect.At(present), from)
		if first.Err == nil {
			s.use(first)
			return first, nil
		}
		if len(s.addresses) == 1 || ctx.Err() != nil {
			return first, first.Err
		}
		answers = append(answers, first)
	}
	others := s.ask(ctx, from, answers)
	s.refuseErrant(others, from)
	answers = append(answers, others...)
	best, err := s.Best(answers, from)
	if err != nil {
		return Answer{}, err
	}
	s.use(best)
	return best, nil
}

// Best is the answer that Choose takes at the start: of the server that the place was read from, else the first without an error.
func (s *Servers) Best(answers []Answer, from Resume) (Answer, error) {
	best := -1
	for i, a := range answers {
		if a.Err == nil && (best < 0 || sameServer(a.Server, from.Server) && !sameServer(answers[best].Server, from.Server)) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return answers[best], nil
	case len(answers) == 1:
		return answers[0], answers[0].Err
	}
	return Answer{}, noServer(answers)
}

// Answers asks all addresses, in the order of the configuration.
func (s *Servers) Answers(ctx context.Context, from Resume) []Answer {
	answers := s.ask(ctx, from, nil)
	s.refuseErrant(answers, from)
	return answers
}

// ask asks all addresses at once that were not asked yet.
func (s *Servers) ask(ctx context.Context, from Resume, asked []Answer) []Answer {
	var group sync.WaitGroup
	var answers []Answer
	for _, address := range s.addresses {
		if !slices.ContainsFunc(asked, func(a Answer) bool { return a.Address == address }) {
			answers = append(answers, Answer{Address: address})
		}
	}
	for i := range answers {
		group.Go(func() { answers[i] = verify(ctx, s.connect.At(answers[i].Address), from) })
	}
	group.Wait()
	return answers
}

// refuseErrant refuses replicas, other than the server that the place was read from, with transactions of their own: once those
// were read, no other server would have all GTIDs of the place.
func (s *Servers) refuseErrant(answers []Answer, from Resume) {
	if len(s.addresses) == 1 {
		return
	}
	s.mu.Lock()
	known := s.known.Clone()
	s.mu.Unlock()
	for i := range answers {
		a := &answers[i]
		if a.Err != nil || a.errant.IsEmpty() || sameServer(a.Server, from.Server) {
			continue
		}
		errant := a.errant.Subtract(known)
		for _, other := range answers {
			if other.Address != a.Address && !sameServer(other.Server, a.Server) {
				errant = errant.Subtract(other.executed)
			}
		}
		if !errant.IsEmpty() {
			err := fmt.Errorf("the replica has transactions of its own, which its source does not have: %s", shorten(errant))
			a.Err = &LagError{Err: err, Remedy: "promote it, if it is to take over, or rebuild it"}
		}
	}
}

// use notes that reading goes on with a server.
func (s *Servers) use(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present, s.used, s.known = a.Address, true, a.executed
}

func (s *Servers) failedOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failovers++
}

// noServer is why none of several servers can go on.
func noServer(answers []Answer) error {
	var config *ConfigError
	var source *SourceError
	reasons := make([]string, len(answers))
	final := true
	for i, a := range answers {
		reasons[i] = a.Address + ": " + a.Err.Error()
		var c *ConfigError
		var s *SourceError
		switch {
		case nameNotFound(a.Err):
			final = false
		case errors.As(a.Err, &s):
			source = s
		case errors.As(a.Err, &c):
			config = c
		default:
			final = false
		}
	}
	err := fmt.Errorf("no server of source.addresses can go on from the checkpoint: %s", strings.Join(reasons, " | "))
	const remedy = "the checkpoint is kept; bring a server back that has all of its transactions, or name one in source.addresses"
	switch {
	case !final:
		return err
	case source != nil:
		return &SourceError{Err: err, Remedy: remedy}
	case config != nil:
		return &ConfigError{Err: err, Remedy: "mend what the messages name"}
	}
	return err
}
