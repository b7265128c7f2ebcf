package canal

import (
	"encoding/binary"
	"errors"
)

// The formats of MySQL 5.6 and later: big-endian, offset so that they sort as bytes, with
// as many bytes of fraction as the column's digits need (two digits a byte).
// https://dev.mysql.com/doc/dev/mysql-server/latest/ (sql-common/my_time.cc)

var errBadTemporal = errors.New("the bytes are no date or time")

// fracBytes is the number of bytes that hold so many digits of a second.
func fracBytes(digits int) int { return (digits + 1) / 2 }

// bigEndian reads up to eight bytes.
func bigEndian(b []byte) uint64 {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// appendTime2 renders TIME as [-]hh:mm:ss[.fraction]; hours have up to three digits.
func appendTime2(dst, b []byte, digits int) []byte {
	bits := 8 * len(b)
	v := int64(bigEndian(b)) - 1<<(bits-1)
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	fraction := bits - 24
	whole := v >> fraction
	dst = appendHours(dst, uint32(whole>>12&0x3ff))
	dst = append(dst, ':')
	dst = append2(dst, uint32(whole>>6&0x3f))
	dst = append(dst, ':')
	dst = append2(dst, uint32(whole&0x3f))
	return appendFraction(dst, uint32(v&(1<<fraction-1)), len(b)-3, digits)
}

// appendDateTime2 renders DATETIME with a T between date and time; a date without a month
// or day (zero dates) as the server shows it, with a space.
func appendDateTime2(dst, b []byte, digits int) []byte {
	v := bigEndian(b[:5]) - 1<<39
	ymd := uint32(v >> 17)
	hms := uint32(v & (1<<17 - 1))
	dst = appendDateAndSeparator(dst, ymd>>5/13, ymd>>5%13, ymd&0x1f)
	dst = appendClock(dst, hms>>12, hms>>6&0x3f, hms&0x3f)
	return appendFraction(dst, uint32(bigEndian(b[5:])), len(b)-5, digits)
}

// appendTimestamp2 renders TIMESTAMP as RFC 3339 in UTC.
func appendTimestamp2(dst, b []byte, digits int) []byte {
	seconds := binary.BigEndian.Uint32(b)
	fraction := uint32(bigEndian(b[4:]))
	if seconds == 0 && fraction == 0 {
		dst = append(dst, "0000-00-00 00:00:00"...)
		return appendFraction(dst, 0, len(b)-4, digits)
	}
	dst = appendInstant(dst, seconds)
	dst = appendFraction(dst, fraction, len(b)-4, digits)
	return append(dst, 'Z')
}

// appendDate renders DATE from its three bytes: day 5 bits, month 4, year 15.
func appendDate(dst, b []byte) []byte {
	v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	return appendYMD(dst, v>>9, v>>5&0xf, v&0x1f)
}

// The formats before 5.6, which MariaDB writes with mysql56_temporal_format=OFF. They hold
// decimal digits.

// appendTimeOld renders the three bytes of an old TIME: ±hhmmss.
func appendTimeOld(dst, b []byte) []byte {
	v := int32(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16) << 8 >> 8
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	return appendClockDigits(dst, uint32(v))
}

func appendClockDigits(dst []byte, hms uint32) []byte {
	dst = appendHours(dst, hms/10000)
	dst = append(dst, ':')
	dst = append2(dst, hms/100%100)
	dst = append(dst, ':')
	return append2(dst, hms%100)
}

// appendDateTimeOld renders the eight bytes of an old DATETIME: yyyymmddhhmmss.
func appendDateTimeOld(dst, b []byte) ([]byte, error) {
	v := binary.LittleEndian.Uint64(b)
	if v > 99991231235959 {
		return dst, errBadTemporal
	}
	ymd, hms := uint32(v/1000000), uint32(v%1000000)
	dst = appendDateAndSeparator(dst, ymd/10000, ymd/100%100, ymd%100)
	return appendClock(dst, hms/10000, hms/100%100, hms%100), nil
}

// appendTimestampOld renders the four bytes of an old TIMESTAMP: seconds.
func appendTimestampOld(dst, b []byte) []byte {
	seconds := binary.LittleEndian.Uint32(b)
	if seconds == 0 {
		return append(dst, "0000-00-00 00:00:00"...)
	}
	return append(appendInstant(dst, seconds), 'Z')
}

// hiresBytes is the size of MariaDB's own TIME, DATETIME and TIMESTAMP with so many digits
// of a second, as written with mysql56_temporal_format=OFF: one big-endian number.
func hiresBytes(kind fieldCode, digits int) int {
	switch kind {
	case codeTimeOld:
		return [...]int{3, 4, 4, 5, 5, 5, 6}[digits]
	case codeDateTimeOld:
		return [...]int{5, 6, 6, 7, 7, 7, 8}[digits]
	default:
		return 4 + [...]int{0, 1, 1, 2, 2, 3, 3}[digits]
	}
}

// secondsOfHires is where the number of an hires TIME stands for zero.
const hiresTimeZero = (838*3600 + 59*60 + 59 + 1)

var powersOfTen = [...]uint64{1, 10, 100, 1000, 10000, 100000, 1000000}

// appendTimeHires renders MariaDB's TIME(n): units of the last digit since -838:59:59.999999.
func appendTimeHires(dst, b []byte, digits int) []byte {
	unit := powersOfTen[digits]
	v := int64(bigEndian(b)) - int64(hiresTimeZero*unit)
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	seconds := uint64(v) / unit
	dst = appendHours(dst, uint32(seconds/3600))
	dst = append(dst, ':')
	dst = append2(dst, uint32(seconds/60%60))
	dst = append(dst, ':')
	dst = append2(dst, uint32(seconds%60))
	return appendDigits(dst, uint32(uint64(v)%unit), digits)
}

// appendDateTimeHires renders MariaDB's DATETIME(n): the parts packed by multiplication,
// ((((((year*13+month)*32+day)*24+hour)*60+minute)*60)+second)*10^n + fraction.
func appendDateTimeHires(dst, b []byte, digits int) []byte {
	unit := powersOfTen[digits]
	v := bigEndian(b)
	fraction := uint32(v % unit)
	v /= unit
	second := uint32(v % 60)
	v /= 60
	minute := uint32(v % 60)
	v /= 60
	hour := uint32(v % 24)
	v /= 24
	day := uint32(v % 32)
	v /= 32
	dst = appendDateAndSeparator(dst, uint32(v/13), uint32(v%13), day)
	dst = appendClock(dst, hour, minute, second)
	return appendDigits(dst, fraction, digits)
}

// appendTimestampHires renders MariaDB's TIMESTAMP(n): seconds, then the fraction.
func appendTimestampHires(dst, b []byte, digits int) []byte {
	seconds := binary.BigEndian.Uint32(b)
	fraction := uint32(bigEndian(b[4:]))
	if seconds == 0 && fraction == 0 {
		return appendDigits(append(dst, "0000-00-00 00:00:00"...), 0, digits)
	}
	return append(appendDigits(appendInstant(dst, seconds), fraction, digits), 'Z')
}

// appendInstant renders seconds since 1970 as 2006-01-02T15:04:05. Days become a date by
// counting years from March, so that the leap day is the last of its year.
// https://howardhinnant.github.io/date_algorithms.html#civil_from_days
func appendInstant(dst []byte, seconds uint32) []byte {
	days := seconds/86400 + 719468 // since 0000-03-01
	clock := seconds % 86400
	era := days / 146097
	dayOfEra := days % 146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day := dayOfYear - (153*m+2)/5 + 1
	month := m + 3
	year := yearOfEra + era*400
	if month > 12 {
		month -= 12
		year++
	}
	dst = appendYMD(dst, year, month, day)
	dst = append(dst, 'T')
	return appendClock(dst, clock/3600, clock/60%60, clock%60)
}

func appendDateAndSeparator(dst []byte, year, month, day uint32) []byte {
	dst = appendYMD(dst, year, month, day)
	if month == 0 || day == 0 {
		return append(dst, ' ')
	}
	return append(dst, 'T')
}

func appendYMD(dst []byte, year, month, day uint32) []byte {
	if year > 9999 {
		dst = append(dst, byte('0'+year/10000%10))
	}
	n := len(dst)
	dst = extend(dst, len("2006-01-02"))
	b := dst[n:]
	put2(b, year/100%100)
	put2(b[2:], year%100)
	b[4] = '-'
	put2(b[5:], month)
	b[7] = '-'
	put2(b[8:], day)
	return dst
}

func appendClock(dst []byte, hour, minute, second uint32) []byte {
	n := len(dst)
	dst = extend(dst, len("15:04:05"))
	b := dst[n:]
	put2(b, hour)
	b[2] = ':'
	put2(b[3:], minute)
	b[5] = ':'
	put2(b[6:], second)
	return dst
}

func appendHours(dst []byte, hours uint32) []byte {
	if hours > 99 {
		dst = append(dst, byte('0'+hours/100%10))
	}
	return append2(dst, hours%100)
}

// twoDigits are the last two decimal digits of the numbers that seven bits hold.
var twoDigits = func() (digits [128][2]byte) {
	for v := range digits {
		digits[v] = [2]byte{byte('0' + v/10%10), byte('0' + v%10)}
	}
	return digits
}()

// put2 writes v, which is below 128, as two decimal digits.
func put2(b []byte, v uint32) { *(*[2]byte)(b) = twoDigits[v&127] }

// append2 renders v, which is below 128, as two decimal digits.
func append2(dst []byte, v uint32) []byte {
	digits := &twoDigits[v&127]
	return append(dst, digits[0], digits[1])
}

// appendFraction renders digits digits of a fraction that is stored in size bytes, two
// digits each.
func appendFraction(dst []byte, v uint32, size, digits int) []byte {
	if digits < 2*size {
		v /= 10
	}
	return appendDigits(dst, v, digits)
}

// appendDigits renders a point and v with exactly so many digits; nothing for none.
func appendDigits(dst []byte, v uint32, digits int) []byte {
	if digits == 0 {
		return dst
	}
	return appendPadded(append(dst, '.'), v, digits)
}
