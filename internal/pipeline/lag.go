package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
)

// lag asks the server now and then how far it is, over a connection of its own.
type lag struct {
	servers *canal.Servers
	tracker *checkpoint.Tracker
	logger  *slog.Logger

	mu           sync.Mutex
	transactions int64 // −1: not known
	caughtUp     bool
}

func newLag(servers *canal.Servers, tracker *checkpoint.Tracker, logger *slog.Logger) *lag {
	return &lag{servers: servers, tracker: tracker, logger: logger, transactions: -1}
}

// watch asks until ctx ends. A server that does not answer is no error here: the source notices and says so.
func (l *lag) watch(ctx context.Context) {
	var inspector *canal.Inspector
	defer func() {
		if inspector != nil {
			_ = inspector.Close()
		}
	}()
	ticker := time.NewTicker(lagInterval)
	defer ticker.Stop()
	for {
		inspector = l.ask(ctx, inspector)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask compares the server's place with ours, and gives the connection back as long as it works.
func (l *lag) ask(ctx context.Context, inspector *canal.Inspector) *canal.Inspector {
	ctx, cancel := context.WithTimeout(ctx, lagInterval)
	defer cancel()
	var err error
	if inspector != nil && inspector.Address() != l.servers.Present().Address { // a failover
		_ = inspector.Close()
		inspector = nil
	}
	if inspector == nil {
		inspector, err = canal.Inspect(ctx, l.servers.Present())
	} else if err = inspector.Refresh(ctx); err != nil {
		_ = inspector.Close()
		inspector = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transactions, l.caughtUp = -1, false
	if err != nil {
		l.logger.Debug("asking the server how far it is", "error", err)
		return nil
	}
	if n, known := inspector.Behind(l.tracker.Peek().Position); known {
		l.transactions = int64(n)
		l.caughtUp = n == 0
	}
	return inspector
}

// now is the lag as last heard: in transactions, −1 where it is not known, and in time since the newest durable one was committed.
func (l *lag) now(lastDone time.Time) (transactions int64, behind time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.caughtUp || lastDone.IsZero() {
		return l.transactions, 0
	}
	return l.transactions, max(time.Since(lastDone), 0)
}
