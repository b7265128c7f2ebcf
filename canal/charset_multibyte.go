package canal

import (
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// multiByteSource says where a multi-byte character set's mapping comes from: an encoding of
// golang.org/x/text and the places in which the servers' own mapping differs from it.
type multiByteSource struct {
	base        encoding.Encoding
	differences []codeRun
	// leadsThree: 0x8f begins a character of three bytes.
	leadsThree bool
	// four: a digit as second byte makes a character of four bytes (GB 18030).
	four bool
}

// codeRun maps count codes of two bytes (three behind 0x8f, which is left out then and
// three set) to as many runes; rune 0 takes them out of the mapping.
type codeRun struct {
	code  uint16
	count uint16
	first uint16
	three bool
}

var multiByteSources = map[string]multiByteSource{
	"big5":    {base: traditionalchinese.Big5, differences: big5Differences},
	"cp932":   {base: japanese.ShiftJIS, differences: cp932Differences},
	"eucjpms": {base: japanese.EUCJP, differences: eucjpmsDifferences, leadsThree: true},
	"euckr":   {base: korean.EUCKR},
	"gb18030": {base: simplifiedchinese.GB18030, differences: gb18030Differences, four: true},
	"gb2312":  {base: simplifiedchinese.GBK, differences: gb2312Differences},
	"gbk":     {base: simplifiedchinese.GBK, differences: gbkDifferences},
	"sjis":    {base: japanese.ShiftJIS, differences: sjisDifferences},
	"ujis":    {base: japanese.EUCJP, differences: ujisDifferences, leadsThree: true},
}

// pairTable holds the rune of each two bytes from 0x8000; 0: none.
type pairTable [0x8000]uint16

// multiByteTable maps a character set's bytes to runes. All but four-byte ones are in the
// Basic Multilingual Plane.
type multiByteTable struct {
	single [128]uint16 // from 0x80
	pairs  pairTable
	threes *pairTable // behind 0x8f
	source multiByteSource
}

func newMultiByteTable(name string) *multiByteTable {
	source := multiByteSources[name]
	t := &multiByteTable{source: source}
	dec := source.base.NewDecoder()
	var out [16]byte
	decode := func(b ...byte) uint16 {
		dec.Reset()
		n, used, err := dec.Transform(out[:], b, true)
		r, size := utf8.DecodeRune(out[:n])
		if err != nil || used != len(b) || size != n || r == utf8.RuneError || r > 0xffff {
			return 0
		}
		return uint16(r)
	}
	// Half-width katakana. The servers know none of the single bytes before them.
	const firstSingle = 0xa1
	for i := firstSingle - 0x80; i < len(t.single); i++ {
		t.single[i] = decode(byte(0x80 + i))
	}
	if source.leadsThree {
		t.threes = new(pairTable)
	}
	for i := range t.pairs {
		lead, trail := byte(0x80+i>>8), byte(i)
		if t.single[lead-0x80] == 0 {
			t.pairs[i] = decode(lead, trail)
		}
		if t.threes != nil {
			t.threes[i] = decode(0x8f, lead, trail)
		}
	}
	for _, run := range source.differences {
		table := &t.pairs
		if run.three {
			table = t.threes
		}
		for i := range run.count {
			r := uint16(0)
			if run.first != 0 {
				r = run.first + i
			}
			table[run.code-0x8000+i] = r
		}
	}
	return t
}

// appendUTF8 converts text to UTF-8, with U+FFFD for each place that is invalid.
func (t *multiByteTable) appendUTF8(dst, b []byte) (out []byte, invalid int) {
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			dst = append(dst, b[0])
			b = b[1:]
			continue
		}
		r, size := t.rune(b)
		if r == 0 {
			r, size = utf8.RuneError, 1
			invalid++
		}
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst, invalid
}

// rune reads the first character, which is not ASCII; 0 where it is invalid.
func (t *multiByteTable) rune(b []byte) (r rune, size int) {
	if r := t.single[b[0]-0x80]; r != 0 {
		return rune(r), 1
	}
	if len(b) < 2 {
		return 0, 1
	}
	switch {
	case t.source.four && b[1]-'0' < 10:
		if len(b) < 4 {
			return 0, 1
		}
		return gb18030Rune(b), 4
	case t.source.leadsThree && b[0] == 0x8f:
		if len(b) < 3 || b[1] < 0x80 {
			return 0, 1
		}
		return rune(t.threes[int(b[1]-0x80)<<8|int(b[2])]), 3
	}
	return rune(t.pairs[int(b[0]-0x80)<<8|int(b[1])]), 2
}

// gb18030Rune reads a character of four bytes; 0 where it is invalid.
func gb18030Rune(b []byte) rune {
	switch binary.BigEndian.Uint32(b) {
	case 0x8431a437:
		return utf8.RuneError // the character itself, not a mistake
	case 0x8135f437:
		return 0xe7c7 // until 2005; later editions of GB 18030 moved it
	}
	var out [8]byte
	n, _, err := simplifiedchinese.GB18030.NewDecoder().Transform(out[:], b[:4], true)
	r, size := utf8.DecodeRune(out[:n])
	if err != nil || size != n || r == utf8.RuneError {
		return 0
	}
	return r
}
