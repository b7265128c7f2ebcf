package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// story of two rows: what was committed, and the events that tell it rightly.
func smallWorld(t *testing.T) (committed map[change]int, published []*event, database tables) {
	t.Helper()
	published = []*event{
		parse(t, 1, "g:1", "created", "7", `{"id":7,"status":"pending"}`, ""),
		parse(t, 2, "g:2", "created", "8", `{"id":8,"status":"pending"}`, ""),
		parse(t, 3, "g:3", "updated", "7", `{"id":7,"status":"paid"}`, `{"status":"pending"}`),
		parse(t, 4, "g:3", "updated", "7", `{"id":7,"status":"shipped"}`, `{"status":"paid"}`),
		parse(t, 5, "g:4", "deleted", "8", `{"id":8,"status":"pending"}`, ""),
	}
	committed = map[change]int{
		{"g:1", "orders", created}: 1,
		{"g:2", "orders", created}: 1,
		{"g:3", "orders", updated}: 2,
		{"g:4", "orders", deleted}: 1,
	}
	database = tables{"orders": {"7": {"id": json.Number("7"), "status": "shipped"}}}
	return committed, published, database
}

func parse(t *testing.T, n int, gtid, kind, key, row, old string) *event {
	t.Helper()
	data := `{"row":` + row + `}`
	if old != "" {
		data = `{"row":` + row + `,"old":` + old + `}`
	}
	line := fmt.Sprintf(`{"specversion":"1.0","id":"id-%d","source":"/shop/shop/orders","type":"orders.%s","gtid":"%s","sequence":"%020d","partitionkey":"%s","data":%s}`,
		n, kind, gtid, n, key, data)
	e, err := parseEvent([]byte(line))
	require.NoError(t, err)
	return e
}

func TestJudgeAcceptsTheTruthAndItsRepeats(t *testing.T) {
	t.Parallel()
	committed, published, database := smallWorld(t)
	v := judge(committed, published, database)
	require.True(t, v.ok(), v.Complaints)
	require.Zero(t, v.Repeats)

	// A crash after the fourth event, a checkpoint after the first.
	again := slices.Concat(published[:4], published[1:])
	v = judge(committed, again, database)
	require.True(t, v.ok(), v.Complaints)
	require.Equal(t, 3, v.Repeats)
	require.Equal(t, 8, v.Published)
	require.Equal(t, 5, total(v.Distinct, "orders", ""))
}

func TestJudgeAcceptsAnyOrderBetweenRows(t *testing.T) {
	t.Parallel()
	committed, p, database := smallWorld(t)
	v := judge(committed, []*event{p[1], p[4], p[0], p[2], p[3]}, database)
	require.True(t, v.ok(), v.Complaints)
}

func TestJudgeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		spoil            func(t *testing.T, p []*event) []*event
		missing, surplus int
		complaint        string // part of one
	}{
		{
			name:    "the last event is missing",
			spoil:   func(_ *testing.T, p []*event) []*event { return p[:4] },
			missing: 1, complaint: "orders row 8 is in the events and not in the database",
		},
		{
			name:    "an update in the middle is missing",
			spoil:   func(_ *testing.T, p []*event) []*event { return slices.Delete(p, 2, 3) },
			missing: 1, complaint: "old status is paid, the events before it say pending",
		},
		{
			name: "a row lived and died unseen",
			spoil: func(_ *testing.T, p []*event) []*event {
				return []*event{p[0], p[2], p[3]}
			},
			missing: 2,
		},
		{
			name: "one change has two ids",
			spoil: func(t *testing.T, p []*event) []*event {
				return append(p, parse(t, 6, "g:3", "updated", "7", `{"id":7,"status":"shipped"}`, `{}`))
			},
			surplus: 1,
		},
		{
			name: "two changes share an id",
			spoil: func(_ *testing.T, p []*event) []*event {
				p[3].ID = p[2].ID
				return p
			},
			missing: 1, complaint: "id id-3 was published again with other contents",
		},
		{
			name: "a change is reported in another transaction",
			spoil: func(_ *testing.T, p []*event) []*event {
				p[4].GTID = "g:5"
				return p
			},
			missing: 1, surplus: 1,
		},
		{
			name: "a row's changes come in the wrong order",
			spoil: func(_ *testing.T, p []*event) []*event {
				p[2], p[3] = p[3], p[2]
				return p
			},
			complaint: "orders row 7: 00000000000000000003 came after sequence 00000000000000000004",
		},
		{
			name: "a value is wrong",
			spoil: func(t *testing.T, p []*event) []*event {
				p[3] = parse(t, 4, "g:3", "updated", "7", `{"id":7,"status":"Shipped"}`, `{"status":"paid"}`)
				return p
			},
			complaint: `the database has {"id":7,"status":"shipped"}, the events say {"id":7,"status":"Shipped"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			committed, published, database := smallWorld(t)
			v := judge(committed, test.spoil(t, published), database)
			require.False(t, v.ok())
			require.Equal(t, test.missing, v.Missing, "missing")
			require.Equal(t, test.surplus, v.Surplus, "surplus")
			if test.complaint != "" {
				require.Contains(t, strings.Join(v.Complaints, "\n"), test.complaint)
			}
		})
	}
}

func TestJudgeNeedsSomethingToJudge(t *testing.T) {
	t.Parallel()
	require.False(t, judge(nil, nil, tables{}).ok())
}

func TestParseEventRefusesWhatTheSummaryCannotUse(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		``,
		`{"specversion":"1.0"`,
		`{"specversion":"1.0","id":"a","source":"/shop/shop/orders","type":"orders.created","gtid":"g:1","sequence":"1","partitionkey":"7","data":{"row":{}}}{}`,
		`{"specversion":"0.3","id":"a","source":"/shop/shop/orders","type":"orders.created","gtid":"g:1","sequence":"1","partitionkey":"7","data":{"row":{}}}`,
		`{"specversion":"1.0","id":"","source":"/shop/shop/orders","type":"orders.created","gtid":"g:1","sequence":"1","partitionkey":"7","data":{"row":{}}}`,
		`{"specversion":"1.0","id":"a","source":"/shop/shop/orders","type":"orders.created","gtid":"g:1","sequence":"1","partitionkey":"7","data":{}}`,
		`{"specversion":"1.0","id":"a","source":"/shop/shop/orders","type":"orders.paid","gtid":"g:1","sequence":"1","partitionkey":"7","data":{"row":{}}}`,
		`{"specversion":"1.0","id":"a","source":"/shop/shop/stock","type":"orders.created","gtid":"g:1","sequence":"1","partitionkey":"7","data":{"row":{}}}`,
	} {
		_, err := parseEvent([]byte(line))
		require.Error(t, err, line)
	}
}
