package canal

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// shortRetention is the time below which keeping binlogs is risky: a weekend's outage of
// binlogd or of its sink must not cost the place.
const shortRetention = 3 * 24 * time.Hour

func (i *Inspector) checkBinlog() Check {
	const name = "binlog"
	if i.variables["log_bin"] != "ON" {
		return failSource(name, "the server writes no binlog (log_bin=OFF)",
			"write log_bin=binlog and a server_id under [mysqld] in the server's my.cnf and restart it")
	}
	if i.server.ServerID == 0 {
		return failSource(name, "the server has server_id=0 and refuses replicas", i.setGlobal("server_id", "1"))
	}
	return checkOK(name, "log_bin=ON")
}

func (i *Inspector) checkFormat() Check {
	const name = "binlog format"
	if format := i.variables["binlog_format"]; format != "ROW" {
		return failSource(name, fmt.Sprintf("binlog_format=%s: the binlog holds statements instead of rows", format),
			i.setGlobal("binlog_format", "ROW")+" and reconnect the application's sessions, which keep the format that they began with")
	}
	return checkOK(name, "binlog_format=ROW")
}

// rowImageCosts say what events lack with an image, in the words of docs/DECODING.md.
var rowImageCosts = map[string]string{
	"MINIMAL": "an update's event has the key and the columns that the statement set, an insert's those that it named, a deletion's the key alone; `old` is empty, so that nothing tells what a column was before",
	"NOBLOB":  "events of updates and deletions lack the BLOB and TEXT columns that the statement did not set",
}

func (i *Inspector) checkRowImage() Check {
	const name = "row image"
	switch image := i.variables["binlog_row_image"]; image {
	case "FULL":
		return checkOK(name, "binlog_row_image=FULL")
	case "FULL_NODUP": // MariaDB: what the image after an update lacks is in the one before
		return checkOK(name, "binlog_row_image=FULL_NODUP: events have all columns")
	default:
		cost, known := rowImageCosts[image]
		if !known {
			cost = "events lack the columns that the server leaves out"
		}
		return checkWarn(name, fmt.Sprintf("binlog_row_image=%s: %s", image, cost),
			i.setGlobal("binlog_row_image", "FULL")+" and reconnect the application's sessions, which keep the image that they began with")
	}
}

// checkPartialJSON looks at the setting by which an update logs the differences of a JSON value: they
// can only be applied to the value before, which the row image must hold.
func (i *Inspector) checkPartialJSON() Check {
	const name = "partial JSON"
	options, image := i.variables["binlog_row_value_options"], i.variables["binlog_row_image"]
	switch {
	case options != "PARTIAL_JSON":
		return checkOK(name, "off: JSON values are logged whole")
	case image == "MINIMAL":
		return checkWarn(name, "binlog_row_value_options=PARTIAL_JSON with binlog_row_image=MINIMAL: the differences come without the value that they apply to, and the first such update of a captured table stops binlogd",
			i.setGlobal("binlog_row_image", "FULL")+" or: SET PERSIST binlog_row_value_options = '';")
	}
	return checkOK(name, "binlog_row_value_options=PARTIAL_JSON: the differences are applied, events have whole values")
}

func (i *Inspector) checkMetadata() Check {
	const name = "row metadata"
	metadata, known := i.variables["binlog_row_metadata"]
	switch {
	case !known:
		return checkWarn(name, "the server is too old to send column names: they are read from information_schema, and rows written before a later ALTER TABLE stop binlogd",
			"upgrade to MySQL 8.0.1 or MariaDB 10.5")
	case metadata != "FULL":
		return checkWarn(name, fmt.Sprintf("binlog_row_metadata=%s: column names come from the schema history, which cannot tell how a table looked before binlogd first saw it", metadata),
			i.setGlobal("binlog_row_metadata", "FULL"))
	}
	return checkOK(name, "binlog_row_metadata=FULL")
}

func (i *Inspector) checkGTIDs() Check {
	const name = "GTID mode"
	if i.server.Flavor == MariaDB {
		return checkOK(name, "MariaDB always numbers its transactions")
	}
	switch mode := i.variables["gtid_mode"]; mode {
	case "ON":
		return checkOK(name, "gtid_mode=ON")
	case "", "OFF":
		return checkWarn(name, "gtid_mode=OFF: the place is a file and an offset, which another server, such as a replica after a failover, does not know",
			"turn GTIDs on in the steps of MySQL's manual, \"Enabling GTID Transactions Online\"")
	default:
		return checkWarn(name, fmt.Sprintf("gtid_mode=%s: some transactions have a GTID and some have none", mode),
			"go on to gtid_mode=ON in the steps of MySQL's manual, \"Enabling GTID Transactions Online\"")
	}
}

func (i *Inspector) checkRetention() Check {
	const name = "binlog retention"
	kept := i.retention()
	switch {
	case i.variables["max_binlog_total_size"] != "" && i.variables["max_binlog_total_size"] != "0":
		return checkWarn(name, fmt.Sprintf("binlogs are purged above %s bytes in total, however new they are", i.variables["max_binlog_total_size"]),
			i.setGlobal("max_binlog_total_size", "0")+" and keep them by time")
	case kept == 0:
		return checkOK(name, "binlogs are kept until they are purged by hand")
	case kept < shortRetention:
		return checkWarn(name, fmt.Sprintf("binlogs are purged after %s: an outage of binlogd that is longer loses its place", days(kept)),
			i.setGlobal("binlog_expire_logs_seconds", "604800")+" (7 days)")
	}
	return checkOK(name, "binlogs are kept for %s", days(kept))
}

// retention is how long binlogs are kept; 0 is for ever.
func (i *Inspector) retention() time.Duration {
	if i.variables["binlog_expire_logs_auto_purge"] == "OFF" {
		return 0
	}
	if seconds, _ := strconv.ParseInt(i.variables["binlog_expire_logs_seconds"], 10, 64); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	perhaps, _ := strconv.ParseFloat(i.variables["expire_logs_days"], 64)
	return time.Duration(perhaps * 24 * float64(time.Hour))
}

func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) + " days"
	}
	return d.String()
}

// setGlobal is the statement that changes a setting, so that it outlives a restart.
func (i *Inspector) setGlobal(variable, value string) string {
	if i.atLeast("8.0.0") {
		return fmt.Sprintf("run on the server: SET PERSIST %s = %s;", variable, value)
	}
	return fmt.Sprintf("run on the server: SET GLOBAL %s = %s; and write %s=%s under [mysqld] in its my.cnf", variable, value, variable, value)
}

// checkServerID looks whether another replica bears the configured id. A server ends the
// connection of one of two replicas with the same id, again and again.
func (i *Inspector) checkServerID(ctx context.Context, configured uint32) Check {
	const name = "server id"
	switch configured {
	case 0:
		return checkOK(name, "chosen at the start so that it does not collide")
	case i.server.ServerID:
		return failConfig(name, fmt.Sprintf("source.server_id is %d, which is the server's own", configured),
			"write another source.server_id, or leave it out to have one chosen")
	}
	replicas, err := i.replicas(ctx)
	if err != nil {
		// MariaDB shows replicas to REPLICATION MASTER ADMIN only, which is too much
		// to ask for.
		return checkOK(name, "%d; the account may not see the other replicas'", configured)
	}
	if host, taken := replicas[configured]; taken {
		return checkWarn(name, fmt.Sprintf("a replica with source.server_id %d is connected, from %q: unless that is binlogd itself, the two will cut each other off", configured, host),
			"write another source.server_id, or leave it out to have one chosen")
	}
	return checkOK(name, "%d, which no connected replica has", configured)
}

// replicas are the hosts of the connected replicas by server id.
func (i *Inspector) replicas(ctx context.Context) (map[uint32]string, error) {
	statement := "SHOW SLAVE HOSTS"
	if i.atLeast("8.0.22") {
		statement = "SHOW REPLICAS"
	}
	r, err := ask(ctx, i.conn, statement)
	if err != nil {
		return nil, err
	}
	replicas := make(map[uint32]string, len(r.rows))
	for n := range r.rows {
		if id, err := strconv.ParseUint(r.value(n, "server_id"), 10, 32); err == nil {
			replicas[uint32(id)] = r.value(n, "host")
		}
	}
	return replicas, nil
}
