package canal

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// begin is what the event that opens a transaction says of it.
type begin struct {
	gtid        GTID // zero for an anonymous transaction
	committedAt time.Time
	// loggedAt is when the server whose binlog it is logged it, as exactly as it says.
	loggedAt time.Time
	// standalone: one event follows and no commit (MariaDB).
	standalone bool
	// preparesXA: it ends with XA PREPARE (MariaDB, which logs no XA START).
	preparesXA bool
}

// parseBegin reads an event that opens a transaction.
func parseBegin(e rawEvent) (begin, error) {
	switch e.kind() {
	case replication.GTID_TAGGED_LOG_EVENT:
		return parseTaggedGTID(e)
	case replication.MARIADB_GTID_EVENT:
		return parseMariaDBGTID(e)
	default:
		return parseGTID(e)
	}
}

// parseGTID reads a GTID_EVENT or ANONYMOUS_GTID_EVENT of MySQL: flags 1, UUID 16, number 8, type of logical
// timestamps 1 and two of them (8 each), immediate commit time 7, and, if its highest bit is set, original
// commit time 7; both in microseconds.
func parseGTID(e rawEvent) (begin, error) {
	const (
		timesAt = 1 + 16 + 8 + 1 + 16
		timeLen = 7
	)
	b := e.body()
	if len(b) < 1+16+8 {
		return begin{}, fmt.Errorf("GTID event of %d bytes is too short", len(e))
	}
	g := begin{committedAt: time.Unix(int64(e.timestamp()), 0).UTC()}
	g.loggedAt = g.committedAt
	if e.kind() == replication.GTID_EVENT {
		g.gtid.UUID = [16]byte(b[1:17])
		g.gtid.Number = binary.LittleEndian.Uint64(b[17:])
	}
	if len(b) < timesAt+timeLen || b[25] != replication.LogicalTimestampTypeCode {
		return g, nil
	}
	immediate := uint56(b[timesAt:])
	const hasOriginal = uint64(1) << 55
	original := immediate
	if immediate&hasOriginal != 0 {
		if len(b) < timesAt+2*timeLen {
			return begin{}, fmt.Errorf("GTID event of %d bytes is shorter than its commit times", len(e))
		}
		original = uint56(b[timesAt+timeLen:])
	}
	if original != 0 {
		g.committedAt = time.UnixMicro(int64(original)).UTC()
	}
	if logged := immediate &^ hasOriginal; logged != 0 {
		g.loggedAt = time.UnixMicro(int64(logged)).UTC()
	}
	return g, nil
}

func uint56(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32 | uint64(b[6])<<48
}

// parseTaggedGTID reads a GTID_TAGGED_LOG_EVENT (MySQL 8.3 and later).
func parseTaggedGTID(e rawEvent) (begin, error) {
	var t replication.GtidTaggedLogEvent
	if err := t.Decode(e.body()); err != nil {
		return begin{}, fmt.Errorf("decode tagged GTID event: %w", err)
	}
	if len(t.SID) != 16 || t.GNO <= 0 {
		return begin{}, fmt.Errorf("tagged GTID event has no GTID")
	}
	g := begin{gtid: GTID{Tag: t.Tag.String(), Number: uint64(t.GNO)}}
	copy(g.gtid.UUID[:], t.SID)
	micros := t.OriginalCommitTimestamp
	if micros == 0 {
		micros = t.ImmediateCommitTimestamp
	}
	g.committedAt = time.UnixMicro(int64(micros)).UTC()
	g.loggedAt = time.UnixMicro(int64(t.ImmediateCommitTimestamp)).UTC()
	return g, nil
}

// parseMariaDBGTID reads a GTID_EVENT of MariaDB: number 8, domain 4, flags 1.
// https://mariadb.com/kb/en/gtid_event/
func parseMariaDBGTID(e rawEvent) (begin, error) {
	b := e.body()
	if len(b) < 8+4+1 {
		return begin{}, fmt.Errorf("GTID event of %d bytes is too short", len(e))
	}
	flags := b[12]
	return begin{
		gtid: GTID{
			Flavor:   MariaDB,
			Number:   binary.LittleEndian.Uint64(b),
			Domain:   binary.LittleEndian.Uint32(b[8:]),
			ServerID: e.serverID(),
		},
		committedAt: time.Unix(int64(e.timestamp()), 0).UTC(),
		loggedAt:    time.Unix(int64(e.timestamp()), 0).UTC(),
		standalone:  flags&mariaFlagStandalone != 0,
		preparesXA:  flags&mariaFlagPreparedXA != 0,
	}, nil
}
