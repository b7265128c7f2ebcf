package travel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

// locateEvent finds the transaction of an event, and what is known of the event there: nil where this configuration makes no event with
// that id of the transaction.
func (s *Setup) locateEvent(ctx context.Context, b *canal.Binlogs, history *scratchHistory, r *checkpoint.Record, id string) (*canal.Spot, *sighting, error) {
	parts, err := mapping.ParseID(id)
	if err != nil {
		return nil, nil, &canal.ConfigError{Err: err, Remedy: "ids have up to 64 characters: 0-9, a-z and dashes"}
	}
	spots, err := candidates(ctx, b, parts)
	if err != nil {
		return nil, nil, err
	}
	var failed error
	for _, spot := range spots {
		seen, err := s.sight(ctx, b, spot, history, r, id)
		if err != nil {
			failed = err
		}
		if seen != nil {
			return spot, seen, nil
		}
	}
	if failed != nil {
		return nil, nil, failed
	}
	if len(spots) > 1 {
		return nil, nil, &canal.ConfigError{
			Err:    fmt.Errorf("of the %d transactions with this number, which differ by their tags, none gives an event with the id %s", len(spots), id),
			Remedy: "check that the configuration is the one that published it",
		}
	}
	return spots[0], nil, nil
}

// candidates are the places of the transactions that an event's id can mean. There are several only where MySQL's tags, which an id does
// not show, tell transactions of one number apart.
func candidates(ctx context.Context, b *canal.Binlogs, parts mapping.IDParts) ([]*canal.Spot, error) {
	server := b.Server()
	switch {
	case parts.GTID.IsZero():
		return anonymous(ctx, b, parts)
	case parts.GTID.Flavor != server.Flavor:
		return nil, &canal.ConfigError{Err: fmt.Errorf("the id is one of an event of a %s server, and source.address is a %s server", parts.GTID.Flavor, server.Flavor), Remedy: "use the configuration of the pipeline that published it"}
	case server.Flavor == canal.MariaDB:
		spot, err := b.Of(ctx, parts.GTID)
		return []*canal.Spot{spot}, err
	}
	end, err := b.End(ctx)
	if err != nil {
		return nil, err
	}
	tagged := end.GTIDs.Tagged(parts.GTID.UUID, parts.GTID.Number)
	if len(tagged) == 0 {
		return nil, &canal.ConfigError{Err: fmt.Errorf("the server never executed transaction %s", parts.GTID), Remedy: "check that source.address is the server, or a replica of it, that the event came from"}
	}
	var spots []*canal.Spot
	var failed error
	for _, g := range tagged {
		spot, err := b.Of(ctx, g)
		if err != nil {
			failed = err // of another tag, perhaps
			continue
		}
		spots = append(spots, spot)
	}
	if len(spots) == 0 {
		return nil, failed
	}
	return spots, nil
}

// anonymous is the place of a transaction without a GTID: the id has it.
func anonymous(ctx context.Context, b *canal.Binlogs, parts mapping.IDParts) ([]*canal.Spot, error) {
	server := b.Server()
	if uuid := hex.EncodeToString(parts.Server[:]); uuid != strings.ReplaceAll(server.UUID, "-", "") {
		return nil, &canal.ConfigError{Err: fmt.Errorf("the id is one of an event of the server with UUID %s, and %s answers", uuid, server.UUID), Remedy: "correct source.address"}
	}
	files, err := b.Files(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if canal.FileNumber(f.Name) == parts.FileNumber {
			spot, err := b.At(ctx, f.Name, parts.Offset)
			return []*canal.Spot{spot}, err
		}
	}
	// The series' name is that of the files that are left.
	name := files[0].Name[:strings.LastIndexByte(files[0].Name, '.')+1]
	_, err = b.At(ctx, fmt.Sprintf("%s%06d", name, parts.FileNumber), parts.Offset)
	if err == nil {
		err = errors.New("the binlog files changed while they were looked at")
	}
	return nil, err
}
