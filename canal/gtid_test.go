package canal

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func TestParseGTID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		flavor Flavor
		in     string
		want   string // as String gives it back
		err    string // part of the error's text
	}{
		{flavor: MySQL, in: uuidA + ":23", want: uuidA + ":23"},
		{flavor: MySQL, in: " " + strings.ToUpper(uuidA) + " : 007\n", want: uuidA + ":7"},
		{flavor: MySQL, in: uuidA + ":Blue_1:23", want: uuidA + ":blue_1:23"},
		{flavor: MySQL, in: uuidA + ":9223372036854775806", want: uuidA + ":9223372036854775806"},
		{flavor: MariaDB, in: "0-1-5", want: "0-1-5"},
		{flavor: MariaDB, in: " 4294967295 - 4294967295 - 18446744073709551615 ", want: "4294967295-4294967295-18446744073709551615"},

		{flavor: MySQL, in: "", err: "want UUID:NUMBER"},
		{flavor: MySQL, in: uuidA, err: "want UUID:NUMBER"},
		{flavor: MySQL, in: uuidA + ":0", err: "not a transaction number"},
		{flavor: MySQL, in: uuidA + ":9223372036854775807", err: "not a transaction number"},
		{flavor: MySQL, in: uuidA + ":1-5", err: "not a transaction number"},
		{flavor: MySQL, in: uuidA + ":-1", err: "not a transaction number"},
		{flavor: MySQL, in: uuidA + ":1blue:1", err: "not a tag"},
		{flavor: MySQL, in: uuidA + ":blue!:1", err: "not a tag"},
		{flavor: MySQL, in: uuidA + ":" + strings.Repeat("t", 33) + ":1", err: "not a tag"},
		{flavor: MySQL, in: strings.ReplaceAll(uuidA, "-", "") + ":1", err: "not a UUID"},
		{flavor: MySQL, in: "x" + uuidA[1:] + ":1", err: "not a UUID"},
		{flavor: MySQL, in: "0-1-5", err: "want UUID:NUMBER"},
		{flavor: MariaDB, in: uuidA + ":1", err: "DOMAIN-SERVER-NUMBER"},
		{flavor: MariaDB, in: "0-1", err: "DOMAIN-SERVER-NUMBER"},
		{flavor: MariaDB, in: "4294967296-1-5", err: "domain"},
		{flavor: MariaDB, in: "0-4294967296-5", err: "server id"},
		{flavor: MariaDB, in: "0-1-0", err: "sequence number"},
	}
	for _, tt := range tests {
		t.Run(tt.flavor.String()+" "+tt.in, func(t *testing.T) {
			t.Parallel()
			g, err := ParseGTID(tt.flavor, tt.in)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, g.String())
			require.Equal(t, tt.flavor, g.Flavor)

			text, err := json.Marshal(g)
			require.NoError(t, err)
			var back GTID
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, g, back)
		})
	}
}

func TestAnonymousGTID(t *testing.T) {
	t.Parallel()
	require.True(t, GTID{}.IsZero())
	require.Empty(t, GTID{}.String())
	g := mustGTID(t, MariaDB, "0-1-5")
	require.NoError(t, g.UnmarshalText(nil))
	require.Equal(t, GTID{}, g)
}

func TestGTIDAppendTextDoesNotAllocate(t *testing.T) {
	g := mustGTID(t, MySQL, uuidA+":blue:23")
	room := make([]byte, 0, 128)
	require.Zero(t, testing.AllocsPerRun(100, func() { room, _ = g.AppendText(room[:0]) }))
	require.Equal(t, uuidA+":blue:23", string(room))
}

func TestParseGTIDSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		flavor Flavor
		in     string
		want   string
		count  uint64
		err    string
	}{
		{name: "empty", flavor: MySQL},
		{name: "empty of MariaDB", flavor: MariaDB},
		{name: "only commas", flavor: MySQL, in: " ,\n, "},
		{name: "holes", flavor: MySQL, in: uuidA + ":1-5:7", want: uuidA + ":1-5:7", count: 6},
		{name: "unordered, overlapping, touching", flavor: MySQL, in: uuidA + ":20:7-9:1-5:4-6:10", want: uuidA + ":1-10:20", count: 11},
		{name: "as gtid_executed prints it", flavor: MySQL, in: uuidB + ":3,\n" + uuidA + ":1-2", want: uuidA + ":1-2," + uuidB + ":3", count: 3},
		{name: "upper case", flavor: MySQL, in: strings.ToUpper(uuidA) + ":1-2:BLUE:1", want: uuidA + ":1-2:blue:1", count: 3},
		{name: "tags", flavor: MySQL, in: uuidA + ":red:4:blue:1-2:5", want: uuidA + ":blue:1-2:5:red:4", count: 4},
		{name: "tag back and forth", flavor: MySQL, in: uuidA + ":blue:1:red:1:blue:2", want: uuidA + ":blue:1-2:red:1", count: 3},
		{name: "UUID twice", flavor: MySQL, in: uuidA + ":2," + uuidA + ":1", want: uuidA + ":1-2", count: 2},
		{name: "spaces", flavor: MySQL, in: " " + uuidA + " : 1 - 5 : blue : 7 ,\t" + uuidB + ":1\r\n", want: uuidA + ":1-5:blue:7," + uuidB + ":1", count: 7},
		{name: "largest", flavor: MySQL, in: uuidA + ":1-9223372036854775806", want: uuidA + ":1-9223372036854775806", count: 9223372036854775806},
		{name: "domains", flavor: MariaDB, in: "1-2-9, 0-1-5,", want: "0-1-5,1-2-9", count: 14},

		{name: "no number", flavor: MySQL, in: uuidA, err: "no transaction numbers"},
		{name: "colon only", flavor: MySQL, in: uuidA + ":", err: "not a transaction number"},
		{name: "tag without number", flavor: MySQL, in: uuidA + ":1:blue", err: `tag "blue" has no transaction numbers`},
		{name: "two tags in a row", flavor: MySQL, in: uuidA + ":blue:red:1", err: "not a transaction number"},
		{name: "zero", flavor: MySQL, in: uuidA + ":0-5", err: "not a transaction number"},
		{name: "backwards", flavor: MySQL, in: uuidA + ":5-1", err: "ends before it begins"},
		{name: "MariaDB's for MySQL", flavor: MySQL, in: "0-1-5", err: "not a UUID"},
		{name: "MySQL's for MariaDB", flavor: MariaDB, in: uuidA + ":1", err: "DOMAIN-SERVER-NUMBER"},
		{name: "domain twice", flavor: MariaDB, in: "0-1-5,0-2-6", err: "domain 0 stands twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := ParseGTIDSet(tt.flavor, tt.in)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.ErrorContains(t, err, "parse GTID set of "+tt.flavor.String())
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, s.String())
			require.Equal(t, tt.count, s.Count())
			require.Equal(t, tt.want == "", s.IsEmpty())
			require.Equal(t, tt.flavor, s.Flavor())

			text, err := json.Marshal(s)
			require.NoError(t, err)
			back := NewGTIDSet(tt.flavor)
			require.NoError(t, json.Unmarshal(text, back))
			require.True(t, s.Equal(back))
		})
	}
}

func TestMariaDBSet(t *testing.T) {
	t.Parallel()
	s := mustSet(t, MariaDB, "0-1-5,1-2-9")
	require.True(t, s.Contains(mustGTID(t, MariaDB, "0-7-5")), "the server id does not count")
	require.False(t, s.Contains(mustGTID(t, MariaDB, "0-1-6")))
	require.False(t, s.Contains(mustGTID(t, MariaDB, "2-1-1")))

	s.Add(mustGTID(t, MariaDB, "0-3-4"))
	require.Equal(t, "0-1-5,1-2-9", s.String(), "a domain never moves back")
	s.Add(mustGTID(t, MariaDB, "0-3-8"))
	s.Add(mustGTID(t, MariaDB, "2-1-1"))
	require.Equal(t, "0-3-8,1-2-9,2-1-1", s.String())
	require.Equal(t, uint64(18), s.Count())

	o := mustSet(t, MariaDB, "0-1-5,1-2-10,3-1-1")
	require.Equal(t, "0-3-8,1-2-10,2-1-1,3-1-1", s.Union(o).String())
	require.Equal(t, "0-3-8,2-1-1", s.Subtract(o).String())
	require.Equal(t, "0-1-5,1-2-9", s.Intersect(o).String())
	require.False(t, s.ContainsSet(o))
	require.True(t, s.Union(o).ContainsSet(o))
	require.True(t, o.ContainsSet(mustSet(t, MariaDB, "1-9-3")))
}

func TestNilGTIDSet(t *testing.T) {
	t.Parallel()
	var none *GTIDSet
	some := mustSet(t, MySQL, uuidA+":1-5")
	require.Empty(t, none.String())
	require.True(t, none.IsEmpty())
	require.Zero(t, none.Count())
	require.False(t, none.Contains(mustGTID(t, MySQL, uuidA+":1")))
	require.True(t, none.ContainsSet(NewGTIDSet(MySQL)))
	require.False(t, none.ContainsSet(some))
	require.True(t, some.ContainsSet(none))
	require.Nil(t, none.Clone())
	require.Nil(t, none.Union(nil))
	require.True(t, none.Union(some).Equal(some))
	require.True(t, some.Union(none).Equal(some))
	require.True(t, some.Subtract(none).Equal(some))
	require.True(t, some.Intersect(none).IsEmpty())
	require.Nil(t, none.Subtract(some))
	require.Nil(t, none.Intersect(some))
	require.True(t, none.Equal(nil))
	require.False(t, none.Equal(NewGTIDSet(MySQL)), "nil means that the server numbers none")
	require.Error(t, none.UnmarshalText([]byte(uuidA+":1")))

	text, err := json.Marshal(none)
	require.NoError(t, err)
	require.Equal(t, "null", string(text))
}

func TestFlavorsDoNotMix(t *testing.T) {
	t.Parallel()
	my, maria := mustSet(t, MySQL, uuidA+":1-5"), mustSet(t, MariaDB, "0-1-5")
	require.Panics(t, func() { my.Clone().Add(mustGTID(t, MariaDB, "0-1-5")) })
	require.Panics(t, func() { my.Union(maria) })
	require.False(t, my.ContainsSet(maria))
	require.False(t, my.Contains(mustGTID(t, MariaDB, "0-1-5")))
	require.True(t, my.Subtract(maria).Equal(my))
	require.True(t, my.Intersect(maria).IsEmpty())
	require.False(t, NewGTIDSet(MySQL).Equal(NewGTIDSet(MariaDB)))
	require.True(t, NewGTIDSet(MySQL).Union(maria).Equal(maria))
}

// model is the plainest thing that behaves like a GTIDSet of MySQL.
type model map[GTID]bool

func (m model) set(t *testing.T, r *rand.Rand) *GTIDSet {
	t.Helper()
	s := NewGTIDSet(MySQL)
	all := make([]GTID, 0, len(m))
	for g := range m {
		all = append(all, g)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, g := range all {
		s.Add(g)
	}
	requireModel(t, m, s)
	return s
}

// requireModel checks everything that can be read off a set, and that its intervals are
// merged: equal sets have equal texts.
func requireModel(t *testing.T, m model, s *GTIDSet) {
	t.Helper()
	require.Equal(t, uint64(len(m)), s.Count())
	require.Equal(t, len(m) == 0, s.IsEmpty())
	for _, g := range universe() {
		require.Equal(t, m[g], s.Contains(g), "%s in %s", g, s)
	}
	require.True(t, mustSet(t, MySQL, s.String()).Equal(s), s.String())
	for in, numbers := range s.series {
		require.NotEmpty(t, *numbers, in)
		for i := 1; i < len(*numbers); i++ {
			require.Greater(t, (*numbers)[i].first, (*numbers)[i-1].last+1, "%s is not merged", s)
		}
	}
}

func universe() []GTID {
	var all []GTID
	for _, id := range [][16]byte{{1}, {2}} {
		for _, tag := range []string{"", "blue"} {
			for n := uint64(1); n <= 24; n++ {
				all = append(all, GTID{UUID: id, Tag: tag, Number: n})
			}
		}
	}
	return all
}

func TestGTIDSetAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		a, b := model{}, model{}
		density := r.Float64()
		for _, g := range universe() {
			if r.Float64() < density {
				a[g] = true
			}
			if r.Float64() < density {
				b[g] = true
			}
		}
		union, difference, common := model{}, model{}, model{}
		for _, g := range universe() {
			if a[g] || b[g] {
				union[g] = true
			}
			if a[g] && !b[g] {
				difference[g] = true
			}
			if a[g] && b[g] {
				common[g] = true
			}
		}
		sa, sb := a.set(t, r), b.set(t, r)
		requireModel(t, union, sa.Union(sb))
		requireModel(t, difference, sa.Subtract(sb))
		requireModel(t, common, sa.Intersect(sb))
		require.Equal(t, len(common) == len(b), sa.ContainsSet(sb))
		require.True(t, sa.ContainsSet(sa.Intersect(sb)))
		require.Equal(t, sa.String() == sb.String(), sa.Equal(sb))

		// None of them changed its operands, and a clone is on its own.
		c := sa.Clone()
		require.True(t, c.Equal(sa))
		for _, g := range universe() {
			c.Add(g)
		}
		require.Equal(t, uint64(len(universe())), c.Count())
		requireModel(t, a, sa)
		requireModel(t, b, sb)
	}
}

func TestGTIDSetRangesAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		s, m := NewGTIDSet(MySQL), model{}
		for range 1 + r.IntN(8) {
			first := 1 + r.Uint64N(24)
			last := min(24, first+r.Uint64N(6))
			s.addInterval(series{uuid: [16]byte{1}}, interval{first, last})
			for n := first; n <= last; n++ {
				m[GTID{UUID: [16]byte{1}, Number: n}] = true
			}
		}
		requireModel(t, m, s)
	}
}

func TestGTIDSetAddDoesNotAllocate(t *testing.T) {
	s := mustSet(t, MySQL, uuidA+":1-5:7,"+uuidB+":blue:1")
	g := mustGTID(t, MySQL, uuidA+":8")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Add(g)
		g.Number++
	}))
	require.Equal(t, g.Number-2+1, s.Count())
}

func FuzzParseGTIDSet(f *testing.F) {
	for _, seed := range []string{
		"", ",", uuidA + ":1-5:7", uuidA + ":1-3:blue:1-2:red:7,\n" + uuidB + ":3", uuidA + ":5:1-3:2-9:blue:4",
		"0-1-5,1-2-9", " 0 - 1 - 5 ", uuidA, uuidA + ":", uuidA + ":blue", ":::", "0-1-5,0-2-5", uuidA + ":9223372036854775806",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, flavor := range []Flavor{MySQL, MariaDB} {
			s, err := ParseGTIDSet(flavor, text)
			if err != nil {
				continue
			}
			canonical := s.String()
			back, err := ParseGTIDSet(flavor, canonical)
			require.NoError(t, err)
			require.True(t, s.Equal(back), canonical)
			require.Equal(t, canonical, back.String())
			require.Equal(t, s.IsEmpty(), canonical == "")
			require.True(t, s.Subtract(back).IsEmpty())

			if g, err := ParseGTID(flavor, text); err == nil {
				require.True(t, s.Contains(g))
				require.Equal(t, canonical, g.String(), "a set of one GTID is written like it")
			}
		}
	})
}

func BenchmarkGTIDSetAdd(b *testing.B) {
	s := NewGTIDSet(MySQL)
	g := GTID{UUID: [16]byte{1}}
	for b.Loop() {
		g.Number++
		s.Add(g)
	}
}

func mustGTID(t *testing.T, f Flavor, s string) GTID {
	t.Helper()
	g, err := ParseGTID(f, s)
	require.NoError(t, err)
	return g
}

func mustSet(t *testing.T, f Flavor, s string) *GTIDSet {
	t.Helper()
	set, err := ParseGTIDSet(f, s)
	require.NoError(t, err)
	return set
}
