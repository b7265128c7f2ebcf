package canal

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Flavor says whose binlog it is: the two servers' formats and GTIDs differ.
type Flavor uint8

// The flavors.
const (
	MySQL Flavor = iota
	MariaDB
)

func (f Flavor) String() string {
	if f == MariaDB {
		return "mariadb"
	}
	return "mysql"
}

const (
	// maxMySQLNumber is the largest transaction number that MySQL assigns: its GNO_END
	// is 2^63-1, exclusive.
	maxMySQLNumber = math.MaxInt64 - 1
	// maxTagLength is MySQL's limit for the tag of a GTID, in bytes.
	maxTagLength = 32
	// uuidLength is the length of a UUID in the dashed form, the one that servers write.
	uuidLength = 36
)

// GTID names one transaction. The zero GTID stands for an anonymous transaction
// (a MySQL server with gtid_mode=OFF).
//
// MySQL: UUID, Tag (8.3 and later, else empty) and Number.
// MariaDB: Domain, ServerID and Number; UUID and Tag are zero.
type GTID struct {
	Flavor   Flavor
	UUID     [16]byte
	Tag      string
	Domain   uint32
	ServerID uint32
	Number   uint64
}

// ParseGTID reads one GTID as a server of flavor f writes it: "UUID:NUMBER" or
// "UUID:TAG:NUMBER" (MySQL), "DOMAIN-SERVER-NUMBER" (MariaDB). Letters may be of either
// case, and white space may surround each part.
func ParseGTID(f Flavor, s string) (GTID, error) {
	if f == MariaDB {
		return parseMariaDB(s)
	}
	parts := strings.Split(s, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return GTID{}, fmt.Errorf("parse GTID %q: want UUID:NUMBER or UUID:TAG:NUMBER", s)
	}
	id, err := parseUUID(parts[0])
	if err != nil {
		return GTID{}, fmt.Errorf("parse GTID %q: %w", s, err)
	}
	g := GTID{Flavor: MySQL, UUID: id}
	if len(parts) == 3 {
		if g.Tag, err = parseTag(parts[1]); err != nil {
			return GTID{}, fmt.Errorf("parse GTID %q: %w", s, err)
		}
	}
	if g.Number, err = parseNumber(parts[len(parts)-1]); err != nil {
		return GTID{}, fmt.Errorf("parse GTID %q: %w", s, err)
	}
	return g, nil
}

// IsZero reports whether the transaction is anonymous.
func (g GTID) IsZero() bool { return g.Number == 0 }

// String is the GTID as the server writes it, and "" for an anonymous transaction.
func (g GTID) String() string {
	var room [uuidLength + 1 + maxTagLength + 1 + 20]byte
	return string(g.appendTo(room[:0]))
}

// AppendText appends what String returns. It never fails.
func (g GTID) AppendText(b []byte) ([]byte, error) { return g.appendTo(b), nil }

// MarshalText is String as bytes. It never fails.
func (g GTID) MarshalText() ([]byte, error) { return g.appendTo(nil), nil }

// UnmarshalText reads what MarshalText wrote; the form tells the flavor.
func (g *GTID) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*g = GTID{}
		return nil
	}
	parsed, err := ParseGTID(flavorOf(s), s)
	if err != nil {
		return err
	}
	*g = parsed
	return nil
}

func (g GTID) appendTo(b []byte) []byte {
	if g.IsZero() {
		return b
	}
	if g.Flavor == MariaDB {
		b = strconv.AppendUint(b, uint64(g.Domain), 10)
		b = append(b, '-')
		b = strconv.AppendUint(b, uint64(g.ServerID), 10)
		b = append(b, '-')
		return strconv.AppendUint(b, g.Number, 10)
	}
	b = appendUUID(b, g.UUID)
	if g.Tag != "" {
		b = append(b, ':')
		b = append(b, g.Tag...)
	}
	b = append(b, ':')
	return strconv.AppendUint(b, g.Number, 10)
}

// flavorOf tells the flavor of a non-empty GTID or GTID set by its form: only MySQL's
// have colons.
func flavorOf(s string) Flavor {
	if strings.Contains(s, ":") {
		return MySQL
	}
	return MariaDB
}

func parseMariaDB(s string) (GTID, error) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return GTID{}, fmt.Errorf("parse GTID %q: want DOMAIN-SERVER-NUMBER", s)
	}
	domain, err := strconv.ParseUint(strings.TrimSpace(parts[0]), 10, 32)
	if err != nil {
		return GTID{}, fmt.Errorf("parse GTID %q: domain %q is not a number of 32 bits", s, parts[0])
	}
	server, err := strconv.ParseUint(strings.TrimSpace(parts[1]), 10, 32)
	if err != nil {
		return GTID{}, fmt.Errorf("parse GTID %q: server id %q is not a number of 32 bits", s, parts[1])
	}
	number, err := strconv.ParseUint(strings.TrimSpace(parts[2]), 10, 64)
	if err != nil || number == 0 {
		return GTID{}, fmt.Errorf("parse GTID %q: sequence number %q is not a number from 1 to 2^64-1", s, parts[2])
	}
	return GTID{Flavor: MariaDB, Domain: uint32(domain), ServerID: uint32(server), Number: number}, nil
}

func parseUUID(s string) ([16]byte, error) {
	s = strings.TrimSpace(s)
	if len(s) != uuidLength {
		return [16]byte{}, fmt.Errorf("%q is not a UUID such as 3e11fa47-71ca-11e1-9e33-c80aa9429562", s)
	}
	id, err := uuid.Parse(s)
	if err != nil {
		return [16]byte{}, fmt.Errorf("%q is not a UUID such as 3e11fa47-71ca-11e1-9e33-c80aa9429562", s)
	}
	return id, nil
}

func appendUUID(b []byte, id [16]byte) []byte {
	b = hex.AppendEncode(b, id[:4])
	for _, group := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = append(b, '-')
		b = hex.AppendEncode(b, group)
	}
	return b
}

// parseTag reads a GTID's tag: a letter or underscore, then up to 31 letters, digits or
// underscores. The server folds it to lower case.
func parseTag(s string) (string, error) {
	tag := strings.TrimSpace(s)
	if !isTagStart(tag) || len(tag) > maxTagLength {
		return "", fmt.Errorf("%q is not a tag: want 1 to %d letters, digits and underscores, the first no digit", s, maxTagLength)
	}
	for i := range len(tag) {
		if !isTagByte(tag[i]) {
			return "", fmt.Errorf("%q is not a tag: it has the byte %q", s, tag[i])
		}
	}
	return strings.ToLower(tag), nil
}

// isTagStart reports whether s can only be a tag, not an interval.
func isTagStart(s string) bool {
	return s != "" && isTagByte(s[0]) && (s[0] < '0' || s[0] > '9')
}

func isTagByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// parseNumber reads a transaction number of MySQL.
func parseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil || n == 0 || n > maxMySQLNumber {
		return 0, fmt.Errorf("%q is not a transaction number from 1 to %d", s, uint64(maxMySQLNumber))
	}
	return n, nil
}
