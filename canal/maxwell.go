package canal

import (
	"context"
	"fmt"
	"strconv"
)

// MaxwellPlace is a row of the table positions in which Maxwell keeps its places
// (https://maxwells-daemon.io/config/: schema_database, client_id).
type MaxwellPlace struct {
	Client string
	GTIDs  string // empty unless Maxwell runs in GTID mode
	File   string
	Offset uint64
}

// MaxwellPlaces reads Maxwell's places in a database of the server that it follows, the last written first.
func MaxwellPlaces(ctx context.Context, o ConnectOptions, database string) ([]MaxwellPlace, error) {
	conn, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Quit() }()
	table := quoteName(database) + ".`positions`"
	r, err := ask(ctx, conn, "SELECT client_id, binlog_file, binlog_position, COALESCE(gtid_set, '') FROM "+table+
		" WHERE server_id = @@server_id ORDER BY heartbeat_at DESC")
	if refusedFor(err) {
		return nil, &ConfigError{Err: fmt.Errorf("read Maxwell's places: %w", err), Remedy: "GRANT SELECT ON " + table + " to the account of source.user, and name Maxwell's database where it is not maxwell"}
	}
	if err != nil {
		return nil, err
	}
	places := make([]MaxwellPlace, len(r.rows))
	for i, row := range r.rows {
		places[i] = MaxwellPlace{Client: row[0], File: row[1], GTIDs: row[3]}
		if places[i].Offset, err = strconv.ParseUint(row[2], 10, 64); err != nil {
			return nil, fmt.Errorf("read Maxwell's place of client %s: %w", row[0], err)
		}
	}
	if len(places) == 0 {
		return nil, &ConfigError{Err: fmt.Errorf("%s holds no place of this server", table), Remedy: "check that source.address is the server that Maxwell follows"}
	}
	return places, nil
}
