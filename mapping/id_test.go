package mapping

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/canal"
)

// referenceID makes an id of a MySQL transaction by the letter of the format's
// description. A nil value stands for NULL.
func referenceID(gtid canal.GTID, database, table string, ordinal uint64, eventType string, values ...*string) string {
	var hashed []byte
	varint := func(n int) {
		var b [binary.MaxVarintLen64]byte
		hashed = append(hashed, b[:binary.PutUvarint(b[:], uint64(n))]...)
	}
	field := func(s string) {
		varint(len(s))
		hashed = append(hashed, s...)
	}
	field("1")
	field(gtid.Tag)
	field(database)
	field(table)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], ordinal)
	hashed = append(hashed, n[:]...)
	field(eventType)
	for _, v := range values {
		if v == nil {
			varint(1)
			continue
		}
		varint(len(*v) + 2)
		hashed = append(hashed, *v...)
	}
	sum := sha256.Sum256(hashed)
	hash := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:17]

	// 13 digits of base32hex hold 65 bits: a zero bit and the number.
	var bits strings.Builder
	fmt.Fprintf(&bits, "%065b", gtid.Number)
	var number strings.Builder
	for i := 0; i < 65; i += 5 {
		var digit int
		_, _ = fmt.Sscanf(bits.String()[i:i+5], "%b", &digit)
		number.WriteByte("0123456789abcdefghijklmnopqrstuv"[digit])
	}
	return hex.EncodeToString(gtid.UUID[:]) + "-" + number.String() + "-" + hash
}

func TestIDFormat(t *testing.T) {
	p := func(s string) *string { return &s }
	long := strings.Repeat("x", 300)
	pair := table("shop", "pairs", []int{1, 0}, "second", "first")
	nopk := table("shop", "nopk", nil, "a", "b", "c")
	transaction := mysqlTransaction(1<<63 - 2)
	transaction.GTID.Tag = "blue"
	events := mapRows(t, Options{Name: "any", Tables: []TableRule{{Table: "*.*"}}}, transaction, numbered(
		inserted(pair, number(-2), text(long)),
		changed(pair, values(number(-2), text(long)), values(number(7), text("Ünder"))),
		removed(nopk, canal.NewDouble(1.5), null, of(canal.KindBinary, "\x00\xff")),
	))
	var got []string
	for _, e := range events {
		got = append(got, e.ID)
	}
	require.Equal(t, []string{
		referenceID(transaction.GTID, "shop", "pairs", 1, "pairs.created", p(long), p("-2")),
		referenceID(transaction.GTID, "shop", "pairs", 2, "pairs.deleted", p(long), p("-2")),
		referenceID(transaction.GTID, "shop", "pairs", 2, "pairs.created", p("Ünder"), p("7")),
		referenceID(transaction.GTID, "shop", "nopk", 1, "nopk.deleted", p("1.5"), nil, p("\x00\xff")),
	}, got)
}

// TestIDsDiffer holds changes that only differ in one thing against each other, most
// of all in where one field ends and the next begins.
func TestIDsDiffer(t *testing.T) {
	pk := []int{0}
	rows := []canal.Row{
		inserted(table("shop", "orders", pk, "id"), text("1")),
		inserted(table("shop", "order", pk, "id"), text("s1")),
		inserted(table("shopo", "rders", pk, "id"), text("1")),
		inserted(table("shop", "orders", pk, "id"), text("12")),
		inserted(table("shop", "orders", pk, "id"), text("")),
		inserted(table("shop", "orders", []int{0, 1}, "a", "b"), text("1"), text("2")),
		inserted(table("shop", "orders", []int{0, 1}, "a", "b"), text("12"), text("")),
		inserted(table("shop", "orders", []int{0, 1}, "a", "b"), text(""), text("12")),
		inserted(table("shop", "orders", []int{1, 0}, "a", "b"), text("1"), text("2")),
		inserted(table("shop", "orders", nil, "a", "b"), null, text("2")),
		inserted(table("shop", "orders", nil, "a", "b"), absent, text("2")),
		inserted(table("shop", "orders", nil, "a", "b"), text("null"), text("2")),
		inserted(table("shop", "orders", nil, "a", "b"), text("\x01"), text("2")),
		removed(table("shop", "orders", pk, "id"), text("1")),
		changed(table("shop", "orders", pk, "id"), values(text("1")), values(text("1"))),
	}
	seen := map[string]string{}
	for _, transaction := range []*canal.Transaction{
		mysqlTransaction(1), mysqlTransaction(2), mysqlTransaction(1 << 62),
		mariadbTransaction(1), mariadbTransaction(2),
		anonymousTransaction("binlog.000001", 4), anonymousTransaction("binlog.000001", 5), anonymousTransaction("binlog.000002", 4),
	} {
		for _, ordinal := range []uint64{1, 2, 256, 1 << 40} {
			for i, row := range rows {
				row.Ordinal, row.Place = ordinal, 1
				e := mapRows(t, Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}, transaction, []canal.Row{row})
				require.Len(t, e, 1)
				what := fmt.Sprintf("row %d, ordinal %d, %s", i, ordinal, transactionName(transaction))
				require.Empty(t, seen[e[0].ID], what)
				seen[e[0].ID] = what
			}
		}
	}
}

// TestTagsTellIDsApart: transactions of one UUID with equal numbers and different tags are
// different transactions.
func TestTagsTellIDsApart(t *testing.T) {
	plain, blue := mysqlTransaction(7), mysqlTransaction(7)
	blue.GTID.Tag = "blue"
	rows := numbered(inserted(keyed("kc"), number(1), number(1)))
	opts := Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}
	require.NotEqual(t, mapRows(t, opts, plain, rows)[0].ID, mapRows(t, opts, blue, rows)[0].ID)
}

func TestIDsAndSequencesSortInCommitOrder(t *testing.T) {
	rows := numbered(inserted(keyed("kc"), number(1), number(1)))
	opts := Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}
	numbers := []uint64{1, 2, 9, 10, 31, 32, 33, 1023, 1024, 1 << 35, 1<<62 + 1, 1<<63 - 2}
	for name, transaction := range map[string]func(uint64) *canal.Transaction{
		"mysql":   mysqlTransaction,
		"mariadb": mariadbTransaction,
		"anonymous file": func(n uint64) *canal.Transaction {
			return anonymousTransaction(fmt.Sprintf("b.x.%06d", n%10_000_000), n)
		},
		"anonymous place": func(n uint64) *canal.Transaction { return anonymousTransaction("binlog.000001", n) },
	} {
		t.Run(name, func(t *testing.T) {
			var ids, sequences []string
			for _, n := range numbers {
				if strings.HasPrefix(name, "anonymous") && n >= 1<<23 {
					break // beyond what a file's number reaches
				}
				e := mapRows(t, opts, transaction(n), rows)[0]
				ids, sequences = append(ids, e.ID), append(sequences, e.Sequence)
			}
			require.True(t, slices.IsSorted(ids), ids)
			require.True(t, slices.IsSorted(sequences), sequences)
		})
	}
}

func TestParseID(t *testing.T) {
	rows := numbered(inserted(keyed("kc"), number(1), number(1)))
	opts := Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}}
	for _, transaction := range []*canal.Transaction{
		mysqlTransaction(23), mysqlTransaction(1<<63 - 2),
		mariadbTransaction(23), mariadbTransaction(1<<64 - 1),
		anonymousTransaction("binlog.000023", 4), anonymousTransaction("my.host.bin.9999999", 9_999_999_999_999),
	} {
		id := mapRows(t, opts, transaction, rows)[0].ID
		got, err := ParseID(id)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(id, "-"+got.Hash))
		want := IDParts{GTID: transaction.GTID, Server: transaction.Server, Offset: transaction.Start, Hash: got.Hash}
		if transaction.GTID.IsZero() {
			want.FileNumber, err = binlogNumber(transaction.File)
			require.NoError(t, err)
		}
		require.Equal(t, want, got)
	}
}

func TestParseIDRefuses(t *testing.T) {
	const good = "3e11fa4771ca11e19e33c80aa9429562-000000000000n-cael4142npdrlhq28"
	_, err := ParseID(good)
	require.NoError(t, err)
	for id, problem := range map[string]string{
		"":                    "shape",
		"-":                   "shape",
		good[:60]:             "shape",
		good + "0":            "shape",
		good + "-0":           "shape",
		strings.ToUpper(good): "hash has characters",
		"3E11FA4771CA11E19E33C80AA9429562-000000000000n-cael4142npdrlhq28": "upper-case",
		"3e11fa4771ca11e19e33c80aa942956z-000000000000n-cael4142npdrlhq28": "UUID",
		"3e11fa4771ca11e19e33c80aa9429562-000000000000w-cael4142npdrlhq28": "base 32",
		"3e11fa4771ca11e19e33c80aa9429562-000000000000N-cael4142npdrlhq28": "base 32",
		"3e11fa4771ca11e19e33c80aa9429562-0000000000000-cael4142npdrlhq28": "number 0",
		"3e11fa4771ca11e19e33c80aa9429562-vvvvvvvvvvvvv-cael4142npdrlhq28": "base 32",
		"3e11fa4771ca11e19e33c80aa9429562-000000000000n-cael4142npdrlhq2w": "hash",
		"3e11fa4771ca11e19e33c80aa9429562-000000n0000004w7-cael4142npdrlh": "base 32",
		"0000000g-000000000000u-00001267-3rjcufohdq5mke92t":                "base 16",
	} {
		_, err := ParseID(id)
		require.ErrorContains(t, err, problem, id)
		require.ErrorContains(t, err, fmt.Sprintf("%q", id))
	}
}

// FuzzParseID: no panic, and what is accepted is the one way to write it.
func FuzzParseID(f *testing.F) {
	f.Add("3e11fa4771ca11e19e33c80aa9429562-000000000000n-cael4142npdrlhq28")
	f.Add("3e11fa4771ca11e19e33c80aa9429562-000000n0000004j7-cael4142npdrlh")
	f.Add("00000001-000000000000u-00001267-3rjcufohdq5mke92t")
	f.Fuzz(func(t *testing.T, id string) {
		parts, err := ParseID(id)
		if err != nil {
			return
		}
		transaction := &canal.Transaction{
			GTID: parts.GTID, Server: parts.Server, Start: parts.Offset,
			File: fmt.Sprintf("binlog.%06d", parts.FileNumber),
		}
		b, err := appendIDTransaction(nil, transaction)
		require.NoError(t, err)
		require.Equal(t, id, string(b)+parts.Hash)
	})
}

func TestAnonymousTransactionsThatCannotBeNumbered(t *testing.T) {
	m, err := New(Options{Name: "shop", Tables: []TableRule{{Table: "*.*"}}})
	require.NoError(t, err)
	for _, c := range []struct {
		file    string
		start   uint64
		problem string
	}{
		{"binlog", 4, "does not end in a dot and a number"},
		{"binlog.index", 4, "does not end in a dot and a number"},
		{"", 4, "does not end in a dot and a number"},
		{"binlog.10000000", 4, "gtid_mode=ON"},
		{"binlog.34359738368", 4, "gtid_mode=ON"},
		{"binlog.000001", 10_000_000_000_000, "gtid_mode=ON"},
	} {
		require.ErrorContains(t, m.NewWorker().Begin(anonymousTransaction(c.file, c.start)), c.problem)
	}
}
