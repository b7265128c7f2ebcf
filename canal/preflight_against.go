package canal

import (
	"context"
	"fmt"
	"strings"
)

// Against looks whether reading could go on with this server instead of the present one, from the place in o. present is nil
// where it does not answer: then what would have to be compared with it is not, and a check says so.
func (i *Inspector) Against(ctx context.Context, present *Inspector, o PreflightOptions) []Check {
	checks := []Check{i.checkConnection()}
	checks = append(checks, i.checkPrivileges(ctx)...)
	logged := i.checkBinlog()
	checks = append(checks, logged)
	if logged.Status == CheckFail {
		return checks
	}
	checks = append(checks, i.checkFormat(), i.checkRowImage(), i.checkMetadata(), i.checkGTIDs(), i.checkRetention())
	checks = append(checks, i.checkReplica(ctx)...)
	if present == nil {
		checks = append(checks, checkWarn("present server", "it does not answer: settings and transactions are not compared with it", ""))
	} else {
		checks = append(checks, i.checkOther(present))
		checks = append(checks, i.checkSettings(present)...)
	}
	checks = append(checks, i.checkErrant(ctx, present, o))
	if o.Checkpoint != nil {
		checks = append(checks, i.checkSettledPlace(ctx, o)...)
	}
	if present != nil {
		checks = append(checks, i.checkDistance(present))
	}
	return checks
}

// checkOther compares who the two servers are.
func (i *Inspector) checkOther(present *Inspector) Check {
	const name = "identity"
	switch {
	case i.server.Flavor != present.server.Flavor:
		return failSource(name, fmt.Sprintf("it is %s, and the present server is %s: their GTIDs differ in kind", product(i.server), product(present.server)), wrongServer)
	case sameServer(i.server, present.server):
		return checkOK(name, "it is the present server itself, by another address")
	case i.server.Flavor == MySQL && i.server.UUID == present.server.UUID:
		return failSource(name, fmt.Sprintf("both servers have the UUID %s: their GTIDs cannot be told apart", i.server.UUID), "stop the copy, remove its auto.cnf and start it again")
	case i.server.ServerID == present.server.ServerID:
		return failSource(name, fmt.Sprintf("both servers have server_id=%d", i.server.ServerID), i.setGlobal("server_id", "a number of its own"))
	case i.server.UUID != "":
		return checkOK(name, "UUID %s, server id %d; the present server: UUID %s, server id %d", i.server.UUID, i.server.ServerID, present.server.UUID, present.server.ServerID)
	}
	return checkOK(name, "server id %d; the present server: %d", i.server.ServerID, present.server.ServerID)
}

// compared are settings whose difference changes what is read, and how.
var compared = []struct{ variable, because string }{
	{"binlog_row_image", "events have other columns after a switch"},
	{"binlog_row_metadata", "column names come from elsewhere after a switch"},
	{"gtid_mode", "places are of another kind after a switch"},
	{"character_set_server", "databases that are created without a character set get another"},
	{"collation_server", "databases that are created without a collation get another"},
	{"lower_case_table_names", "names of tables are compared, and perhaps written, in another way"},
}

// checkSettings compares settings with those of the present server.
func (i *Inspector) checkSettings(present *Inspector) []Check {
	const name = "same settings"
	var checks []Check
	for _, c := range compared {
		here, there := present.variables[c.variable], i.variables[c.variable]
		if here == there {
			continue
		}
		remedy := i.setGlobal(c.variable, here)
		if c.variable == "lower_case_table_names" {
			remedy = fmt.Sprintf("the setting is fixed when a data folder is made: rebuild it with lower_case_table_names=%s", here)
		}
		checks = append(checks, checkWarn(name, fmt.Sprintf("%s=%s, and on the present server %s: %s", c.variable, there, here, c.because), remedy))
	}
	if major(i.server.Version) != major(present.server.Version) {
		checks = append(checks, checkWarn(name, fmt.Sprintf("its version is %s, that of the present server %s", i.server.Version, present.server.Version), ""))
	}
	if len(checks) == 0 {
		return []Check{checkOK(name, "row image, metadata, GTID mode, character sets and names as on the present server")}
	}
	return checks
}

// major is a version's first two numbers.
func major(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// checkErrant looks for transactions that a replica made itself.
func (i *Inspector) checkErrant(ctx context.Context, present *Inspector, o PreflightOptions) Check {
	const name = "own transactions"
	r, err := i.replica(ctx)
	if err != nil {
		return FailedCheck(name, err)
	}
	known := NewGTIDSet(i.server.Flavor)
	if o.Checkpoint != nil && o.Checkpoint.GTIDs.Flavor() == i.server.Flavor {
		known = known.Union(o.needed())
	}
	if present != nil && present.server.Flavor == i.server.Flavor {
		executed, err := present.executed()
		if err != nil {
			return FailedCheck(name, err)
		}
		known = known.Union(executed)
	}
	errant, err := i.ownTransactions(r, known)
	switch {
	case err != nil:
		return FailedCheck(name, err)
	case !errant.IsEmpty():
		return failSource(name, fmt.Sprintf("the replica has transactions of its own, which the present server does not have: %s: they would be published, and the checkpoint could not go back", shorten(errant)),
			"rebuild the replica; or, if they do nothing, commit empty transactions with their GTIDs on the present server")
	case !r.configured:
		return checkOK(name, "it is no replica: all of its transactions count")
	}
	return checkOK(name, "none: all that it has came from %s", r.source)
}

// checkDistance says how far behind the present server it is, which says what a switch would wait for.
func (i *Inspector) checkDistance(present *Inspector) Check {
	const name = "behind"
	theirs, err := i.executed()
	if err != nil {
		return FailedCheck(name, err)
	}
	ours, err := present.executed()
	if err != nil {
		return FailedCheck(name, err)
	}
	missing := ours.Subtract(theirs)
	switch {
	case ours.Flavor() != theirs.Flavor():
		return checkWarn(name, "cannot be told", "")
	case missing.IsEmpty():
		return checkOK(name, "it has everything that the present server has")
	}
	return checkWarn(name, fmt.Sprintf("it lacks %s of the present server", shorten(missing)), "a switch waits until it has what is published by then")
}
