package canal

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// here is the end of the server's binlog.
func here(tb testing.TB, s *testenv.Server) Resume {
	tb.Helper()
	start, err := ParseStart("latest")
	require.NoError(tb, err)
	at, err := Locate(tb.Context(), connectTo(s), start)
	require.NoError(tb, err)
	return at
}

// rawTransactions reads until count transactions, or pieces of them, have arrived.
func rawTransactions(tb testing.TB, s *testenv.Server, from Resume, count int) []*Transaction {
	tb.Helper()
	source, err := OpenSource(tb.Context(), SourceOptions{
		Connect: connectTo(s), Heartbeat: time.Second, From: from, SpillDir: tb.TempDir(),
		Captured: func(string, string) bool { return true },
		Logger:   slog.New(slog.DiscardHandler),
	})
	require.NoError(tb, err)
	defer func() { require.NoError(tb, source.Close()) }()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	var transactions []*Transaction
	for len(transactions) < count {
		segment, err := source.Next(ctx)
		require.NoError(tb, err)
		for _, t := range segment.Transactions {
			if len(t.events) > 0 {
				transactions = append(transactions, t)
			}
		}
		segment.Release()
	}
	return transactions
}
