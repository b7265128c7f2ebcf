package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What an operator can do about a lost place. Each costs something, and says what.
const (
	lostPlace   = "restore the binlogs from a backup; or give the changes in between up: put the checkpoint aside and begin anew with source.start"
	wrongServer = "correct source.address; or, if this server replaces the old one, put the checkpoint aside and begin anew with source.start"
)

// checkSettledPlace looks twice before it says that a place is lost: a replica hears of a
// transaction a moment before the server counts it as executed.
func (i *Inspector) checkSettledPlace(ctx context.Context, o PreflightOptions) []Check {
	const moment = 300 * time.Millisecond
	checks := i.CheckPlace(ctx, o)
	last := checks[len(checks)-1]
	if _, rewritten := errors.AsType[*rewrittenError](last.Err); rewritten || last.Status != CheckFail || !sleep(ctx, moment) || i.Refresh(ctx) != nil {
		return checks
	}
	return i.CheckPlace(ctx, o)
}

// CheckPlace looks whether reading can resume at the checkpoint: whether this server has
// executed what the checkpoint holds, and still has the binlogs after it.
func (i *Inspector) CheckPlace(ctx context.Context, o PreflightOptions) []Check {
	place := *o.Checkpoint
	if o.Server.Version != "" && o.Server.Flavor != i.server.Flavor {
		return []Check{failSource("same server", fmt.Sprintf("%s was written for %s, and %s answers", o.called(), product(o.Server), product(i.server)), wrongServer)}
	}
	if place.GTIDs == nil {
		return i.checkFile(ctx, o)
	}
	rewritten, err := i.rewritten(ctx, o)
	switch {
	case err != nil:
		return []Check{FailedCheck("same server", err)}
	case rewritten != nil:
		return []Check{*rewritten}
	case i.server.Flavor == MariaDB:
		return i.checkDomains(ctx, o)
	}
	return i.checkExecuted(ctx, o)
}

// needed is all that a server must have that is to serve the place.
func (o PreflightOptions) needed() *GTIDSet { return o.Checkpoint.GTIDs.Union(o.Needs) }

// lacking names a server that does not have GTIDs of the place: a replica that is behind, or one that will never have them.
func (i *Inspector) lacking(ctx context.Context, o PreflightOptions, what string) Check {
	const name = "same server"
	r, err := i.replica(ctx)
	switch {
	case err != nil:
		return FailedCheck(name, err)
	case r.configured:
		detail := fmt.Sprintf("the server is a replica of %s that has not caught up: %s", r.source, what)
		c := checkWarn(name, detail, "let it catch up (START REPLICA; SHOW REPLICA STATUS says what keeps it)")
		if i.server.Flavor == MariaDB {
			c.Remedy = "let it catch up (START SLAVE; SHOW SLAVE STATUS says what keeps it)"
		}
		c.Status, c.Err = CheckFail, &LagError{Err: errors.New(detail), Remedy: c.Remedy}
		return c
	}
	executed, err := i.executed()
	switch {
	case err == nil && o.Checkpoint.GTIDs.Intersect(executed).IsEmpty():
		return failSource(name, "another server answers, or its binlogs were reset: it has none of the transactions that were read: "+what, wrongServer)
	case i.sameAs(o.Server):
		return failSource(name, fmt.Sprintf("the server has lost transactions: its binlogs were reset (%s), or it lost the last ones in a crash: %s", i.resetStatement(), what), crashRemedy)
	}
	return failSource(name, "another server answers, with part of the history only: rebuilt from a backup, or promoted before it had all: "+what, wrongServer+"; or wait for a server that has all and name it in source.addresses")
}

// checkExecuted compares with MySQL's gtid_executed and gtid_purged.
func (i *Inspector) checkExecuted(ctx context.Context, o PreflightOptions) []Check {
	const same, purged = "same server", "purged range"
	if mode := i.variables["gtid_mode"]; mode != "ON" && mode != "ON_PERMISSIVE" {
		return []Check{failSource(same, fmt.Sprintf("%s is a GTID set and the server has gtid_mode=%s", o.called(), mode), wrongServer)}
	}
	executed, err := ParseGTIDSet(MySQL, i.variables["gtid_executed"])
	if err != nil {
		return []Check{FailedCheck(same, fmt.Errorf("read gtid_executed: %w", err))}
	}
	gone, err := ParseGTIDSet(MySQL, i.variables["gtid_purged"])
	if err != nil {
		return []Check{FailedCheck(purged, fmt.Errorf("read gtid_purged: %w", err))}
	}
	place := o.Checkpoint.GTIDs
	if unknown := o.needed().Subtract(executed); !unknown.IsEmpty() {
		return []Check{i.lacking(ctx, o, fmt.Sprintf("it never executed %s of %s", shorten(unknown), o.called()))}
	}
	first := checkOK(same, "it executed everything that %s holds", o.called())
	if o.Server.UUID != "" && o.Server.UUID != i.server.UUID {
		first.Detail += fmt.Sprintf(" (it is %s; %s was written for %s)", i.server.UUID, o.called(), o.Server.UUID)
	}
	if missing := gone.Subtract(place); !missing.IsEmpty() {
		return []Check{first, failSource(purged, fmt.Sprintf("the server has purged %s, which %s does not hold", shorten(missing), o.called()), lostPlace)}
	}
	return []Check{first, checkOK(purged, "all there; %d transactions wait to be read", executed.Subtract(place).Count())}
}

// checkDomains compares with where MariaDB's binlogs end and where the oldest begins.
func (i *Inspector) checkDomains(ctx context.Context, o PreflightOptions) []Check {
	place := o.Checkpoint.GTIDs
	const same, purged = "same server", "purged range"
	end, err := ParseGTIDSet(MariaDB, i.variables["gtid_binlog_pos"])
	if err != nil {
		return []Check{FailedCheck(same, fmt.Errorf("read gtid_binlog_pos: %w", err))}
	}
	if unknown := o.needed().Subtract(end); !unknown.IsEmpty() {
		return []Check{i.lacking(ctx, o, fmt.Sprintf("its binlog ends at %q, before %s of %s", end, shorten(unknown), o.called()))}
	}
	strange, err := i.neverLogged(o.needed())
	if err != nil {
		return []Check{FailedCheck(same, err)}
	}
	if strange != "" {
		return []Check{failSource(same, fmt.Sprintf("another server answers, or its binlogs were reset: it has later transactions of the same domain, but never logged %s of %s", strange, o.called()), wrongServer)}
	}
	first := checkOK(same, "its binlog reaches %s", o.called())
	files, err := ask(ctx, i.conn, "SHOW BINARY LOGS")
	if err != nil {
		return []Check{first, FailedCheck(purged, err)}
	}
	if len(files.rows) == 0 {
		return []Check{first, failSource(purged, "the server has no binlog files", lostPlace)}
	}
	oldest := files.rows[0][0]
	r, err := ask(ctx, i.conn, "SELECT BINLOG_GTID_POS("+quoteText(oldest)+", 4)")
	if err != nil {
		return []Check{first, FailedCheck(purged, err)}
	}
	start, err := ParseGTIDSet(MariaDB, r.rows[0][0])
	if err != nil {
		return []Check{first, FailedCheck(purged, fmt.Errorf("read where %s begins: %w", oldest, err))}
	}
	if missing := start.Subtract(place); !missing.IsEmpty() {
		return []Check{first, failSource(purged, fmt.Sprintf("the server's oldest binlog, %s, begins after %s, which %s (%s) has not reached", oldest, shorten(missing), o.called(), place), lostPlace)}
	}
	return []Check{first, checkOK(purged, "all there, from %s on", oldest)}
}

// neverLogged is a GTID of the place that MariaDB's binlog never held, or empty: servers number a domain on by what they see, so that
// another server can be further in it without having this transaction. It is the check that MariaDB makes when a replica connects
// (https://mariadb.com/kb/en/gtid/#gtid_binlog_state), made here for a better message.
func (i *Inspector) neverLogged(place *GTIDSet) (string, error) {
	logged := make(map[[2]uint32]uint64) // by domain and server, the last number
	replicated := make(map[GTID]bool)
	for _, variable := range []string{"gtid_binlog_state", "gtid_slave_pos"} {
		for text := range strings.SplitSeq(i.variables[variable], ",") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			g, err := ParseGTID(MariaDB, text)
			if err != nil {
				return "", fmt.Errorf("read %s: %w", variable, err)
			}
			if variable == "gtid_slave_pos" {
				replicated[g] = true
			} else {
				logged[[2]uint32{g.Domain, g.ServerID}] = g.Number
			}
		}
	}
	if len(logged) == 0 { // the account may not see it
		return "", nil
	}
	for text := range strings.SplitSeq(place.String(), ",") {
		if text == "" {
			continue
		}
		g, err := ParseGTID(MariaDB, text)
		if err != nil {
			return "", err
		}
		if logged[[2]uint32{g.Domain, g.ServerID}] < g.Number && !replicated[g] {
			return text, nil
		}
	}
	return "", nil
}

// checkFile looks for the file of a place without GTIDs, which only the server that wrote
// it knows.
func (i *Inspector) checkFile(ctx context.Context, o PreflightOptions) []Check {
	const same, purged = "same server", "purged range"
	place := *o.Checkpoint
	if o.Server.UUID != "" && o.Server.UUID != i.server.UUID {
		return []Check{failSource(same, fmt.Sprintf("%s is a file and offset of the server %s, and %s answers", o.called(), o.Server.UUID, i.server.UUID), wrongServer)}
	}
	first := checkOK(same, "it is the server that %s was written for", o.called())
	files, err := ask(ctx, i.conn, "SHOW BINARY LOGS")
	if err != nil {
		return []Check{first, FailedCheck(purged, err)}
	}
	for n, row := range files.rows {
		if row[0] != place.File {
			continue
		}
		length, err := strconv.ParseUint(row[1], 10, 64)
		if err == nil && place.Offset > length {
			return []Check{first, failSource(purged, fmt.Sprintf("%s is at offset %d of %s, which ends at %d: it is not the file that it was", o.called(), place.Offset, place.File, length), wrongServer)}
		}
		return []Check{first, checkOK(purged, "all there, %d files", len(files.rows)-n)}
	}
	return []Check{first, failSource(purged, fmt.Sprintf("the server has purged %s, where %s is; it has %s", place.File, o.called(), span(files)), lostPlace)}
}

// span is the first and last of the server's binlog files.
func span(files *answer) string {
	if len(files.rows) == 0 {
		return "none"
	}
	return files.rows[0][0] + " to " + files.rows[len(files.rows)-1][0]
}

// shorten keeps a message about a set of thousands of intervals readable.
func shorten(set *GTIDSet) string {
	const limit = 400
	text := set.String()
	if len(text) <= limit {
		return text
	}
	cut := strings.LastIndexAny(text[:limit], ",:")
	return fmt.Sprintf("%s and more, %d transactions in all", text[:max(cut, 1)], set.Count())
}

// Behind is how many transactions the server has executed that are not in place, if it
// numbers them.
func (i *Inspector) Behind(place Position) (transactions uint64, known bool) {
	variable := "gtid_executed"
	if i.server.Flavor == MariaDB {
		variable = "gtid_binlog_pos"
	}
	executed, err := ParseGTIDSet(i.server.Flavor, i.variables[variable])
	if err != nil || place.GTIDs == nil || place.GTIDs.Flavor() != i.server.Flavor {
		return 0, false
	}
	if i.server.Flavor == MariaDB { // the sums of sequence numbers: only their difference says something
		return executed.Count() - min(executed.Count(), place.GTIDs.Count()), true
	}
	return executed.Subtract(place.GTIDs).Count(), true
}
