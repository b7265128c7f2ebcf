package canal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GTIDSet is a set of GTIDs. MySQL: any set, with holes and tags. MariaDB: per
// domain the last GTID, everything up to it included.
//
// A nil *GTIDSet stands for "the server numbers none". It can be read like an empty
// set, and differs from one only in Equal and when marshalled. A set may be read by
// several goroutines at once while none changes it.
type GTIDSet struct {
	flavor Flavor
	// series holds MySQL's numbers; none of its values is empty.
	series map[series]*intervals
	// domains holds MariaDB's last GTIDs.
	domains map[uint32]GTID
	count   uint64
}

// series is what a server numbers by itself: MySQL 8.3 and later number each tag on
// its own.
type series struct {
	uuid [16]byte
	tag  string
}

// NewGTIDSet returns an empty set.
func NewGTIDSet(f Flavor) *GTIDSet {
	if f == MariaDB {
		return &GTIDSet{flavor: f, domains: make(map[uint32]GTID)}
	}
	return &GTIDSet{flavor: f, series: make(map[series]*intervals)}
}

// ParseGTIDSet reads a set as a server of flavor f writes it:
//
//	MySQL    3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:blue:1-2, 4e11fa47-…:3
//	MariaDB  0-1-5,1-2-9
//
// White space and line ends may stand between the parts, letters be of either case,
// intervals come in any order and overlap. The empty text is the empty set.
func ParseGTIDSet(f Flavor, text string) (*GTIDSet, error) {
	s := NewGTIDSet(f)
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		parse := s.parseSeries
		if f == MariaDB {
			parse = s.parseDomain
		}
		if err := parse(item); err != nil {
			return nil, fmt.Errorf("parse GTID set of %s: %w", f, err)
		}
	}
	return s, nil
}

// parseSeries reads one UUID with its intervals and tags into the set.
func (s *GTIDSet) parseSeries(item string) error {
	head, rest, found := strings.Cut(item, ":")
	id, err := parseUUID(head)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%q has no transaction numbers: want UUID:1-5", item)
	}
	in := series{uuid: id}
	pending := "" // the tag that no interval has followed yet
	for part := range strings.SplitSeq(rest, ":") {
		part = strings.TrimSpace(part)
		if isTagStart(part) && pending == "" {
			if in.tag, err = parseTag(part); err != nil {
				return err
			}
			pending = part
			continue
		}
		i, err := parseInterval(part)
		if err != nil {
			return err
		}
		s.addInterval(in, i)
		pending = ""
	}
	if pending != "" {
		return fmt.Errorf("tag %q has no transaction numbers: want UUID:%s:1-5", pending, pending)
	}
	return nil
}

func parseInterval(s string) (interval, error) {
	head, tail, isRange := strings.Cut(s, "-")
	first, err := parseNumber(head)
	if err != nil {
		return interval{}, err
	}
	if !isRange {
		return interval{first, first}, nil
	}
	last, err := parseNumber(tail)
	if err != nil {
		return interval{}, err
	}
	if last < first {
		return interval{}, fmt.Errorf("interval %q ends before it begins", s)
	}
	return interval{first, last}, nil
}

// parseDomain reads one domain's last GTID into the set.
func (s *GTIDSet) parseDomain(item string) error {
	g, err := parseMariaDB(item)
	if err != nil {
		return err
	}
	if before, twice := s.domains[g.Domain]; twice {
		return fmt.Errorf("domain %d stands twice, as %s and as %s: one position has one GTID per domain", g.Domain, before, g)
	}
	s.Add(g)
	return nil
}

// Flavor is whose GTIDs the set holds.
func (s *GTIDSet) Flavor() Flavor {
	if s == nil {
		return MySQL
	}
	return s.flavor
}

// IsEmpty reports whether the set holds nothing.
func (s *GTIDSet) IsEmpty() bool {
	return s == nil || len(s.series) == 0 && len(s.domains) == 0
}

// Count is, on MySQL, the number of transactions in the set. On MariaDB, where numbers
// may be left out and servers of one domain share a sequence, it is the sum of the
// domains' last sequence numbers: never less than the transactions in the set, and only
// the difference between two sets of one server says something (at most so many
// transactions lie between). It is O(1).
func (s *GTIDSet) Count() uint64 {
	if s == nil {
		return 0
	}
	return s.count
}

// Add puts g into the set; on MariaDB the domain only ever moves forward. An
// anonymous GTID changes nothing. Add panics when g is of the other flavor: a GTID
// that were silently left out would be published again for ever.
func (s *GTIDSet) Add(g GTID) {
	if g.IsZero() {
		return
	}
	if g.Flavor != s.flavor {
		panic(fmt.Sprintf("canal: add GTID %s of %s to a set of %s", g, g.Flavor, s.flavor))
	}
	if s.flavor == MariaDB {
		if last := s.domains[g.Domain]; g.Number > last.Number {
			s.count += g.Number - last.Number
			s.domains[g.Domain] = g
		}
		return
	}
	s.addInterval(series{g.UUID, g.Tag}, interval{g.Number, g.Number})
}

func (s *GTIDSet) addInterval(in series, i interval) {
	have := s.series[in]
	if have == nil {
		have = new(intervals)
		s.series[in] = have
	}
	s.count += have.add(i)
}

// Contains reports whether g is in the set; on MariaDB, whether its sequence number is
// not beyond the last one of its domain.
func (s *GTIDSet) Contains(g GTID) bool {
	if s == nil || g.IsZero() || g.Flavor != s.flavor {
		return false
	}
	if s.flavor == MariaDB {
		return g.Number <= s.domains[g.Domain].Number
	}
	have := s.series[series{g.UUID, g.Tag}]
	return have != nil && have.contains(interval{g.Number, g.Number})
}

// Tagged gives the GTIDs of the set with a UUID and a number, whatever their tags: the untagged one first.
func (s *GTIDSet) Tagged(uuid [16]byte, number uint64) []GTID {
	if s == nil {
		return nil
	}
	var found []GTID
	for in, numbers := range s.series {
		if in.uuid == uuid && numbers.contains(interval{number, number}) {
			found = append(found, GTID{UUID: uuid, Tag: in.tag, Number: number})
		}
	}
	slices.SortFunc(found, func(a, b GTID) int { return strings.Compare(a.Tag, b.Tag) })
	return found
}

// ContainsSet reports whether all of o is in s. A set of the other flavor is not,
// unless it is empty.
func (s *GTIDSet) ContainsSet(o *GTIDSet) bool {
	if o.IsEmpty() {
		return true
	}
	if s == nil || s.flavor != o.flavor {
		return false
	}
	for domain, last := range o.domains {
		if last.Number > s.domains[domain].Number {
			return false
		}
	}
	for in, theirs := range o.series {
		ours := s.series[in]
		if ours == nil {
			return false
		}
		for _, i := range *theirs {
			if !ours.contains(i) {
				return false
			}
		}
	}
	return true
}

// AddSet puts all of o into the set, as Add does with each.
func (s *GTIDSet) AddSet(o *GTIDSet) {
	if o.IsEmpty() {
		return
	}
	if s.flavor != o.flavor {
		panic(fmt.Sprintf("canal: add a GTID set of %s to one of %s", o.flavor, s.flavor))
	}
	for _, last := range o.domains {
		s.Add(last)
	}
	for in, theirs := range o.series {
		for _, i := range *theirs {
			s.addInterval(in, i)
		}
	}
}

// Union returns a new set with what is in s, in o, or in both; nil when both are nil.
// It panics when both are non-empty and of different flavors, as Add does.
func (s *GTIDSet) Union(o *GTIDSet) *GTIDSet {
	if s == nil || s.IsEmpty() && !o.IsEmpty() {
		return o.Clone()
	}
	u := s.Clone()
	u.AddSet(o)
	return u
}

// Subtract returns a new set with what is in s and not in o; nil when s is nil. On
// MariaDB these are the last GTIDs of the domains in which s is ahead of o.
func (s *GTIDSet) Subtract(o *GTIDSet) *GTIDSet {
	if s == nil || o == nil || s.flavor != o.flavor {
		return s.Clone()
	}
	left := NewGTIDSet(s.flavor)
	for domain, last := range s.domains {
		if last.Number > o.domains[domain].Number {
			left.Add(last)
		}
	}
	for in, ours := range s.series {
		var theirs intervals
		if have := o.series[in]; have != nil {
			theirs = *have
		}
		left.putSeries(in, ours.subtract(theirs))
	}
	return left
}

// Intersect returns a new set with what is in both s and o; nil when s is nil. On
// MariaDB it is, for each domain of both, the last GTID that is further behind.
func (s *GTIDSet) Intersect(o *GTIDSet) *GTIDSet {
	if s == nil {
		return nil
	}
	both := NewGTIDSet(s.flavor)
	if o == nil || s.flavor != o.flavor {
		return both
	}
	for domain, ours := range s.domains {
		if theirs, shared := o.domains[domain]; shared {
			if theirs.Number < ours.Number {
				ours = theirs
			}
			both.Add(ours)
		}
	}
	for in, ours := range s.series {
		if theirs := o.series[in]; theirs != nil {
			both.putSeries(in, ours.intersect(*theirs))
		}
	}
	return both
}

// putSeries makes numbers the whole of a series that the set does not have yet.
func (s *GTIDSet) putSeries(in series, numbers intervals) {
	if len(numbers) > 0 {
		s.series[in] = &numbers
		s.count += numbers.size()
	}
}

// Equal reports whether both are nil, or both hold the same GTIDs of the same flavor; on
// MariaDB, with the same server ids.
func (s *GTIDSet) Equal(o *GTIDSet) bool {
	if s == nil || o == nil {
		return s == nil && o == nil
	}
	return s.flavor == o.flavor && s.count == o.count && maps.Equal(s.domains, o.domains) &&
		maps.EqualFunc(s.series, o.series, func(a, b *intervals) bool { return slices.Equal(*a, *b) })
}

// Clone returns a copy that shares nothing with s; nil when s is nil.
func (s *GTIDSet) Clone() *GTIDSet {
	if s == nil {
		return nil
	}
	c := &GTIDSet{flavor: s.flavor, count: s.count, domains: maps.Clone(s.domains)}
	if s.series != nil {
		c.series = make(map[series]*intervals, len(s.series))
	}
	for in, numbers := range s.series {
		copied := slices.Clone(*numbers)
		c.series[in] = &copied
	}
	return c
}

// String is the set in the server's canonical form, on one line: UUIDs ascending, each
// with its untagged numbers first and then its tags ascending; on MariaDB domains
// ascending. It is "" for the empty set.
func (s *GTIDSet) String() string {
	if s == nil {
		return ""
	}
	return string(s.appendTo(nil))
}

// MarshalText is String as bytes. It never fails.
func (s *GTIDSet) MarshalText() ([]byte, error) { return s.appendTo([]byte{}), nil }

// UnmarshalText reads what MarshalText wrote. The form tells the flavor; an empty text
// empties the set and keeps its flavor.
func (s *GTIDSet) UnmarshalText(text []byte) error {
	if s == nil {
		return errors.New("parse GTID set: no set to read it into")
	}
	f := s.flavor
	if len(bytes.TrimSpace(text)) > 0 {
		f = flavorOf(string(text))
	}
	parsed, err := ParseGTIDSet(f, string(text))
	if err != nil {
		return err
	}
	*s = *parsed
	return nil
}

func (s *GTIDSet) appendTo(b []byte) []byte {
	if s.flavor == MariaDB {
		for i, domain := range slices.Sorted(maps.Keys(s.domains)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = s.domains[domain].appendTo(b)
		}
		return b
	}
	order := slices.SortedFunc(maps.Keys(s.series), func(a, b series) int {
		return cmp.Or(bytes.Compare(a.uuid[:], b.uuid[:]), strings.Compare(a.tag, b.tag))
	})
	for i, in := range order {
		if i == 0 || in.uuid != order[i-1].uuid {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendUUID(b, in.uuid)
		}
		if in.tag != "" {
			b = append(b, ':')
			b = append(b, in.tag...)
		}
		b = s.series[in].appendTo(b)
	}
	return b
}
