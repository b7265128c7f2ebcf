package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// What an operator can do about a server whose history is not the one that was read.
const (
	resetRemedy = "restore its binlogs and data from a backup; or put the checkpoint aside and begin anew with source.start: earliest: " +
		"the server gives the old GTIDs to new transactions, and so events the old ids, which consumers that remember them would drop, " +
		"unless it gets a new UUID first (MySQL: remove auto.cnf and restart) or another server_id (MariaDB)"
	crashRemedy = "let a replica that has them take over and name it in source.addresses; or compare the captured tables with their consumers, put the checkpoint aside and begin anew with source.start: latest; " +
		"sync_binlog=1 and innodb_flush_log_at_trx_commit=1 keep it from happening again"
)

// LagError means that a server cannot serve a place yet, and may later without a change: a replica that has not caught up.
type LagError struct {
	Err    error
	Remedy string // what to do if it does not, in words for an operator
}

func (e *LagError) Error() string { return withRemedy(e.Err, e.Remedy) }
func (e *LagError) Unwrap() error { return e.Err }

// rewrittenError: what the server has in the place of the binlog that was read is another one. Looking again must not help: GTIDs
// that are missing now are soon given to other transactions.
type rewrittenError struct{ *SourceError }

func (e *rewrittenError) Unwrap() error { return e.SourceError }

// sameAs reports whether an identity, as far as it tells, is that of the server.
func (i *Inspector) sameAs(server Identity) bool {
	if server.Version == "" || server.Flavor != i.server.Flavor {
		return false
	}
	return server.UUID == i.server.UUID && (i.server.Flavor == MySQL || server.ServerID == i.server.ServerID)
}

// rewritten compares the server's binlog files with a place that was read from this very server with GTIDs: whether the files
// are still those that were read. GTIDs alone do not tell: after RESET BINARY LOGS AND GTIDS, and after a crash that lost the last
// transactions, a server gives numbers that were read to other transactions. It is nil where nothing speaks against it.
func (i *Inspector) rewritten(ctx context.Context, o PreflightOptions) (*Check, error) {
	place := o.Checkpoint
	if !i.sameAs(o.Server) || place.File == "" || place.Offset == 0 {
		return nil, nil //nolint:nilnil // nothing to compare
	}
	b := &Binlogs{connect: i.connect, conn: i.conn, server: i.server}
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	oldest, newest := files[0], files[len(files)-1]
	if seriesOfFile(place.File) != seriesOfFile(newest.Name) { // log_bin was renamed
		return nil, nil //nolint:nilnil // the numbers say nothing
	}
	if compareFiles(newest.Name, place.File) < 0 {
		return i.wasReset(o, fmt.Sprintf("or its data was restored from an older copy: its newest binlog is %s, and %s is at %s", newest.Name, o.called(), place.File)), nil
	}
	anew, err := b.begunAfter(ctx, oldest, *place, o.ReadAt)
	if err != nil {
		return nil, err
	}
	if anew != "" {
		return i.wasReset(o, anew), nil
	}
	for _, f := range files {
		switch {
		case f.Name != place.File || place.Offset <= f.Size:
		case f == newest: // a crash would have begun another
			return i.wasReset(o, fmt.Sprintf("as %s is at offset %d of %s, which ends at %d", o.called(), place.Offset, f.Name, f.Size)), nil
		default:
			return rewrittenCheck(fmt.Sprintf("the server has lost its last transactions, as in a crash without sync_binlog=1: %s is at offset %d of %s, which ends at %d now; %s",
				o.called(), place.Offset, f.Name, f.Size, i.lost(o)), crashRemedy), nil
		}
	}
	return nil, nil //nolint:nilnil // as it was
}

// seriesOfFile is the name of a binlog file without its number.
func seriesOfFile(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

func (i *Inspector) wasReset(o PreflightOptions, evidence string) *Check {
	return rewrittenCheck(fmt.Sprintf("the server's binlogs were reset (%s), %s; %s", i.resetStatement(), evidence, i.lost(o)), resetRemedy)
}

// lost says which GTIDs of a place the server does not have, or that it gave their numbers to others.
func (i *Inspector) lost(o PreflightOptions) string {
	executed, err := i.executed()
	if err == nil {
		if missing := o.needed().Subtract(executed); !missing.IsEmpty() {
			return fmt.Sprintf("it does not have %s of %s", shorten(missing), o.called())
		}
	}
	return "it has given GTIDs of " + o.called() + " to other transactions since"
}

func rewrittenCheck(detail, remedy string) *Check {
	c := failSource("same server", detail, remedy)
	c.Err = &rewrittenError{&SourceError{Err: errors.New(detail), Remedy: remedy}}
	return &c
}

func (i *Inspector) resetStatement() string {
	if i.atLeast("8.4.0") {
		return "RESET BINARY LOGS AND GTIDS"
	}
	return "RESET MASTER"
}

// executed is what the server has in the history of its binlog.
func (i *Inspector) executed() (*GTIDSet, error) {
	variable := "gtid_executed"
	if i.server.Flavor == MariaDB {
		variable = "gtid_binlog_pos"
	}
	set, err := ParseGTIDSet(i.server.Flavor, i.variables[variable])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	return set, nil
}

// begunAfter says how the server's first binlog is newer than a place that was read at readAt. It is empty where that is not so,
// and where the server has purged its first binlog: then the numbers of the files tell.
func (b *Binlogs) begunAfter(ctx context.Context, oldest BinlogFile, until Position, readAt time.Time) (string, error) {
	if readAt.IsZero() || fileNumber(oldest.Name) != 1 {
		return "", nil
	}
	clock, err := b.clock(ctx, readAt)
	if err != nil {
		return "", err
	}
	began, err := b.firstTime(ctx, oldest, until)
	if err != nil || !began.After(clock) {
		return "", err
	}
	const form = "2006-01-02 15:04:05.999999 MST"
	return fmt.Sprintf("as its first binlog begins at %s, and the place was read at %s", began.Format(form), clock.Format(form)), nil
}

// firstTime is when, by the server's clock, what stands at the beginning of a file and before a place was
// written: the file itself, in seconds, or on MySQL its first transaction, in microseconds.
func (b *Binlogs) firstTime(ctx context.Context, file BinlogFile, until Position) (time.Time, error) {
	var first time.Time
	at := place{file: file.Name, offset: 4}
	err := b.look(ctx, file.Name, func(e rawEvent) error {
		at.advance(e)
		switch e.kind() { //nolint:exhaustive // the others do not matter here
		case replication.FORMAT_DESCRIPTION_EVENT:
			first = time.Unix(int64(e.timestamp()), 0).UTC()
		case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
			if (place{at.file, at.startOf(e)}).before(place{until.File, until.Offset}) {
				begins, err := parseBegin(e)
				if err != nil {
					return err
				}
				first = begins.loggedAt
			}
			return errScanned
		case replication.MARIADB_GTID_EVENT, replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
			return errScanned
		}
		if at.offset >= file.Size {
			return errScanned
		}
		return nil
	})
	return first, err
}

// clock is what the server's clock showed at a time of ours, at the latest.
func (b *Binlogs) clock(ctx context.Context, at time.Time) (time.Time, error) {
	asked := time.Now()
	r, err := ask(ctx, b.conn, "SELECT UNIX_TIMESTAMP(NOW(6))")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseFloat(r.rows[0][0], 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	ahead := time.UnixMicro(int64(seconds * 1e6)).Sub(asked)
	return at.Add(ahead).UTC(), nil
}
