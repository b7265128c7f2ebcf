package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/mapping"
)

func noPassword() (string, error) { return "", errors.New("asked for a password") }

func TestParseSource(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ user, password, address, database string }{
		"shop:secret@127.0.0.1:3306/shop":       {"shop", "secret", "127.0.0.1:3306", "shop"},
		"mysql://shop:secret@db:3306/shop":      {"shop", "secret", "db:3306", "shop"},
		"mariadb://shop:secret@db/shop":         {"shop", "secret", "db", "shop"},
		"u:p@ss/w:ord@db:3306/shop":             {"u", "p@ss/w:ord", "db:3306", "shop"},
		"u:100%@db/shop":                        {"u", "100%", "db", "shop"},
		"u:a%40b%2Fc%25@db/shop":                {"u", "a@b/c%", "db", "shop"},
		"us%3Aer:p@db/shop":                     {"us:er", "p", "db", "shop"},
		"u@[::1]:3307/shop":                     {"u", "", "[::1]:3307", "shop"},
		"u:p@unix(/run/mysqld/mysqld.sock)/s_1": {"u", "p", "/run/mysqld/mysqld.sock", "s_1"},
		"u:p@db/a%2Fb":                          {"u", "p", "db", "a/b"},
		"u:$ecret${X}@db/shop":                  {"u", "$ecret${X}", "db", "shop"},
		"u:p@db":                                {"u", "p", "db", ""},
	}
	for text, want := range tests {
		connect, database, err := parseSource(text)
		require.NoError(t, err, text)
		require.Equal(t, want, struct{ user, password, address, database string }{connect.User, connect.Password, connect.Address, database}, text)
	}
	for _, text := range []string{"", "db/shop", "@db/shop", ":p@db/shop", "u:p@/shop"} {
		_, _, err := parseSource(text)
		require.ErrorContains(t, err, "write user:password@host:port/database", text)
	}
}

func TestAQuickLookCapturesOneDatabaseAndKeepsNothing(t *testing.T) {
	t.Parallel()
	cfg, err := quickFlags{source: "u:p@db:3306/my shop*"}.config(noPassword)
	require.NoError(t, err)
	require.Equal(t, "my-shop-", cfg.Name)
	require.Empty(t, cfg.Checkpoint.Path)
	require.Equal(t, "latest", cfg.Source.Start)
	require.NotNil(t, cfg.Publish.Stdout)
	mapper, err := mapping.New(cfg.mapping())
	require.NoError(t, err)
	require.True(t, mapper.Captured("my shop*", "orders"))
	require.False(t, mapper.Captured("my shopping", "orders"))
	_, err = mapper.Topic("my shop*", "таблица")
	require.NoError(t, err, "standard output shows no topic, so that tables may have any name")
}

func TestQuickFlags(t *testing.T) {
	t.Parallel()
	cfg, err := quickFlags{source: "u@db/shop", start: "earliest", sink: "kafka:a:9092,b:9092", checkpoint: "x"}.config(func() (string, error) { return "asked", nil })
	require.NoError(t, err)
	require.Equal(t, "asked", cfg.Source.Password)
	require.Equal(t, "earliest", cfg.Source.Start)
	require.Equal(t, []string{"a:9092", "b:9092"}, cfg.Publish.Kafka.Brokers)
	require.Equal(t, "x", cfg.Checkpoint.Path)

	for name, q := range map[string]quickFlags{
		"--source names no database": {source: "u:p@db"},
		"--sink: write stdout":       {source: "u:p@db/shop", sink: "rabbit"},
		"source.start":               {source: "u:p@db/shop", start: "noon"},
		"source.address":             {source: "u:p@db:port/shop"},
	} {
		_, err := q.config(noPassword)
		require.ErrorContains(t, err, name)
	}
}
