package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Start is where to begin where no checkpoint exists yet.
type Start struct {
	Kind StartKind
	// Set is the GTID set of StartGTID, as text: which kind of GTIDs it has, the server decides.
	Set    string
	File   string
	Offset uint64
	Time   time.Time
}

// StartKind is the form of a Start.
type StartKind uint8

// The forms of a Start.
const (
	StartLatest StartKind = iota
	StartEarliest
	StartGTID
	StartFile
	StartTime
)

// ParseStart reads a value of source.start: latest, earliest, gtid:SET, file:NAME:POS or time:RFC3339.
func ParseStart(text string) (Start, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "", "latest":
		return Start{}, nil
	case "earliest":
		return Start{Kind: StartEarliest}, nil
	case "gtid":
		if _, err := ParseGTIDSet(MySQL, rest); err == nil {
			return Start{Kind: StartGTID, Set: rest}, nil
		}
		if _, err := ParseGTIDSet(MariaDB, rest); err == nil {
			return Start{Kind: StartGTID, Set: rest}, nil
		}
		return Start{}, fmt.Errorf("source.start: %q is no GTID set: write gtid:UUID:1-N (MySQL) or gtid:DOMAIN-SERVER-NUMBER (MariaDB)", rest)
	case "file":
		i := strings.LastIndexByte(rest, ':')
		if i > 0 {
			if offset, err := strconv.ParseUint(rest[i+1:], 10, 64); err == nil {
				return Start{Kind: StartFile, File: rest[:i], Offset: max(offset, 4)}, nil
			}
		}
		return Start{}, fmt.Errorf("source.start: %q is no place in a binlog: write file:NAME:POS, such as file:binlog.000042:157", text)
	case "time":
		t, err := time.Parse(time.RFC3339Nano, rest)
		if err != nil {
			return Start{}, fmt.Errorf("source.start: %q is no time: write time:2026-11-29T10:00:00Z", rest)
		}
		return Start{Kind: StartTime, Time: t}, nil
	}
	return Start{}, fmt.Errorf("source.start: %q is unknown: write latest, earliest, gtid:SET, file:NAME:POS or time:RFC3339", text)
}

// Locate finds the place that a Start means on the server.
func Locate(ctx context.Context, o ConnectOptions, start Start) (Resume, error) {
	conn, err := o.Connect(ctx)
	if err != nil {
		return Resume{}, err
	}
	l := &locator{connect: o, conn: conn}
	defer func() { _ = conn.Quit() }()
	if l.server, err = Identify(ctx, conn); err != nil {
		return Resume{}, err
	}
	if err := l.mode(ctx); err != nil {
		return Resume{}, err
	}
	place, err := l.locate(ctx, start)
	if err != nil {
		return Resume{}, err
	}
	return Resume{Position: place, Server: l.server}, nil
}

// locator finds places in a server's binlogs.
type locator struct {
	connect ConnectOptions
	conn    *client.Conn
	server  Identity
	gtids   bool // the server numbers transactions, all of them
}

func (l *locator) mode(ctx context.Context) error {
	if l.server.Flavor == MariaDB {
		l.gtids = true
		return nil
	}
	r, err := ask(ctx, l.conn, "SELECT @@GLOBAL.gtid_mode")
	if err != nil {
		return err
	}
	l.gtids = r.rows[0][0] == "ON"
	return nil
}

func (l *locator) locate(ctx context.Context, start Start) (Position, error) {
	switch start.Kind {
	case StartLatest:
		return l.latest(ctx)
	case StartEarliest:
		return l.earliest(ctx)
	case StartGTID:
		if !l.gtids {
			return Position{}, &ConfigError{Err: errors.New("source.start names a GTID set, but the server runs with gtid_mode=OFF"), Remedy: "write file:NAME:POS, time:RFC3339, earliest or latest"}
		}
		set, err := ParseGTIDSet(l.server.Flavor, start.Set)
		if err != nil {
			return Position{}, &ConfigError{Err: fmt.Errorf("source.start: %w", err), Remedy: "write a GTID set of the server's kind: " + l.server.Flavor.String()}
		}
		return Position{GTIDs: set}, nil
	case StartFile:
		return l.at(ctx, start.File, start.Offset)
	case StartTime:
		return l.since(ctx, start.Time)
	}
	return Position{}, fmt.Errorf("start of kind %d", start.Kind)
}

// latest is behind everything that the server has logged.
func (l *locator) latest(ctx context.Context) (Position, error) {
	statement := "SHOW BINARY LOG STATUS"
	if l.server.Flavor == MariaDB {
		statement = "SHOW MASTER STATUS"
	}
	r, err := ask(ctx, l.conn, statement)
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
	case l.server.Flavor == MariaDB:
		p.GTIDs, err = l.mariaDBGTIDs(ctx, p.File, p.Offset)
	case l.gtids:
		p.GTIDs, err = ParseGTIDSet(MySQL, r.value(0, "executed_gtid_set"))
	}
	return p, err
}

// earliest is before the first transaction that the server still has.
func (l *locator) earliest(ctx context.Context) (Position, error) {
	files, err := l.files(ctx)
	if err != nil {
		return Position{}, err
	}
	p := Position{File: files[0].name, Offset: 4}
	switch {
	case l.server.Flavor == MariaDB:
		p.GTIDs, err = l.mariaDBGTIDs(ctx, p.File, p.Offset)
	case l.gtids:
		var r *answer
		if r, err = ask(ctx, l.conn, "SELECT @@GLOBAL.gtid_purged"); err == nil {
			p.GTIDs, err = ParseGTIDSet(MySQL, r.rows[0][0])
		}
	}
	return p, err
}

// at is a given place. With GTIDs, all that is before it counts as executed.
func (l *locator) at(ctx context.Context, file string, offset uint64) (Position, error) {
	files, err := l.files(ctx)
	if err != nil {
		return Position{}, err
	}
	i := slices.IndexFunc(files, func(f binlogFile) bool { return f.name == file && offset <= f.size })
	if i < 0 {
		last := files[len(files)-1]
		return Position{}, &ConfigError{
			Err:    fmt.Errorf("source.start: the server has no place %s:%d", file, offset),
			Remedy: fmt.Sprintf("write one between file:%s:4 and file:%s:%d", files[0].name, last.name, last.size),
		}
	}
	p := Position{File: file, Offset: offset}
	switch {
	case l.server.Flavor == MariaDB:
		p.GTIDs, err = l.mariaDBGTIDs(ctx, file, offset)
	case l.gtids:
		var stop place
		before := 0 // transactions
		p.GTIDs, stop, err = l.scan(ctx, files[i], func(at place, _ begin) bool {
			if at.offset < offset {
				before++
			}
			return at.offset >= offset
		})
		if err == nil && before > 0 && stop.offset > offset {
			err = &ConfigError{
				Err:    fmt.Errorf("source.start: %s:%d is not the beginning of a transaction", file, offset),
				Remedy: fmt.Sprintf("write file:%s:%d, where the next one begins", file, stop.offset),
			}
		}
	}
	return p, err
}

// since is before the first transaction that was committed at or after a time.
func (l *locator) since(ctx context.Context, t time.Time) (Position, error) {
	files, err := l.files(ctx)
	if err != nil {
		return Position{}, err
	}
	// The last file whose first transaction is older than t holds the place, or it is the beginning of the next.
	low, high := 0, len(files)
	for low < high {
		middle := (low + high) / 2
		first, err := l.firstCommit(ctx, files[middle])
		if err != nil {
			return Position{}, err
		}
		if !first.IsZero() && first.Before(t) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		if fileNumber(files[0].name) > 1 {
			first, err := l.firstCommit(ctx, files[0])
			if err != nil {
				return Position{}, err
			}
			return Position{}, &SourceError{
				Err:    fmt.Errorf("source.start: the oldest transaction that the server still has was committed at %s, later than %s", first.Format(time.RFC3339Nano), t.Format(time.RFC3339Nano)),
				Remedy: "write earliest to begin there",
			}
		}
		return l.earliest(ctx)
	}
	set, stop, err := l.scan(ctx, files[low-1], func(_ place, b begin) bool { return !b.committedAt.Before(t) })
	if err != nil {
		return Position{}, err
	}
	p := Position{File: stop.file, Offset: stop.offset}
	switch {
	case l.server.Flavor == MariaDB:
		p.GTIDs, err = l.mariaDBGTIDs(ctx, p.File, p.Offset)
	case l.gtids:
		p.GTIDs = set
	}
	return p, err
}

// binlogFile is one of the server's binlog files.
type binlogFile struct {
	name string
	size uint64
}

func (l *locator) files(ctx context.Context) ([]binlogFile, error) {
	r, err := ask(ctx, l.conn, "SHOW BINARY LOGS")
	if err != nil {
		return nil, explainStream(err)
	}
	files := make([]binlogFile, 0, len(r.rows))
	for i := range r.rows {
		size, err := strconv.ParseUint(r.value(i, "file_size"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the size of binlog %s: %w", r.value(i, "log_name"), err)
		}
		files = append(files, binlogFile{name: r.value(i, "log_name"), size: size})
	}
	if len(files) == 0 {
		return nil, binlogOff()
	}
	return files, nil
}

func binlogOff() error {
	return &SourceError{Err: errors.New("the server writes no binlog (log_bin is OFF)"), Remedy: "start it with log_bin and binlog_format=ROW"}
}

// mariaDBGTIDs asks MariaDB for the GTIDs that a place stands for.
func (l *locator) mariaDBGTIDs(ctx context.Context, file string, offset uint64) (*GTIDSet, error) {
	r, err := ask(ctx, l.conn, fmt.Sprintf("SELECT BINLOG_GTID_POS('%s', %d), BINLOG_GTID_POS('%[1]s', %[2]d) IS NULL", file, offset))
	if err != nil {
		return nil, err
	}
	if r.rows[0][1] == "1" {
		return nil, &ConfigError{Err: fmt.Errorf("source.start: the server has no place %s:%d", file, offset), Remedy: "take one from SHOW BINARY LOGS, or write earliest"}
	}
	return ParseGTIDSet(MariaDB, r.rows[0][0])
}

// firstCommit is when the first transaction of a file was committed, or the zero time where there is none.
func (l *locator) firstCommit(ctx context.Context, file binlogFile) (time.Time, error) {
	var first time.Time
	_, _, err := l.scan(ctx, file, func(_ place, b begin) bool {
		first = b.committedAt
		return true
	})
	return first, err
}

var errScanned = errors.New("scanned")

// scan reads one file from its beginning until stop says so at the beginning of a transaction, or the file ends. It gives the executed
// set before that place (of a MySQL server with GTIDs) and the place.
func (l *locator) scan(ctx context.Context, file binlogFile, stop func(at place, b begin) bool) (*GTIDSet, place, error) {
	serverID, err := chooseServerID(ctx, l.connect)
	if err != nil {
		return nil, place{}, err
	}
	set := NewGTIDSet(MySQL)
	at := place{file: file.name, offset: 4}
	handle := func(e rawEvent) error {
		at.advance(e)
		switch e.kind() { //nolint:exhaustive // the others do not matter here
		case replication.ROTATE_EVENT:
			if e.flags()&flagArtificial == 0 && e.logPos() != 0 {
				return errScanned
			}
			return nil
		case replication.PREVIOUS_GTIDS_EVENT:
			var p replication.PreviousGTIDsEvent
			if err := p.Decode(e.body()); err != nil {
				return fmt.Errorf("decode the GTIDs before %s: %w", file.name, err)
			}
			previous, err := ParseGTIDSet(MySQL, p.GTIDSets)
			if err != nil {
				return err
			}
			set = previous
		case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
			b, err := parseBegin(e)
			if err != nil {
				return err
			}
			if begins := (place{file: at.file, offset: at.startOf(e)}); stop(begins, b) {
				at = begins
				return errScanned
			}
			if !b.gtid.IsZero() && b.gtid.Flavor == MySQL {
				set.Add(b.gtid)
			}
			return nil
		}
		if at.offset >= file.size {
			return errScanned
		}
		return nil
	}
	err = l.dump(ctx, serverID, file.name, handle)
	return set, at, err
}

func (l *locator) dump(ctx context.Context, serverID uint32, file string, handle func(rawEvent) error) error {
	var read atomic.Uint64
	var heard atomic.Int64
	s, err := openStream(ctx, streamOptions{
		connect: l.connect, flavor: l.server.Flavor, serverID: serverID, heartbeat: DefaultHeartbeat,
		handle: handle, read: &read, heard: &heard,
	}, Position{File: file, Offset: 4})
	if err != nil {
		return explainStream(err)
	}
	defer s.close()
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	if err := s.wait(ctx); !errors.Is(err, errScanned) {
		return explainStream(err)
	}
	return nil
}
