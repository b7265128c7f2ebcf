package canal

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

func commonCases() []oracleCase {
	cases := []oracleCase{
		{ddl: "BIT(1)", kind: KindUint, shown: "CAST(v+0 AS CHAR)", edges: []string{"0", "1"}},
		{ddl: "BIT(12)", kind: KindUint, shown: "CAST(v+0 AS CHAR)", literal: integer(0, 4095)},
		{ddl: "BIT(64)", kind: KindUint, shown: "CAST(v+0 AS CHAR)", literal: unsigned, edges: []string{"18446744073709551615"}},
		{ddl: "YEAR", kind: KindUint, shown: "CAST(v+0 AS CHAR)", literal: integer(1901, 2155), edges: []string{"0", "1901", "2155", "'0000'"}},
		{ddl: "DATE", kind: KindDate, literal: quoted(date), edges: []string{"'0000-00-00'", "'2026-00-00'", "'2026-11-00'", "'0000-01-01'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'"}},
		{ddl: "DOUBLE", kind: KindDouble, literal: double, edges: []string{"0", "-0e0", "1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "0.1"}, shown: "v", normal: doubleText, given: func(v Value) string { return floatBits(v.Float64()) }},
		{ddl: "ENUM('a','','b,c','it''s','back\\\\slash','é') CHARACTER SET latin1", kind: KindEnum, literal: integer(1, 6), edges: []string{"'no such label'", "0"}},
		{ddl: enumOf(300), kind: KindEnum, literal: integer(1, 300)},
		{ddl: "SET('x','ü','it''s','q\"uote','back\\\\slash') CHARACTER SET latin1", kind: KindSet, literal: integer(0, 31)},
		{ddl: setOf(9), kind: KindSet, literal: integer(0, 511)},
		{ddl: setOf(64), kind: KindSet, literal: unsigned, edges: []string{"18446744073709551615"}},
		{ddl: "BINARY(16)", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(16), edges: []string{"''", "x'00'", "x'0100'"}},
		{ddl: "BINARY(255)", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(255), edges: []string{"''"}},
		{ddl: "VARBINARY(16)", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(16), edges: []string{"''", "x'0100'"}},
		{ddl: "VARBINARY(1000)", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(1000)},
		{ddl: "TINYBLOB", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(255)},
		{ddl: "BLOB", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(3000)},
		{ddl: "MEDIUMBLOB", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(300), edges: []string{"REPEAT('x',70000)"}},
		{ddl: "LONGBLOB", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: randomBytes(300)},
		{ddl: "GEOMETRY", kind: KindGeometry, shown: "ST_AsGeoJSON(v)", normal: sameNumbers, given: geoJSON, literal: geometry, edges: []string{"ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"}},
		{ddl: "POINT", kind: KindGeometry, shown: "ST_AsGeoJSON(v)", normal: sameNumbers, given: geoJSON, literal: func(r *rand.Rand) string { return "ST_GeomFromText('POINT(" + point(r) + ")')" }},
	}
	for _, n := range []struct {
		name string
		bits int
	}{{"TINYINT", 8}, {"SMALLINT", 16}, {"MEDIUMINT", 24}, {"INT", 32}, {"BIGINT", 64}} {
		low, high := -int64(1)<<(n.bits-1), int64(1)<<(n.bits-1)-1
		cases = append(cases,
			oracleCase{ddl: n.name, kind: KindInt, literal: integer(low, high), edges: []string{"0", "-1", fmt.Sprint(low), fmt.Sprint(high)}},
			oracleCase{ddl: n.name + " UNSIGNED", kind: KindUint, literal: bitsOf(n.bits), edges: []string{"0", fmt.Sprint(uint64(math.MaxUint64) >> (64 - n.bits)), fmt.Sprint(uint64(1) << (n.bits - 1))}},
		)
	}
	for _, d := range [][2]int{{1, 0}, {2, 2}, {5, 3}, {9, 0}, {10, 2}, {18, 9}, {19, 10}, {30, 30}, {38, 30}, {65, 0}, {65, 30}} {
		cases = append(cases, oracleCase{
			ddl: fmt.Sprintf("DECIMAL(%d,%d)", d[0], d[1]), kind: KindDecimal, literal: decimal(d[0], d[1]),
			edges: []string{"0", "-0.0", "9e70", "-9e70", "0.5", "-0.5"},
		})
	}
	for digits := range 7 {
		cases = append(cases,
			oracleCase{
				ddl: fmt.Sprintf("DATETIME(%d)", digits), kind: KindDateTime, literal: quoted(dateTime(digits)),
				edges: []string{"'0000-00-00 00:00:00'", "'2026-00-00 10:11:12.345678'", "'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"},
			},
			oracleCase{
				ddl: fmt.Sprintf("TIMESTAMP(%d) NULL", digits), kind: KindInstant, literal: quoted(timestamp(digits)),
				edges: []string{"0", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'", "'2024-02-29 23:59:59.5'"},
			},
			oracleCase{
				ddl: fmt.Sprintf("TIME(%d)", digits), kind: KindTime, literal: quoted(clock(digits)),
				edges: []string{"'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-00:00:01.5'", "'-00:00:00.000001'", "'-00:00:00.5'", "'100:00:00'"},
			},
		)
	}
	for _, cs := range textCharsets {
		cases = append(cases,
			oracleCase{ddl: "VARCHAR(40) CHARACTER SET " + cs, kind: KindText, shown: "HEX(CONVERT(v USING utf8mb4))", given: asHex, literal: text, edges: []string{"''", "'a '"}},
			oracleCase{ddl: "CHAR(20) CHARACTER SET " + cs, kind: KindText, shown: "HEX(CONVERT(v USING utf8mb4))", given: asHex, literal: text, edges: []string{"''", "'a '"}},
		)
	}
	for _, blob := range []string{"TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"} {
		cases = append(cases, oracleCase{ddl: blob + " CHARACTER SET gbk", kind: KindText, shown: "HEX(CONVERT(v USING utf8mb4))", given: asHex, literal: text})
	}
	cases = append(cases, oracleCase{ddl: "CHAR(255) CHARACTER SET utf8mb4", kind: KindText, literal: text})
	return cases
}

func mysqlCases() []oracleCase {
	return []oracleCase{
		{ddl: "JSON", kind: KindJSON, normal: compactJSON, literal: document, edges: []string{
			"'null'", "'true'", "'1.0'", "'-0.0'", "'1e100'", "'1e-100'", "'18446744073709551615'", "'-9223372036854775808'", "'[]'", "'{}'", `'""'`,
			"CAST(12345678901234567890.123456789 AS JSON)", "CAST(CAST('-0.50' AS DECIMAL(10,2)) AS JSON)",
			"CAST(CAST('2026-11-29 10:00:00.12' AS DATETIME(6)) AS JSON)", "CAST(CAST('2026-11-29' AS DATE) AS JSON)", "CAST(CAST('-12:13:14.5' AS TIME(3)) AS JSON)",
			"CAST(CAST(x'00ff10' AS BINARY) AS JSON)", "JSON_OBJECT('d', CAST('0000-00-00' AS DATETIME))",
			"JSON_ARRAY(REPEAT('x', 70000), 1, JSON_OBJECT('k', 2))", "JSON_OBJECT(REPEAT('k', 200), JSON_ARRAY(1, 2.5, 70000, -70000, 40000))",
			`'{"b":1,"a":2,"aa":3,"":4}'`, `'["\\u0000\\u001f\\"\\\\/\\b\\f\\n\\r\\t🙂é"]'`,
			"'1e15'", "'123456789012345.6'", "'1e14'", "'999999999999999.9'", "'0.00001'", "'1e-14'", "'1e-15'", "'1e-16'", "'1.5e300'", "'0.1'", "'100000000000000000000'",
			"ST_AsGeoJSON(ST_GeomFromText('POINT(1 2)'))", bigArray(3000), bigArray(20000),
		}},
		{ddl: "VARCHAR(40) CHARACTER SET gb18030", kind: KindText, shown: "HEX(CONVERT(v USING utf8mb4))", given: asHex, literal: text},
		{ddl: "VECTOR(3)", kind: KindVector, shown: "HEX(v)", given: vectorHex, literal: vector, edges: []string{"STRING_TO_VECTOR('[0,-0,1e30]')", "STRING_TO_VECTOR('[1,2.5,-3]')"}},
		{ddl: "GEOMETRY SRID 4326", kind: KindGeometry, shown: "ST_AsGeoJSON(v)", normal: sameNumbers, given: geoJSON, edges: []string{"ST_GeomFromText('POINT(10 20)', 4326)", "ST_GeomFromText('LINESTRING(10 20, -30.5 40)', 4326)"}},
		{ddl: "FLOAT", kind: KindFloat, shown: "CAST(v AS DOUBLE)", normal: floatNearest, given: floatText, literal: float, edges: []string{"0", "3.402823466e38", "1.175494351e-38", "0.1", "16777217"}},
	}
}

func mariaDBCases() []oracleCase {
	return []oracleCase{
		{ddl: "JSON", kind: KindText, literal: func(r *rand.Rand) string { return "'{\"a\": " + strconv.Itoa(r.IntN(1000)) + "}'" }},
		{ddl: "UUID", kind: KindText, literal: uuidLiteral, edges: []string{"'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "UUID()"}},
		{ddl: "INET4", kind: KindText, literal: inet4Literal, edges: []string{"'0.0.0.0'", "'255.255.255.255'", "'10.0.0.0'"}},
		{ddl: "INET6", kind: KindText, literal: inet6Literal, edges: []string{"'::'", "'::1'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", "'fe80::'", "'1:0:0:2:0:0:0:3'"}},
		{ddl: "VARCHAR(200) COMPRESSED CHARACTER SET latin1", kind: KindText, shown: "HEX(CONVERT(v USING utf8mb4))", given: asHex, literal: repeated, edges: []string{"''", "'a'"}},
		{ddl: "TEXT COMPRESSED CHARACTER SET utf8mb4", kind: KindText, literal: repeated, edges: []string{"''"}},
		{ddl: "BLOB COMPRESSED", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: repeatedBytes, edges: []string{"''", "x'00'"}},
		{ddl: "LONGBLOB COMPRESSED", kind: KindBinary, shown: "HEX(v)", given: asHex, literal: repeatedBytes, edges: []string{"REPEAT('x', 100000)"}},
		{ddl: "FLOAT", kind: KindFloat, shown: "CAST(v AS DOUBLE)", normal: floatNearest, given: floatText, literal: float, edges: []string{"0", "3.402823466e38", "0.1", "16777217"}},
	}
}

func mariaDB118Cases() []oracleCase {
	return append(mariaDBCases(),
		oracleCase{ddl: "VECTOR(3)", kind: KindVector, shown: "HEX(v)", given: vectorHex, literal: mariaDBVector},
		oracleCase{ddl: "TIMESTAMP(6) NULL", kind: KindInstant, edges: []string{"'2106-02-07 06:28:15.999999'", "'2100-01-01 00:00:00'"}},
	)
}

func enumOf(n int) string { return "ENUM(" + labels(n) + ")" }
func setOf(n int) string  { return "SET(" + labels(n) + ")" }

func labels(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("'l%d'", i)
	}
	return strings.Join(all, ",")
}

func integer(low, high int64) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		span := uint64(high) - uint64(low)
		if span == math.MaxUint64 {
			return strconv.FormatInt(int64(r.Uint64()), 10)
		}
		return strconv.FormatInt(int64(uint64(low)+r.Uint64N(span+1)), 10)
	}
}

func bitsOf(n int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return strconv.FormatUint(r.Uint64()>>(64-n), 10) }
}

func unsigned(r *rand.Rand) string { return strconv.FormatUint(r.Uint64()>>r.IntN(64), 10) }

func quoted(f func(*rand.Rand) string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return "'" + f(r) + "'" }
}

func decimal(precision, scale int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte('-')
		}
		for i := range 1 + r.IntN(precision) {
			_ = i
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		number := b.String()
		if scale > 0 {
			number += "e-" + strconv.Itoa(r.IntN(scale+1))
			return "CAST('" + number + "' AS DECIMAL(65,30))"
		}
		return number
	}
}

func double(r *rand.Rand) string {
	for {
		f := math.Float64frombits(r.Uint64())
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'e', -1, 64)
		}
	}
}

func float(r *rand.Rand) string {
	for {
		f := math.Float32frombits(r.Uint32())
		if a := math.Abs(float64(f)); a < 3e38 && a > 1.2e-38 {
			return strconv.FormatFloat(float64(f), 'e', -1, 32)
		}
	}
}

func date(r *rand.Rand) string {
	return fmt.Sprintf("%04d-%02d-%02d", r.IntN(10000), 1+r.IntN(12), 1+r.IntN(28))
}

func fraction(r *rand.Rand, digits int) string {
	if digits == 0 {
		return ""
	}
	return fmt.Sprintf(".%06d", r.IntN(1000000))[:1+digits]
}

func dateTime(digits int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		return fmt.Sprintf("%s %02d:%02d:%02d%s", date(r), r.IntN(24), r.IntN(60), r.IntN(60), fraction(r, digits))
	}
}

func timestamp(digits int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d%s", 1971+r.IntN(66), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), fraction(r, digits))
	}
}

func clock(digits int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		sign := ""
		if r.IntN(2) == 0 {
			sign = "-"
		}
		return fmt.Sprintf("%s%02d:%02d:%02d%s", sign, r.IntN(839), r.IntN(60), r.IntN(60), fraction(r, digits))
	}
}

func randomBytes(most int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = byte(r.Uint32())
			if r.IntN(4) == 0 {
				b[i] = 0
			}
		}
		return "x'" + hex.EncodeToString(b) + "'"
	}
}

func repeatedBytes(r *rand.Rand) string {
	return "REPEAT(" + randomBytes(20)(r) + "," + strconv.Itoa(r.IntN(200)) + ")"
}

func repeated(r *rand.Rand) string { return "LEFT(REPEAT(" + text(r) + ",20),200)" }
