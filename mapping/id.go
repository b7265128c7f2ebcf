package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/binlogd/binlogd/canal"
)

// Event ids, format 1
//
// An id is at most 64 characters of [0-9a-z-]. It is the same for the same change after a
// restart, a rewind, a failover to a replica and under any configuration, and differs for
// everything else. It begins with the transaction in fixed width, so that the ids of one
// server sort in commit order, and ends with a hash:
//
//	MySQL      UUID(32) "-" NUMBER(13) "-" HASH(17)                        64 characters
//	MariaDB    DOMAIN(8) "-" NUMBER(13) "-" SERVERID(8) "-" HASH(17)       49 characters
//	anonymous  SERVERUUID(32) "-" FILE(7) OFFSET(9) "-" HASH(14)           64 characters
//
// UUID, DOMAIN and SERVERID are lower-case hexadecimal. NUMBER (the transaction number of
// the GTID), FILE (the digits after the last dot of the binlog file's name, as a number) and
// OFFSET (where the transaction begins in it) are numbers in base 32 with the digits 0-9a-v,
// left-padded with zeros. HASH is the first 85 bits (anonymous: 70) of a SHA-256 in the
// lower-case base32hex alphabet of RFC 4648 without padding. A GTID's tag is not in the
// readable part; it is in the hash.
//
// The SHA-256 is taken over these fields, one after the other:
//
//	text     "1", the version of this format
//	text     the tag of the GTID, empty without one
//	text     database
//	text     table
//	8 bytes  big-endian: the change's ordinal among those of the table in the transaction, from 1
//	text     the event's type, such as "orders.updated"
//	values   the primary key's, in key order; without a primary key those of all columns
//
// A text is its length in bytes as an unsigned varint (the one of Protocol Buffers) and then
// its bytes. A value is the varint 0 where the binlog does not carry the column, the varint 1
// for NULL, and otherwise the varint n+2 and then the n bytes of its text: integers, BIT and
// YEAR in decimal, floats as the shortest decimal that reads back as the same, byte strings
// as they are, and everything else as the UTF-8 that the event shows.
//
// The values are those before the change for updates and deletions, and those after it for
// insertions. Where an update changes the primary key, its two events take the key that
// each is about: the deletion the old, the creation the new.
//
// Two ids can only be equal by a collision of 85 bits inside one transaction. Without GTIDs a
// server whose binlogs are reset numbers its files anew and can then give an id again.
const idVersion = "1"

const (
	numberWidth   = 13 // base-32 digits of a 64-bit number
	fileWidth     = 7
	offsetWidth   = 9
	hashWidth     = 17
	anonHashWidth = 14
)

// base32Hex are the digits of RFC 4648's base32hex in lower case, which are strconv's of base 32.
const base32Hex = "0123456789abcdefghijklmnopqrstuv"

// appendIDTransaction appends the readable part of the ids of t's events, up to and
// including the dash before the hash.
func appendIDTransaction(b []byte, t *canal.Transaction) ([]byte, error) {
	switch {
	case t.GTID.IsZero():
		file, err := binlogNumber(t.File)
		if err != nil {
			return nil, err
		}
		if file >= 1<<(5*fileWidth) || t.Start >= 1<<(5*offsetWidth) {
			return nil, fmt.Errorf("number the transaction at %s:%d: beyond what an event id holds; set gtid_mode=ON on the server", t.File, t.Start)
		}
		b = append(hex.AppendEncode(b, t.Server[:]), '-')
		b = appendPadded(b, file, 32, fileWidth)
		b = appendPadded(b, t.Start, 32, offsetWidth)
	case t.GTID.Flavor == canal.MariaDB:
		b = append(appendPadded(b, uint64(t.GTID.Domain), 16, 8), '-')
		b = append(appendPadded(b, t.GTID.Number, 32, numberWidth), '-')
		b = appendPadded(b, uint64(t.GTID.ServerID), 16, 8)
	default:
		b = append(hex.AppendEncode(b, t.GTID.UUID[:]), '-')
		b = appendPadded(b, t.GTID.Number, 32, numberWidth)
	}
	return append(b, '-'), nil
}

// appendIDHash appends the hash part: the first width base32hex digits of the SHA-256 of
// preimage.
func appendIDHash(b, preimage []byte, width int) []byte {
	sum := sha256.Sum256(preimage)
	high, low := binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
	for range width {
		b = append(b, base32Hex[high>>59])
		high, low = high<<5|low>>59, low<<5
	}
	return b
}

// appendIDText appends a text field of the hash.
func appendIDText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendIDOrdinal appends the ordinal field of the hash.
func appendIDOrdinal(b []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(b, n) }

// appendIDValue appends a value field of the hash.
func appendIDValue(b []byte, v canal.Value) []byte {
	switch v.Kind {
	case canal.KindAbsent:
		return append(b, 0)
	case canal.KindNull:
		return append(b, 1)
	case canal.KindInt, canal.KindUint, canal.KindFloat, canal.KindDouble:
		// At most 24 bytes of text: the varint is one byte, filled in afterwards.
		at := len(b)
		b = appendText(append(b, 0), v)
		b[at] = byte(len(b) - at - 1 + 2)
		return b
	default:
		b = binary.AppendUvarint(b, uint64(len(v.Bytes))+2)
		return appendText(b, v)
	}
}

// binlogNumber is the number at the end of a binlog file's name: 23 for "binlog.000023".
func binlogNumber(file string) (uint64, error) {
	dot := strings.LastIndexByte(file, '.')
	n, err := strconv.ParseUint(file[dot+1:], 10, 64)
	if dot < 0 || err != nil {
		return 0, fmt.Errorf("number the binlog file %q: its name does not end in a dot and a number", file)
	}
	return n, nil
}

// appendPadded appends n in the given base, with leading zeros up to width digits.
func appendPadded(b []byte, n uint64, base, width int) []byte {
	var text [64]byte
	digits := strconv.AppendUint(text[:0], n, base)
	for i := len(digits); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// IDParts is what the readable part of an event's id says of its transaction.
type IDParts struct {
	// GTID is the transaction's, but for the tag: transactions of one UUID with equal
	// numbers and different tags are told apart by the event's whole id only. Zero for
	// an anonymous transaction.
	GTID canal.GTID
	// Server, FileNumber and Offset are where an anonymous transaction begins: the
	// server's UUID, the number at the end of the binlog file's name, the byte in it.
	Server     [16]byte
	FileNumber uint64
	Offset     uint64
	// Hash is the rest, which tells the events of the transaction apart.
	Hash string
}

// ParseID reads an event's id. It refuses what no event can have as its id.
func ParseID(id string) (IDParts, error) {
	parts, err := parseID(strings.Split(id, "-"))
	if err != nil {
		return IDParts{}, fmt.Errorf("parse event id %q: %w; copy the whole id of an event", id, err)
	}
	return parts, nil
}

func parseID(fields []string) (parts IDParts, err error) {
	widths := make([]int, len(fields))
	for i, f := range fields {
		widths[i] = len(f)
	}
	parts.Hash = fields[len(fields)-1]
	if strings.Trim(parts.Hash, "0123456789abcdefghijklmnopqrstuv") != "" {
		return parts, errors.New("its hash has characters other than 0-9 and a-v")
	}
	switch fmt.Sprint(widths) {
	case "[32 13 17]":
		if parts.GTID.UUID, err = parseIDUUID(fields[0]); err != nil {
			return parts, err
		}
		parts.GTID.Number, err = parseIDNumber(fields[1], 32)
	case "[32 16 14]":
		if parts.Server, err = parseIDUUID(fields[0]); err != nil {
			return parts, err
		}
		if parts.FileNumber, err = parseIDNumber(fields[1][:fileWidth], 32); err != nil {
			return parts, err
		}
		parts.Offset, err = parseIDNumber(fields[1][fileWidth:], 32)
		return parts, err
	case "[8 13 8 17]":
		parts.GTID.Flavor = canal.MariaDB
		var domain, server uint64
		if domain, err = parseIDNumber(fields[0], 16); err != nil {
			return parts, err
		}
		if server, err = parseIDNumber(fields[2], 16); err != nil {
			return parts, err
		}
		parts.GTID.Domain, parts.GTID.ServerID = uint32(domain), uint32(server)
		parts.GTID.Number, err = parseIDNumber(fields[1], 32)
	default:
		return parts, errors.New("it has not the shape of an event id")
	}
	if err == nil && parts.GTID.IsZero() {
		err = errors.New("no transaction has the number 0")
	}
	return parts, err
}

func parseIDUUID(s string) (u [16]byte, err error) {
	if strings.ToLower(s) != s {
		return u, errors.New("it has upper-case letters")
	}
	if _, err = hex.Decode(u[:], []byte(s)); err != nil {
		return u, errors.New("it does not begin with a UUID of 32 hexadecimal digits")
	}
	return u, nil
}

func parseIDNumber(s string, base int) (uint64, error) {
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil || strings.ToLower(s) != s {
		return 0, fmt.Errorf("%q is not a number in base %d", s, base)
	}
	return n, nil
}
