package canal

import (
	"context"
	"slices"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Outlook is what a server can say of a place that a checkpoint has: how far behind it is, and whether it can be gone on from.
type Outlook struct {
	// End is behind everything that the server has logged.
	End Position
	// Transactions behind; nil where the server numbers none.
	Transactions *uint64
	// Bytes of binlog that are still to be read.
	Bytes uint64
	// Next is the first transaction that is not published; nil where there is none.
	Next *Begins
	// Needed is the binlog file that reading goes on in.
	Needed string
	// Retention is how long binlogs are kept; 0 for ever. KeptUntil is when Needed may be purged, at the earliest; the zero time where
	// the server keeps binlogs for ever, by their size, or still writes the file: then it is kept for Retention from its end on.
	Retention time.Duration
	KeptUntil time.Time
	// BySize: the server purges binlogs above a total size, however new they are.
	BySize bool
}

// Look asks a server about a place. It is a *SourceError where the server cannot serve it.
func Look(ctx context.Context, o ConnectOptions, at Position, server Identity) (*Outlook, error) {
	inspector, err := Inspect(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = inspector.Close() }() // it only reads
	for _, c := range inspector.CheckPlace(ctx, PreflightOptions{Checkpoint: &at, Server: server}) {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	b, err := OpenBinlogs(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // it only reads
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	out := &Outlook{Retention: inspector.retention(), BySize: inspector.purgesBySize()}
	if out.End, err = b.End(ctx); err != nil {
		return nil, err
	}
	if behind, known := inspector.Behind(at); known {
		out.Transactions = &behind
	}
	i, offset, err := b.fileOf(ctx, files, at, server)
	if err != nil {
		return nil, err
	}
	out.Needed = files[i].Name
	if files[i].Size > offset {
		out.Bytes = files[i].Size - offset
	}
	for _, f := range files[i+1:] {
		out.Bytes += f.Size
	}
	if out.Next, err = b.next(ctx, files, i, offset, at.GTIDs); err != nil {
		return nil, err
	}
	if out.Next == nil {
		out.Bytes = 0
	}
	if i+1 < len(files) && out.Retention > 0 && !out.BySize { // a file's age counts from its last write
		ended, err := b.begun(ctx, files, i+1)
		if err != nil {
			return nil, err
		}
		out.KeptUntil = ended.Add(out.Retention)
	}
	return out, nil
}

func (i *Inspector) purgesBySize() bool {
	size := i.variables["max_binlog_total_size"]
	return size != "" && size != "0"
}

// fileOf is the file that a place is in, and the offset there. The place says it itself where this server wrote it.
func (b *Binlogs) fileOf(ctx context.Context, files []BinlogFile, at Position, server Identity) (i int, offset uint64, err error) {
	same := server.UUID == b.server.UUID && (server.UUID != "" || server.ServerID == b.server.ServerID)
	file := at.File
	if offset = at.Offset; !same || at.GTIDs != nil && !slices.ContainsFunc(files, func(f BinlogFile) bool { return f.Name == file && offset <= f.Size }) {
		spot, err := b.After(ctx, at.GTIDs)
		if err != nil {
			return 0, 0, err
		}
		file, offset = spot.File, spot.Offset
	}
	i = slices.IndexFunc(files, func(f BinlogFile) bool { return f.Name == file })
	if i < 0 {
		return 0, 0, noSuchPlace(file, offset, files)
	}
	return i, offset, nil
}

// next is the first transaction at or after a place that a set does not hold; nil where the server has none.
func (b *Binlogs) next(ctx context.Context, files []BinlogFile, i int, offset uint64, done *GTIDSet) (next *Begins, err error) {
	last := files[len(files)-1]
	at := place{file: files[i].Name, offset: offset}
	if at.file == last.Name && at.offset >= last.Size {
		return nil, nil //nolint:nilnil // nothing is next, and that is no failure
	}
	err = b.dumpFrom(ctx, Position{File: at.file, Offset: offset}, func(e rawEvent) error {
		if e.kind() == replication.FORMAT_DESCRIPTION_EVENT && at.offset > 4 {
			return nil // made for the connection
		}
		at.advance(e)
		switch e.kind() { //nolint:exhaustive // the others do not matter here
		case replication.ROTATE_EVENT:
			name, offset, err := parseRotate(e)
			if err != nil {
				return err
			}
			at.rotate(name, offset)
			return nil
		case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
			return errScanned
		case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT:
			begins, err := parseBegin(e)
			if err != nil {
				return err
			}
			if !begins.gtid.IsZero() && done.Contains(begins.gtid) {
				return nil
			}
			next = &Begins{GTID: begins.gtid, File: at.file, Offset: at.startOf(e), CommittedAt: begins.committedAt}
			return errScanned
		}
		if at.file == last.Name && at.offset >= last.Size {
			return errScanned
		}
		return nil
	})
	return next, err
}
