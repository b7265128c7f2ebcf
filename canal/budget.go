package canal

import (
	"context"
	"sync"
)

// budget bounds the bytes in flight between the reader and the sink. Who asks for more than the whole budget waits until
// nothing else is in flight, and then passes alone.
type budget struct {
	size int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // has room for one; signals that used became less
}

func newBudget(size int64) *budget { return &budget{size: size, freed: make(chan struct{}, 1)} }

// acquire waits until n more bytes fit. It is called by one goroutine.
func (b *budget) acquire(ctx context.Context, n int64) error {
	for {
		b.mu.Lock()
		if b.used == 0 || b.used+n <= b.size {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		b.mu.Unlock()
		select {
		case <-b.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// adjust adds n bytes, which may be negative, without waiting.
func (b *budget) adjust(n int64) {
	b.mu.Lock()
	b.used += n
	b.mu.Unlock()
	if n < 0 {
		select {
		case b.freed <- struct{}{}:
		default:
		}
	}
}

func (b *budget) inFlight() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
