package canal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

var textCharsets = []string{
	"utf8mb4", "utf8mb3", "ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
	"cp852", "cp866", "koi8r", "koi8u", "greek", "hebrew", "tis620", "macroman", "macce", "armscii8", "geostd8", "dec8", "hp8",
	"swe7", "keybcs2", "gbk", "gb2312", "big5", "sjis", "cp932", "ujis", "eucjpms", "euckr", "ucs2", "utf16", "utf16le", "utf32",
}

// textScripts are ranges of characters, of which a text takes one and the first.
var textScripts = [][2]rune{
	{0x20, 0x7e},
	{0xa0, 0xff},
	{0x100, 0x17f},
	{0x370, 0x3ff},
	{0x400, 0x45f},
	{0x531, 0x586},
	{0x5d0, 0x5ea},
	{0x620, 0x64a},
	{0xe01, 0xe3a},
	{0x10d0, 0x10f0},
	{0x2010, 0x2040},
	{0x3041, 0x30fe},
	{0x4e00, 0x9fa5},
	{0xac00, 0xd7a3},
	{0xff61, 0xff9f},
	{0x1f600, 0x1f640},
}

// text makes a literal of characters of one script and ASCII; what a character set does not
// have the server turns into question marks.
func text(r *rand.Rand) string {
	script := textScripts[r.IntN(len(textScripts))]
	var b strings.Builder
	for range r.IntN(20) {
		from := script
		if r.IntN(3) == 0 {
			from = textScripts[0]
		}
		b.WriteRune(from[0] + r.Int32N(from[1]-from[0]+1))
	}
	return literal(b.String())
}

func literal(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

func document(r *rand.Rand) string {
	b, err := json.Marshal(anyJSON(r, 4))
	if err != nil {
		panic(err)
	}
	return literal(string(b))
}

func anyJSON(r *rand.Rand, depth int) any {
	n := 8
	if depth == 0 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return r.Uint64()
	case 4:
		return json.Number(double(r))
	case 5:
		s := make([]rune, r.IntN(300))
		for i := range s {
			s[i] = []rune{rune(r.IntN(0x80)), rune(0xa0 + r.IntN(0x500)), rune(0x4e00 + r.IntN(1000)), rune(0x1f600 + r.IntN(50))}[r.IntN(4)]
		}
		return string(s)
	case 6:
		list := make([]any, r.IntN(6))
		for i := range list {
			list[i] = anyJSON(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(6) {
		object[strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(4))] = anyJSON(r, depth-1)
	}
	return object
}

// bigArray is a document with offsets of four bytes when it is large enough.
func bigArray(n int) string {
	var b strings.Builder
	b.WriteString("'[")
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"n":%d}`, i*7)
	}
	b.WriteString("]'")
	return b.String()
}

func point(r *rand.Rand) string {
	return fmt.Sprintf("%v %v", float64(r.IntN(20000)-10000)/8, r.NormFloat64()*1000)
}

func points(r *rand.Rand, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = point(r)
	}
	return strings.Join(all, ",")
}

func ring(r *rand.Rand) string {
	x, y, w := r.IntN(1000), r.IntN(1000), 1+r.IntN(100)
	return fmt.Sprintf("(%d %d,%d %d,%d %d,%d %d)", x, y, x+w, y, x+w, y+w, x, y)
}

func shape(r *rand.Rand, kinds int) string {
	switch r.IntN(kinds) {
	case 0:
		return "POINT(" + point(r) + ")"
	case 1:
		return "LINESTRING(" + points(r, 2+r.IntN(5)) + ")"
	case 2:
		return "POLYGON(" + ring(r) + ")"
	case 3:
		return "MULTIPOINT(" + points(r, 1+r.IntN(5)) + ")"
	case 4:
		return "MULTILINESTRING((" + points(r, 2) + "),(" + points(r, 3) + "))"
	case 5:
		return "MULTIPOLYGON((" + ring(r) + "),(" + ring(r) + "))"
	}
	return "GEOMETRYCOLLECTION(" + shape(r, 6) + "," + shape(r, 6) + ")"
}

func geometry(r *rand.Rand) string { return "ST_GeomFromText('" + shape(r, 7) + "')" }

func vector(r *rand.Rand) string {
	return fmt.Sprintf("STRING_TO_VECTOR('[%s,%s,%s]')", float(r), float(r), float(r))
}

func mariaDBVector(r *rand.Rand) string {
	return fmt.Sprintf("Vec_FromText('[%s,%s,%s]')", float(r), float(r), float(r))
}

func floatText(v Value) string { return floatBits(float64(v.Float32())) }

func uuidLiteral(r *rand.Rand) string {
	return fmt.Sprintf("'%08x-%04x-%04x-%04x-%012x'", r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xffff, r.Uint32()&0xffff, r.Uint64()&0xffffffffffff)
}

func inet4Literal(r *rand.Rand) string {
	return fmt.Sprintf("'%d.%d.%d.%d'", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256))
}

func inet6Literal(r *rand.Rand) string {
	parts := make([]string, 8)
	for i := range parts {
		parts[i] = "0"
		if r.IntN(2) == 0 {
			parts[i] = strconv.FormatUint(uint64(r.IntN(0x10000)), 16)
		}
	}
	return "'" + strings.Join(parts, ":") + "'"
}

// sameNumbers makes equal JSON documents equal texts, however their numbers are written.
func sameNumbers(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error() + ": " + text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func doubleText(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err.Error()
	}
	return floatBits(f)
}

// floatNearest: the server shows a FLOAT as a DOUBLE that may be off in its last digit.
func floatNearest(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err.Error()
	}
	return floatBits(float64(float32(f)))
}
