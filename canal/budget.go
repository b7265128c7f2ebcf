package canal

import (
	"context"
	"sync"
)

// budget bounds the bytes in flight between the reader and the sink. Who asks for more than the whole budget waits until
// nothing else is in flight, and then passes alone.
type budget struct {
	size int64

	mu   sync.Mutex
	used int64
	// expansion is by how much the rows of late grew when they became events: narrow rows a hundred times.
	expansion float64
	// Each has room for one, and signals that used became less: to acquire, and to settle.
	freed, settled chan struct{}
}

// What a transaction weighs, and where a large one is cut into pieces. Until it is known, rows are taken to be narrow.
const (
	firstExpansion  = 32
	transactionCost = 512       // bytes that a transaction without rows counts for
	pieceEvents     = 2 << 20   // bytes of events that a piece is to become
	minPiece        = 16 << 10  // bytes of rows
	maxPiece        = 512 << 10 // the same
)

func newBudget(size int64) *budget {
	return &budget{size: size, expansion: firstExpansion, freed: make(chan struct{}, 1), settled: make(chan struct{}, 1)}
}

// cost is what rows are taken to need until they have become events.
func (b *budget) cost(rows int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(float64(rows)*b.expansion) + transactionCost
}

// pieceSize is the number of bytes of rows above which a transaction is to travel in pieces.
func (b *budget) pieceSize() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(min(max(pieceEvents/b.expansion, minPiece), maxPiece))
}

// learn notes that rows have become events. Growth is believed at once, the contrary by and by.
func (b *budget) learn(rows int, events int64) {
	if rows == 0 || events == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	grew := float64(events) / float64(rows)
	b.expansion = max(grew, b.expansion+(grew-b.expansion)/16)
}

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

// settle waits until what is in flight beside own fits into the budget: rows can have become more than they were taken for, and what
// is not decoded yet should wait then. It is called by one goroutine.
func (b *budget) settle(ctx context.Context, own int64) error {
	for b.inFlight()-own > b.size {
		select {
		case <-b.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// adjust adds n bytes, which may be negative, without waiting.
func (b *budget) adjust(n int64) {
	b.mu.Lock()
	b.used += n
	b.mu.Unlock()
	if n < 0 {
		signal(b.freed)
		signal(b.settled)
	}
}

func (b *budget) inFlight() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
