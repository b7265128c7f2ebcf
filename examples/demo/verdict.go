package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// verdict holds what the database committed against what was published.
type verdict struct {
	Committed map[change]int // the server's own reading of its binlog
	Distinct  map[change]int // events, each id once

	Published int // lines, messages or entries in the sink
	Repeats   int // of them with an id that had been there
	Missing   int // committed changes without an event
	Surplus   int // events without a committed change

	Events     []*event // each once
	Folded     tables   // the rows that the events lead to
	Complaints []string // whatever else is not as it has to be
}

// judge compares the committed changes with the events in the order of the sink, and
// the database's rows with the events folded.
func judge(committed map[change]int, published []*event, database tables) *verdict {
	v := &verdict{Committed: committed, Distinct: map[change]int{}, Published: len(published)}
	var distinct []*event
	first := map[string]*event{}
	newest := map[string]string{} // sequence by table and key
	for _, e := range published {
		if earlier := first[e.ID]; earlier != nil {
			v.Repeats++
			if !bytes.Equal(earlier.raw, e.raw) {
				v.complain("id %s was published again with other contents", e.ID)
			}
			continue
		}
		first[e.ID] = e
		v.Events = append(v.Events, e)
		row := e.Table + " row " + e.Key
		if e.business() {
			about, _, _ := strings.Cut(e.Type, ".")
			row = "business of " + about + " " + e.Key
		} else {
			distinct = append(distinct, e)
			v.Distinct[e.change()]++
		}
		if e.Sequence <= newest[row] {
			v.complain("%s: %s came after sequence %s", row, e.Sequence, newest[row])
		}
		newest[row] = e.Sequence
	}
	for c, n := range committed {
		v.Missing += max(0, n-v.Distinct[c])
	}
	for c, n := range v.Distinct {
		v.Surplus += max(0, n-committed[c])
	}

	// A partitioned sink keeps the order of each row's changes, not of different rows'.
	slices.SortStableFunc(distinct, func(a, b *event) int { return strings.Compare(a.Sequence, b.Sequence) })
	var complaints []string
	v.Folded, complaints = fold(distinct)
	v.Complaints = append(v.Complaints, complaints...)
	v.Complaints = append(v.Complaints, compare(database, v.Folded)...)
	return v
}

func (v *verdict) complain(format string, args ...any) {
	v.Complaints = append(v.Complaints, fmt.Sprintf(format, args...))
}

// ok reports whether nothing is missing, nothing made up and nothing different.
func (v *verdict) ok() bool {
	return v.Missing == 0 && v.Surplus == 0 && len(v.Complaints) == 0 && len(v.Committed) > 0
}

// total sums counts by table and operation; empty arguments stand for all.
func total(counts map[change]int, table string, kind op) int {
	sum := 0
	for c, n := range counts {
		if (table == "" || c.Table == table) && (kind == "" || c.Op == kind) {
			sum += n
		}
	}
	return sum
}

// tableNames are the tables that occur in either count, sorted.
func (v *verdict) tableNames() []string {
	seen := map[string]bool{}
	for _, counts := range []map[change]int{v.Committed, v.Distinct} {
		for c := range counts {
			seen[c.Table] = true
		}
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
