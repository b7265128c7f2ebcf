package admin

import (
	"fmt"
	"time"
)

// health is the answer of /healthz.
type health struct {
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
}

// checkHealth calls the process unhealthy when the source has been disconnected, and not
// heard of, for longer than deadAfter. While connected it may be silent: reading pauses
// when the sink is slow, and a connection that is dead is noticed by the source itself. A
// sink that is away does not count either: a restart would not bring it back.
func checkHealth(s Snapshot, now time.Time, deadAfter time.Duration) health {
	if s.Source.Connected {
		return health{Healthy: true}
	}
	heard := s.Source.LastHeardAt
	if heard.Before(s.StartedAt) { // the first connection gets its time too
		heard = s.StartedAt
	}
	silent := now.Sub(heard)
	if silent <= deadAfter {
		return health{Healthy: true}
	}
	return health{Reason: because(
		fmt.Sprintf("the source %s has been dead for %s, longer than %s", s.Source.Address, silent.Round(time.Second), deadAfter), s.Source.LastError)}
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool       `json:"ready"`
	NotReady []notReady `json:"not_ready,omitempty"`
}

type notReady struct {
	Part   string `json:"part"` // source or sink
	Reason string `json:"reason"`
}

// checkReadiness calls the pipeline ready while it is connected to both ends.
func checkReadiness(s Snapshot) readiness {
	var missing []notReady
	if !s.Source.Connected {
		missing = append(missing, notReady{"source", because("not connected to "+s.Source.Address, s.Source.LastError)})
	}
	if !s.Sink.Connected {
		missing = append(missing, notReady{"sink", because("not connected to "+s.Sink.Kind, s.Sink.LastError)})
	}
	return readiness{Ready: len(missing) == 0, NotReady: missing}
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
