package travel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseDebezium(t *testing.T) {
	t.Parallel()
	// A HashMap of byte arrays in Java's serialization: lengths and type codes around the JSON, a brace among them.
	stream := "\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16`\xd1\x03\x00\x02F\x00\nloadFactorI\x00\tthresholdxp?@\x00\x00w\x08\x00\x00\x00\x10{\x01ur\x00\x02[B" +
		"\x00\x00\x00\x1f" + `["inventory",{"server":"shop"}]` + "uq\x00~\x00\x02\x00\x00\x00\x60" +
		`{"transaction_id":null,"ts_sec":1764460000,"file":"binlog.000003","pos":1234,"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5","row":1,"event":2}` + "x"
	found, err := ParseDebezium([]byte(stream))
	require.NoError(t, err)
	require.Equal(t, []Foreign{{Owner: "inventory", GTIDs: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", File: "binlog.000003", Offset: 1234}}, found)
	_, err = ParseDebezium([]byte("\xac\xed\x00\x05{"))
	require.Error(t, err)
}

func TestParseCanal(t *testing.T) {
	t.Parallel()
	found, err := ParseCanal([]byte(`{"clientDatas":[{"clientIdentity":{"clientId":1001,"destination":"example","filter":""},"cursor":{"identity":{"slaveId":-1,` +
		`"sourceAddress":{"address":"localhost","port":3306}},"postion":{"gtid":"","included":false,"journalName":"mysql-bin.000001","position":332,"serverId":1,"timestamp":1505998863000}}}],"destination":"example"}`)) //nolint:misspell // as Canal spells it
	require.NoError(t, err)
	require.Equal(t, []Foreign{{Owner: "example/1001", File: "mysql-bin.000001", Offset: 332}}, found)
	_, err = ParseCanal([]byte(`{}`))
	require.Error(t, err)
}

func TestChoose(t *testing.T) {
	t.Parallel()
	two := []Foreign{{Owner: "a", Offset: 1}, {Owner: "b", Offset: 2}}
	_, err := Choose(two, "")
	require.ErrorContains(t, err, "--owner: a, b")
	chosen, err := Choose(two, "b")
	require.NoError(t, err)
	require.Equal(t, two[1], chosen)
	_, err = Choose(two, "c")
	require.Error(t, err)
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for text, want := range map[string]time.Time{
		"2026-11-29T10:00:00Z":        now.Add(-2 * time.Hour),
		"2026-11-29T10:00:00.5+01:00": now.Add(-3*time.Hour + 500*time.Millisecond),
		"2026-11-29 11:00":            now.Add(-2 * time.Hour),
		"2026-11-29 11:00:30":         now.Add(-2*time.Hour + 30*time.Second),
		"-3h":                         now.Add(-3 * time.Hour),
		"-1d12h":                      now.Add(-36 * time.Hour),
		"-2w":                         now.Add(-14 * 24 * time.Hour),
	} {
		got, err := ParseTime(text, berlin, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for _, text := range []string{"", "yesterday", "-", "-3", "--3h", "3h"} {
		_, err := ParseTime(text, berlin, now)
		require.Error(t, err, text)
	}
	_, err = ParseTime("2026-11-29 10:00", nil, now)
	require.ErrorContains(t, err, "--zone")
}
