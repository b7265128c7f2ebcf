package canal_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv"
)

// randomSetText writes a set as people may: unordered, overlapping, in any case, with tags
// and white space.
func randomSetText(r *rand.Rand) string {
	var items []string
	for range r.IntN(4) {
		var b strings.Builder
		fmt.Fprintf(&b, "%s3E11fa47-71ca-11e1-9e33-c80aa942956%d", []string{"", " ", "\n"}[r.IntN(3)], r.IntN(3))
		for range 1 + r.IntN(5) {
			if r.IntN(3) == 0 {
				b.WriteString([]string{":blue", ": Red", ":_1"}[r.IntN(3)])
			}
			first := 1 + r.IntN(20)
			fmt.Fprintf(&b, ":%d", first)
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "-%d", first+r.IntN(5))
			}
		}
		items = append(items, b.String())
	}
	return strings.Join(items, ",")
}

// TestGTIDSetAgainstMySQL asks a real server for the canonical form, the difference and the
// inclusion of random sets.
func TestGTIDSetAgainstMySQL(t *testing.T) {
	t.Parallel()
	db := testenv.MySQL(t).DB()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		textA, textB := randomSetText(r), randomSetText(r)
		a, err := canal.ParseGTIDSet(canal.MySQL, textA)
		require.NoError(t, err, textA)
		b, err := canal.ParseGTIDSet(canal.MySQL, textB)
		require.NoError(t, err, textB)

		var canonical, difference string
		var subset bool
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT GTID_SUBTRACT(?, ''), GTID_SUBTRACT(?, ?), GTID_SUBSET(?, ?)",
			textA, textA, textB, textB, textA).Scan(&canonical, &difference, &subset))
		oneLine := func(s string) string { return strings.ReplaceAll(s, ",\n", ",") }
		require.Equal(t, oneLine(canonical), a.String(), textA)
		require.Equal(t, oneLine(difference), a.Subtract(b).String(), "%q without %q", textA, textB)
		require.Equal(t, subset, a.ContainsSet(b), "%q in %q", textB, textA)
	}
}
