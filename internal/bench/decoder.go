package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/internal/testenv/daemon"
)

// decoderRows are enough for a second or so of decoding, and small enough to stay in memory as events.
const decoderRows = 100_000

// decoding is one pass over all rows on one core.
type decoding struct {
	Seconds     float64
	Allocations uint64
	Allocated   uint64 // bytes
}

// decoder measures how fast rows that are in memory become values: with binlogd's decoder and with go-mysql's, from the same events.
func (l *lab) decoder(ctx context.Context) error {
	if err := l.exec(ctx, "CREATE DATABASE IF NOT EXISTS bench", "DROP TABLE IF EXISTS bench.orders", fmt.Sprintf(orderTable, "bench.orders"), "FLUSH BINARY LOGS"); err != nil {
		return err
	}
	file, err := l.binlog(ctx)
	if err != nil {
		return err
	}
	from, err := l.executed(ctx)
	if err != nil {
		return err
	}
	rows := min(l.opts.rows, decoderRows)
	say("writing %d row changes for the decoders", rows)
	if rows, err = l.fill(ctx, rows); err != nil {
		return err
	}
	transactions, err := l.readTransactions(ctx, from)
	if err != nil {
		return err
	}
	format, events, err := readRowsEvents(filepath.Join(l.dir, "mysql", file))
	if err != nil {
		return err
	}
	ways := []struct {
		name string
		pass func() (int, error)
	}{
		{"go-mysql's `BinlogParser`", func() (int, error) { return parseRows(format, events) }},
		{"binlogd's decoder", func() (int, error) { return decodeRows(ctx, transactions) }},
	}
	rounds := max(l.opts.rounds, 5) // they are short, and what else the machine does shows
	found := make([][]decoding, len(ways))
	for round := range rounds {
		for i, way := range ways {
			d, err := measureDecoding(rows, way.pass)
			if err != nil {
				return fmt.Errorf("decode with %s: %w", way.name, err)
			}
			say("round %d: %-26s %9.0f rows/s", round+1, way.name, float64(rows)/d.Seconds)
			found[i] = append(found[i], d)
		}
	}
	fmt.Printf("Decoder: %d row changes of 12 columns in memory, every value read, on one core, medians of %d rounds.\n\n", rows, rounds)
	fmt.Println("| | rows/s | of go-mysql | allocations per row | bytes allocated per row |")
	fmt.Println("|---|---:|---:|---:|---:|")
	base := median(found[0], func(d decoding) float64 { return d.Seconds })
	for i, way := range ways {
		seconds := median(found[i], func(d decoding) float64 { return d.Seconds })
		fmt.Printf("| %s | %.0f | %.2f | %.3f | %.1f |\n", way.name, float64(rows)/seconds, base/seconds,
			median(found[i], func(d decoding) float64 { return float64(d.Allocations) / float64(rows) }),
			median(found[i], func(d decoding) float64 { return float64(d.Allocated) / float64(rows) }))
	}
	fmt.Println()
	return nil
}

// measureDecoding runs a pass on one core, which its garbage collection shares.
func measureDecoding(rows int, pass func() (int, error)) (decoding, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	n, err := pass()
	seconds := time.Since(began).Seconds()
	runtime.ReadMemStats(&after)
	if err == nil && n != rows {
		err = fmt.Errorf("%d rows came out of %d", n, rows)
	}
	return decoding{seconds, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}, err
}

// readTransactions reads what was committed behind a GTID set, undecoded.
func (l *lab) readTransactions(ctx context.Context, from string) ([]*canal.Transaction, error) {
	text, err := l.executed(ctx)
	if err != nil {
		return nil, err
	}
	until, err := canal.ParseGTIDSet(canal.MySQL, text)
	if err != nil {
		return nil, err
	}
	start, err := canal.ParseStart("gtid:" + from)
	if err != nil {
		return nil, err
	}
	connect := canal.ConnectOptions{Address: daemon.Address(l.port), User: "root", Password: "root"}
	at, err := canal.Locate(ctx, connect, start)
	if err != nil {
		return nil, err
	}
	source, err := canal.OpenSource(ctx, canal.SourceOptions{
		Connect: connect, From: at, Captured: func(string, string) bool { return true }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	read := at.Position.GTIDs.Clone()
	var transactions []*canal.Transaction
	for !read.ContainsSet(until) {
		segment, err := source.Next(ctx)
		if err != nil {
			return nil, errors.Join(err, source.Close())
		}
		for _, t := range segment.Transactions {
			for _, gtid := range t.Executed {
				read.Add(gtid)
			}
		}
		transactions = append(transactions, segment.Transactions...)
		segment.Release()
	}
	return transactions, source.Close()
}

// decodeRows reads every row of transactions with binlogd's decoder.
func decodeRows(ctx context.Context, transactions []*canal.Transaction) (rows int, err error) {
	decoder := canal.NewDecoder(canal.DecoderOptions{Captured: func(string, string) bool { return true }})
	for _, t := range transactions {
		cursor := decoder.Rows(ctx, t)
		for cursor.Next() {
			rows++
		}
		if err := cursor.Err(); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// readRowsEvents reads a binlog file: its format description, and its table maps and rows events, one slice each.
func readRowsEvents(path string) (format []byte, events [][]byte, err error) {
	const magic, header, kindAt, sizeAt = 4, 19, 4, 9
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the binlog: %w", err)
	}
	for data = data[magic:]; len(data) >= header; {
		size := int(binary.LittleEndian.Uint32(data[sizeAt:]))
		if size < header || size > len(data) {
			return nil, nil, fmt.Errorf("read the binlog %s: an event of %d bytes where %d are left", path, size, len(data))
		}
		event := data[:size]
		data = data[size:]
		switch replication.EventType(event[kindAt]) { //nolint:exhaustive // the others have no rows
		case replication.FORMAT_DESCRIPTION_EVENT:
			format = event
		case replication.TABLE_MAP_EVENT, replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2:
			events = append(events, event)
		}
	}
	return format, events, nil
}

// parseRows reads every row of events with go-mysql's parser.
func parseRows(format []byte, events [][]byte) (rows int, err error) {
	parser := replication.NewBinlogParser()
	if _, err := parser.Parse(format); err != nil {
		return 0, err
	}
	for _, e := range events {
		parsed, err := parser.Parse(e)
		if err != nil {
			return rows, err
		}
		event, ok := parsed.Event.(*replication.RowsEvent)
		switch {
		case !ok:
		case event.Type() == replication.EnumRowsEventTypeUpdate:
			rows += len(event.Rows) / 2
		default:
			rows += len(event.Rows)
		}
	}
	return rows, nil
}
