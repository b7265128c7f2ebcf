package checkpoint_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/testenv"
)

// TestStoreAway: a save is given up after bounded attempts, says so, and the place is as it was; once the server is back it goes on.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	db, cache := testenv.MySQL(t), testenv.Redis(t)
	toDB, toCache := testenv.NewProxy(t, db.Addr), testenv.NewProxy(t, cache.Addr)
	throughDB := &testenv.Server{Addr: toDB.Addr, RootUser: db.RootUser, RootPassword: db.RootPassword}
	throughCache := &testenv.RedisServer{Addr: toCache.Addr}
	place := onMySQL(db).place(t)
	for name, c := range map[string]struct {
		proxy  *testenv.Proxy
		server server
		place  string
	}{
		"mysql": {toDB, onMySQL(throughDB), place},
		"redis": {toCache, onRedis(throughCache), onRedis(cache).place(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := c.server.open(c.place, "shop")
			require.NoError(t, err)
			saver := &checkpoint.Saver{Store: store, Tracker: checkpoint.NewTracker(*numbered(3)), Attempts: 2, Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, saver.Flush(t.Context()))

			c.proxy.Refuse(t, true)
			c.proxy.Cut()
			lost := &checkpoint.Saver{Store: store, Tracker: checkpoint.NewTracker(*numbered(4)), Attempts: 2, Logger: slog.New(slog.DiscardHandler)}
			err = lost.Flush(t.Context())
			require.ErrorAs(t, err, new(*checkpoint.SaveError))
			require.True(t, checkpoint.Unusable(err))
			require.ErrorContains(t, err, store.Place())
			require.ErrorContains(t, err, "runs and lets this machine in")
			_, err = store.Load(t.Context())
			require.ErrorAs(t, err, new(*checkpoint.AccessError), "never the absence of a checkpoint")
			_, err = c.server.open(c.place, "other")
			require.ErrorAs(t, err, new(*checkpoint.AccessError))

			c.proxy.Refuse(t, false)
			var r *checkpoint.Record
			require.Eventually(t, func() bool { // a client may take a second to try again
				r, err = store.Load(t.Context())
				return err == nil
			}, time.Minute, 10*time.Millisecond)
			require.Equal(t, uint64(3), r.Counters.Transactions)
			require.NoError(t, lost.Flush(t.Context()))
			history, err := store.History(t.Context())
			require.NoError(t, err)
			require.Len(t, history, 2, "saves that failed are in no history")
			require.NoError(t, store.Close())
		})
	}
}

// TestRedisThatLostItsData: what the process knows is written anew, so that a restart does not begin afresh.
func TestRedisThatLostItsData(t *testing.T) {
	t.Parallel()
	own := testenv.StartRedis(t, testenv.RedisOptions{Args: []string{"--appendonly", "no", "--save", ""}})
	s := onRedis(own)
	store, err := s.open("x:", "shop")
	require.NoError(t, err)
	for n := range uint64(3) {
		require.NoError(t, store.Save(t.Context(), numbered(n)))
	}
	survey, err := store.Survey(t.Context())
	require.NoError(t, err)
	require.NotNil(t, survey.Holder)
	require.Len(t, survey.Warnings, 1)
	require.Contains(t, survey.Warnings[0].Detail, "appendonly=no")

	own.Restart(t)
	_, err = store.Load(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	require.NoError(t, store.Save(t.Context(), numbered(3)))
	require.NoError(t, store.Close())
	again, err := s.open("x:", "shop")
	require.NoError(t, err)
	history, err := again.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, 4)
	require.NoError(t, again.Close())
}

// TestAccounts: an account with the GRANT that init prints keeps checkpoints, also where the schema is not there yet, and one without is told.
func TestAccounts(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *testenv.Server{"mysql": testenv.MySQL, "mariadb": testenv.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			place := db.Database(t)
			db.Exec(t, "DROP DATABASE "+place)
			limited := &testenv.Server{Addr: db.Addr}
			limited.RootUser, limited.RootPassword = db.User(t)
			_, err := onMySQL(limited).open(place, "shop")
			require.ErrorAs(t, err, new(*checkpoint.AccessError))
			require.ErrorContains(t, err, "GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON ")

			for _, grant := range checkpoint.MySQLGrants(place, "'"+limited.RootUser+"'@'%'") {
				db.Exec(t, grant)
			}
			store, err := onMySQL(limited).open(place, "shop")
			require.NoError(t, err)
			require.NoError(t, store.Save(t.Context(), numbered(1)))
			_, err = store.Survey(t.Context())
			require.NoError(t, err)
			require.NoError(t, store.Close())
			require.Empty(t, db.Query(t, "SELECT * FROM "+place+".binlogd_checkpoint WHERE name = ''"), "the rights were tried without a trace")
		})
	}
}
