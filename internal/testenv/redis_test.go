package testenv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestRedisKeepsWhatItAnswered(t *testing.T) {
	t.Parallel()
	s := testenv.StartRedis(t, testenv.RedisOptions{Args: []string{"--maxmemory", "100mb"}})
	client := s.Client()
	require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	limit, err := client.ConfigGet(t.Context(), "maxmemory").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "104857600"}, limit)
	s.Kill()
	s.Start(t)
	value, err := client.Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "value", value)
}

func TestSharedRedis(t *testing.T) {
	t.Parallel()
	s := testenv.Redis(t)
	require.Same(t, s, testenv.Redis(t))
	require.NoError(t, s.Client().Set(t.Context(), testenv.UniqueName("key"), "value", 0).Err())
}
