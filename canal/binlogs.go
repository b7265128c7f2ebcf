package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// Binlogs finds places in the binlog files that a server has. It reads over connections of its own, and changes nothing. A file is
// found by what stands at the beginning of each, in as many looks as a binary search takes; then that one file is read up to the place.
// It is for one goroutine.
type Binlogs struct {
	connect  ConnectOptions
	conn     *client.Conn
	server   Identity
	numbered bool     // the server numbers transactions, all of them
	purged   *GTIDSet // of a MySQL server that does
	serverID uint32   // of the connections that read
	read     atomic.Uint64
	searched Searched
	watch    func(Searched)
}

// Searched is what looking for places has cost so far.
type Searched struct {
	Looks int    // at the beginning of a file
	Files int    // that were read from their beginning up to a place
	Bytes uint64 // that came over the connections
	// Total is the size in bytes of what is being read, at most; 0 while no file is.
	Total uint64
	Took  time.Duration
}

// BinlogFile is one of the server's binlog files.
type BinlogFile struct {
	Name string
	Size uint64 // bytes
}

// Begins is where a transaction begins.
type Begins struct {
	GTID        GTID // zero without GTIDs
	File        string
	Offset      uint64
	End         uint64 // the offset behind it; 0 where it was not read
	CommittedAt time.Time
}

// Spot is a place between two transactions of a server's binlog files.
type Spot struct {
	// Resume is what a run that has published everything before the place would have in its checkpoint, the Partial and the schema
	// history aside.
	Resume Resume
	File   string
	Offset uint64
	// Read are all transactions before the place, those that prepare an XA transaction too; nil without GTIDs.
	Read *GTIDSet
	// Next is the transaction that begins here; nil at the end of what the server had when it was asked.
	Next *Begins
	// Previous is the one before it, if it is in the same file.
	Previous *Begins
}

// OpenBinlogs connects. watch, if not nil, is told now and then how the search goes.
func OpenBinlogs(ctx context.Context, o ConnectOptions, watch func(Searched)) (*Binlogs, error) {
	conn, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	b := &Binlogs{connect: o, conn: conn, watch: watch}
	if err := b.identify(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return b, nil
}

func (b *Binlogs) identify(ctx context.Context) (err error) {
	if b.server, err = Identify(ctx, b.conn); err != nil {
		return err
	}
	if b.server.Flavor == MariaDB {
		b.numbered = true
		return nil
	}
	r, err := ask(ctx, b.conn, "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_purged")
	if err != nil {
		return err
	}
	if b.numbered = r.rows[0][0] == "ON"; b.numbered {
		b.purged, err = ParseGTIDSet(MySQL, r.rows[0][1])
	}
	return err
}

// Close ends the connection.
func (b *Binlogs) Close() error { return b.conn.Quit() }

// Server is who answered.
func (b *Binlogs) Server() Identity { return b.server }

// Numbered reports whether places on this server have GTIDs.
func (b *Binlogs) Numbered() bool { return b.numbered }

// Searched is what it has cost so far.
func (b *Binlogs) Searched() Searched {
	s := b.searched
	s.Bytes = b.read.Load()
	return s
}

// Files lists the server's binlog files, oldest first. There is at least one.
func (b *Binlogs) Files(ctx context.Context) ([]BinlogFile, error) {
	r, err := ask(ctx, b.conn, "SHOW BINARY LOGS")
	if err != nil {
		return nil, explainStream(err)
	}
	files := make([]BinlogFile, 0, len(r.rows))
	for i := range r.rows {
		size, err := strconv.ParseUint(r.value(i, "file_size"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the size of binlog %s: %w", r.value(i, "log_name"), err)
		}
		files = append(files, BinlogFile{Name: r.value(i, "log_name"), Size: size})
	}
	if len(files) == 0 {
		return nil, binlogOff()
	}
	return files, nil
}

func binlogOff() error {
	return &SourceError{Err: errors.New("the server writes no binlog (log_bin is OFF)"), Remedy: "start it with log_bin and binlog_format=ROW"}
}

// End is behind everything that the server has logged.
func (b *Binlogs) End(ctx context.Context) (Position, error) {
	statement := "SHOW BINARY LOG STATUS"
	if b.server.Flavor == MariaDB {
		statement = "SHOW MASTER STATUS"
	}
	r, err := ask(ctx, b.conn, statement)
	if err != nil {
		return Position{}, explainStream(err)
	}
	if len(r.rows) == 0 {
		return Position{}, binlogOff()
	}
	offset, err := strconv.ParseUint(r.value(0, "position"), 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("read the server's binlog position: %w", err)
	}
	p := Position{File: r.value(0, "file"), Offset: offset}
	switch {
	case b.server.Flavor == MariaDB:
		p.GTIDs, err = b.domainsAt(ctx, p.File, p.Offset)
	case b.numbered:
		p.GTIDs, err = ParseGTIDSet(MySQL, r.value(0, "executed_gtid_set"))
	}
	return p, err
}

// domainsAt asks MariaDB for the GTIDs that a place stands for.
func (b *Binlogs) domainsAt(ctx context.Context, file string, offset uint64) (*GTIDSet, error) {
	r, err := ask(ctx, b.conn, fmt.Sprintf("SELECT BINLOG_GTID_POS('%s', %d), BINLOG_GTID_POS('%[1]s', %[2]d) IS NULL", file, offset))
	if err != nil {
		return nil, err
	}
	if r.rows[0][1] == "1" {
		return nil, noSuchPlace(file, offset, nil)
	}
	return ParseGTIDSet(MariaDB, r.rows[0][0])
}

func noSuchPlace(file string, offset uint64, files []BinlogFile) error {
	remedy := "take one from SHOW BINARY LOGS"
	if len(files) > 0 {
		last := files[len(files)-1]
		remedy = fmt.Sprintf("write one between %s:4 and %s:%d", files[0].Name, last.Name, last.Size)
	}
	return &ConfigError{Err: fmt.Errorf("the server has no place %s:%d", file, offset), Remedy: remedy}
}

// Oldest is before the first transaction that the server still has.
func (b *Binlogs) Oldest(ctx context.Context) (*Spot, error) {
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	return b.walk(ctx, files, 0, atOnce)
}

// atOnce stops before the first transaction.
func atOnce(place, begin) bool { return true }

// StartOf is before the first transaction of files[i].
func (b *Binlogs) StartOf(ctx context.Context, files []BinlogFile, i int) (*Spot, error) {
	return b.walk(ctx, files, i, atOnce)
}

// At is a given place, which must lie between two transactions.
func (b *Binlogs) At(ctx context.Context, file string, offset uint64) (*Spot, error) {
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f BinlogFile) bool { return f.Name == file && offset <= f.Size })
	if i < 0 {
		if compareFiles(file, files[0].Name) < 0 {
			return nil, b.tooOld(ctx, files, "%s:%d is older than the server's oldest binlog", file, offset)
		}
		return nil, noSuchPlace(file, offset, files)
	}
	spot, err := b.walk(ctx, files[:i+1], i, func(at place, _ begin) bool { return at.offset >= offset })
	if err != nil {
		return nil, err
	}
	if spot.Previous != nil && offset < spot.Previous.End {
		return nil, &insideError{&ConfigError{
			Err:    fmt.Errorf("%s:%d is not the beginning of a transaction", file, offset),
			Remedy: fmt.Sprintf("write %s:%d, where the next one begins, or %s:%d, where the one before it does", file, spot.Offset, file, spot.Previous.Offset),
		}, spot.Previous.Offset}
	}
	return spot, nil
}

// AtOrBefore is a place between two transactions, or, where a place lies inside one, before that.
func (b *Binlogs) AtOrBefore(ctx context.Context, file string, offset uint64) (*Spot, error) {
	spot, err := b.At(ctx, file, offset)
	inside, ok := errors.AsType[*insideError](err)
	if !ok {
		return spot, err
	}
	return b.At(ctx, file, inside.begins)
}

// insideError: a place lies inside a transaction.
type insideError struct {
	*ConfigError
	begins uint64 // the offset of the transaction's beginning
}

func (e *insideError) Unwrap() error { return e.ConfigError }

// Since is before the first transaction that was committed at or after t. Where the order of the binlog and that of the commit times
// differ, as with transactions of another server that arrived late, it is the first in the order of the binlog.
//
// On MySQL the files are searched by when this server logged the first transaction of each, on MariaDB, whose commit times may be those
// of the beginning of a statement, by when each file was begun: both grow from file to file.
func (b *Binlogs) Since(ctx context.Context, t time.Time) (*Spot, error) {
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	earlier := func(i int) (bool, error) {
		logged, err := b.firstLogged(ctx, files, i)
		return !logged.IsZero() && logged.Before(t), err
	}
	if b.server.Flavor == MariaDB {
		seconds := t.Truncate(time.Second)
		if seconds.Before(t) {
			seconds = seconds.Add(time.Second)
		}
		earlier = func(i int) (bool, error) {
			begun, err := b.begun(ctx, files, i)
			return begun.Before(seconds), err
		}
	}
	i, err := lastFile(len(files), earlier)
	if err != nil {
		return nil, err
	}
	if i < 0 && fileNumber(files[0].Name) > 1 {
		return nil, b.tooOld(ctx, files, "the server's oldest binlog begins after %s", t.Format(time.RFC3339Nano))
	}
	return b.walk(ctx, files, max(i, 0), func(_ place, begins begin) bool { return !begins.committedAt.Before(t) })
}

// After is before the first transaction that set does not hold.
func (b *Binlogs) After(ctx context.Context, set *GTIDSet) (*Spot, error) {
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	if missing := b.purged.Subtract(set); !missing.IsEmpty() {
		return nil, b.tooOld(ctx, files, "the server has purged %s", shorten(missing))
	}
	i, err := lastFile(len(files), func(i int) (bool, error) {
		before, err := b.setBefore(ctx, files, i)
		return set.ContainsSet(before), err
	})
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, b.tooOld(ctx, files, "the server's oldest binlog begins after transactions that %s does not hold", shorten(set))
	}
	return b.walk(ctx, files, i, func(_ place, begins begin) bool { return !begins.gtid.IsZero() && !set.Contains(begins.gtid) })
}

// Of is before the transaction with a GTID.
func (b *Binlogs) Of(ctx context.Context, g GTID) (*Spot, error) {
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	i, err := lastFile(len(files), func(i int) (bool, error) {
		before, err := b.setBefore(ctx, files, i)
		return !before.Contains(g), err
	})
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, b.tooOld(ctx, files, "the server has purged transaction %s", g)
	}
	spot, err := b.walk(ctx, files, i, func(_ place, begins begin) bool { return begins.gtid == g })
	if err == nil && spot.Next == nil {
		err = &ConfigError{Err: fmt.Errorf("the server's binlogs do not hold transaction %s", g), Remedy: "check that source.address is the server, or a replica of it, that the event came from"}
	}
	return spot, err
}

// tooOld refuses a place before the oldest binlog and tells the oldest possible one.
func (b *Binlogs) tooOld(ctx context.Context, files []BinlogFile, format string, args ...any) error {
	oldest, err := b.walk(ctx, files, 0, atOnce)
	if err != nil {
		return errors.Join(fmt.Errorf(format, args...), err)
	}
	remedy := fmt.Sprintf("the oldest possible point is %s:%d", oldest.File, oldest.Offset)
	if set := oldest.Resume.Position.GTIDs; set != nil {
		remedy += fmt.Sprintf(", GTID set %q", set)
	}
	if oldest.Next != nil {
		remedy += ", committed at " + oldest.Next.CommittedAt.Format(time.RFC3339Nano)
	}
	return &SourceError{Err: fmt.Errorf(format, args...), Remedy: remedy + "; older transactions are on another server that still has them, or in a backup"}
}

// lastFile is the last of n files for which before holds, −1 where it holds for none. Where it holds for a file it holds for those
// before it.
func lastFile(n int, before func(i int) (bool, error)) (int, error) {
	var failed error
	i := sort.Search(n, func(i int) bool {
		if failed != nil {
			return true
		}
		holds, err := before(i)
		failed = err
		return !holds
	})
	return i - 1, failed
}
