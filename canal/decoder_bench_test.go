package canal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// BenchmarkDecode decodes the same real transactions of an order table of twelve columns with this
// package's decoder and with go-mysql's. Rows per second of both are reported; skim is
// the counting of rows that are not captured.
func BenchmarkDecode(b *testing.B) {
	server := testenv.MySQL(b)
	for _, op := range []string{"insert", "update"} {
		transactions, rows := orderTransactions(b, server, op)
		captured := func(string, string) bool { return true }
		b.Run(op+"/binlogd", func(b *testing.B) {
			decoder := NewDecoder(DecoderOptions{Captured: captured})
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, t := range transactions {
					cursor := decoder.Rows(b.Context(), t)
					for cursor.Next() {
						n++
					}
					if err := cursor.Err(); err != nil {
						b.Fatal(err)
					}
				}
				if n != rows {
					b.Fatalf("%d rows of %d", n, rows)
				}
			}
			reportRows(b, rows)
		})
		b.Run(op+"/skim", func(b *testing.B) {
			decoder := NewDecoder(DecoderOptions{Captured: func(string, string) bool { return false }})
			b.ReportAllocs()
			for b.Loop() {
				for _, t := range transactions {
					piece := *t
					piece.out = make(chan ordinals, 1)
					if err := decoder.Rows(b.Context(), &piece).Err(); err != nil {
						b.Fatal(err)
					}
				}
			}
			reportRows(b, rows)
		})
		b.Run(op+"/go-mysql", func(b *testing.B) {
			format := formatDescription(b, server)
			events := sizedEvents(transactions)
			b.ReportAllocs()
			for b.Loop() {
				parser := replication.NewBinlogParser()
				_, err := parser.Parse(format)
				require.NoError(b, err)
				for _, e := range events {
					if _, err := parser.Parse(e); err != nil {
						b.Fatal(err)
					}
				}
			}
			reportRows(b, rows)
		})
	}
}

func reportRows(b *testing.B, rows int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(0, "ns/op")
}

// orderTransactions makes transactions of one hundred rows each of an order table.
func orderTransactions(b *testing.B, server *testenv.Server, op string) (transactions []*Transaction, rows int) {
	const count, size = 20, 100
	database := server.Database(b)
	server.Exec(b, "USE "+database+`; CREATE TABLE orders (
		id BIGINT UNSIGNED PRIMARY KEY, number VARCHAR(32) NOT NULL, customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent','cancelled') NOT NULL,
		amount DECIMAL(12,2) NOT NULL, currency CHAR(3) NOT NULL, address VARCHAR(200), note TEXT, quantity SMALLINT NOT NULL, weight DOUBLE,
		created DATETIME(3) NOT NULL, updated TIMESTAMP(6) NOT NULL)`)
	load := func(verb string) {
		for t := range count {
			values := make([]string, size)
			for r := range values {
				id := t*size + r + 1
				values[r] = fmt.Sprintf("(%d,'20261129-%08d',%d,%d,%d.%02d,'EUR','%d Example Street, 10115 Berlin, Bezirk Mitte',%s,%d,%d.5,'2026-11-29 10:%02d:%02d.123','2026-11-29 10:00:00.123456')",
					id, id, 100000+id%977, 1+id%4, id%5000, id%100, id%250, []string{"NULL", "'ring twice, leave it with the neighbour on the left'"}[id%2], 1+id%9, id%40, id/60%60, id%60)
			}
			server.Exec(b, "USE "+database+"; "+verb+" INTO orders VALUES "+strings.Join(values, ","))
		}
	}
	if op == "update" {
		load("INSERT")
	}
	from := here(b, server)
	if op == "update" {
		for t := range count {
			server.Exec(b, fmt.Sprintf("USE %s; UPDATE orders SET status='sent', amount=amount+1 WHERE id > %d AND id <= %d", database, t*size, (t+1)*size))
		}
	} else {
		load("INSERT")
	}
	return rawTransactions(b, server, from, count), count * size
}

// formatDescription is the server's FORMAT_DESCRIPTION event, which go-mysql's parser needs
// first, with checksums declared off: the events have lost theirs.
func formatDescription(tb testing.TB, server *testenv.Server) []byte {
	const magic, checksum = 4, 4
	files := server.BinlogFiles(tb)
	data, err := os.ReadFile(filepath.Join(server.DataDir(), files[len(files)-1]))
	require.NoError(tb, err)
	event := data[magic:]
	event = event[:binary.LittleEndian.Uint32(event[9:])]
	event[len(event)-checksum-1] = byte(replication.BINLOG_CHECKSUM_ALG_OFF)
	return event
}

// sizedEvents copies the events, with their sizes without the checksum, which go-mysql's parser
// looks at.
func sizedEvents(transactions []*Transaction) (events [][]byte) {
	for _, t := range transactions {
		for _, e := range t.events {
			e = bytes.Clone(e)
			binary.LittleEndian.PutUint32(e[9:], uint32(len(e)))
			events = append(events, e)
		}
	}
	return events
}
