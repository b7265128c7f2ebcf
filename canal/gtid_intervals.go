package canal

import (
	"slices"
	"sort"
	"strconv"
)

// interval is a run of transaction numbers, both ends included.
type interval struct{ first, last uint64 }

func (i interval) size() uint64 { return i.last - i.first + 1 }

// intervals is a set of transaction numbers: ascending, and merged, so that a number
// is missing between any two neighbours.
type intervals []interval

// add puts the numbers of i into the set and returns how many were not in it. At the
// end of the set, where nearly every transaction goes, it is O(1); elsewhere a binary
// search and, for a new interval, a move of those behind it.
func (s *intervals) add(i interval) (added uint64) {
	v := *s
	if n := len(v); n == 0 || i.first > v[n-1].last+1 {
		*s = append(v, i)
		return i.size()
	} else if last := &v[n-1]; i.first == last.last+1 {
		last.last = i.last
		return i.size()
	}
	// v[from:to] are the intervals that touch i and become one with it.
	from := sort.Search(len(v), func(k int) bool { return v[k].last >= i.first-1 })
	to := from
	added = i.size()
	merged := i
	for ; to < len(v) && v[to].first <= i.last+1; to++ {
		added -= overlap(v[to], i)
		merged.first = min(merged.first, v[to].first)
		merged.last = max(merged.last, v[to].last)
	}
	if from == to {
		*s = slices.Insert(v, from, i)
		return added
	}
	v[from] = merged
	*s = slices.Delete(v, from+1, to)
	return added
}

// contains reports whether every number of i is in the set.
func (s intervals) contains(i interval) bool {
	k := sort.Search(len(s), func(k int) bool { return s[k].last >= i.first })
	return k < len(s) && s[k].first <= i.first && i.last <= s[k].last
}

// subtract returns the numbers that are in s and not in o, in a slice of its own.
func (s intervals) subtract(o intervals) intervals {
	var left intervals
	k := 0
	for _, i := range s {
		for k < len(o) && o[k].last < i.first {
			k++
		}
		for j := k; j < len(o) && o[j].first <= i.last && i.first <= i.last; j++ {
			if o[j].first > i.first {
				left = append(left, interval{i.first, o[j].first - 1})
			}
			i.first = o[j].last + 1
		}
		if i.first <= i.last {
			left = append(left, i)
		}
	}
	return left
}

// intersect returns the numbers that are in both, in a slice of its own.
func (s intervals) intersect(o intervals) intervals {
	var both intervals
	for a, b := 0, 0; a < len(s) && b < len(o); {
		if common := (interval{max(s[a].first, o[b].first), min(s[a].last, o[b].last)}); common.first <= common.last {
			both = append(both, common)
		}
		if s[a].last < o[b].last {
			a++
		} else {
			b++
		}
	}
	return both
}

func (s intervals) size() uint64 {
	var n uint64
	for _, i := range s {
		n += i.size()
	}
	return n
}

// appendTo appends ":1-5:7".
func (s intervals) appendTo(b []byte) []byte {
	for _, i := range s {
		b = append(b, ':')
		b = strconv.AppendUint(b, i.first, 10)
		if i.last > i.first {
			b = append(b, '-')
			b = strconv.AppendUint(b, i.last, 10)
		}
	}
	return b
}

// overlap is how many numbers a and b share.
func overlap(a, b interval) uint64 {
	first, last := max(a.first, b.first), min(a.last, b.last)
	if first > last {
		return 0
	}
	return last - first + 1
}
