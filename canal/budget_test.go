package canal

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetBlocksWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	b := newBudget(100)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.NoError(t, b.acquire(soon, 500), "what is larger than all of it passes alone")
	require.ErrorIs(t, b.acquire(soon, 1), context.DeadlineExceeded)

	acquired := make(chan error)
	go func() { acquired <- b.acquire(t.Context(), 60) }()
	b.adjust(-500)
	require.NoError(t, <-acquired)
	require.EqualValues(t, 60, b.inFlight())
}

func TestBudgetSettles(t *testing.T) {
	t.Parallel()
	b := newBudget(100)
	b.adjust(300)
	require.NoError(t, b.settle(t.Context(), 200), "its own bytes do not count")
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.settle(soon, 10), context.DeadlineExceeded)
	settled := make(chan error)
	go func() { settled <- b.settle(t.Context(), 10) }()
	b.adjust(-50)
	b.adjust(-150)
	require.NoError(t, <-settled)
}

func TestBudgetLearnsHowRowsGrow(t *testing.T) {
	t.Parallel()
	b := newBudget(DefaultMaxInFlight)
	require.Equal(t, 64<<10, b.pieceSize(), "rows are taken to be narrow at first")
	b.learn(1000, 0) // not captured
	require.Equal(t, 64<<10, b.pieceSize())
	b.learn(1000, 100_000)
	require.Equal(t, pieceEvents/100, b.pieceSize(), "growth is believed at once")
	require.EqualValues(t, 1000*100+transactionCost, b.cost(1000))
	b.learn(1000, 2_000)
	require.Greater(t, b.cost(1000), int64(90*1000), "the contrary by and by")
	for range 200 {
		b.learn(1000, 2_000)
	}
	require.Equal(t, maxPiece, b.pieceSize())
	b.learn(1, 1_000_000)
	require.Equal(t, minPiece, b.pieceSize())
}
