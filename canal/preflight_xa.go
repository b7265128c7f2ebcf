package canal

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultXAPatience is how long an XA transaction may stay prepared before it counts as one that nobody ends.
const DefaultXAPatience = 10 * time.Minute

// endXARemedy is what an operator does about one.
const endXARemedy = "ask the application, then end it on the server with XA COMMIT or XA ROLLBACK and its xid (XA RECOVER lists them)"

// checkXA looks for XA transactions that somebody prepared and nobody ends. There is nothing to say where there are none, or where the
// account may not see them.
func (i *Inspector) checkXA(ctx context.Context) []Check {
	const name = "prepared XA"
	const moment = 300 * time.Millisecond
	xids := i.preparedXIDs(ctx)
	if len(xids) == 0 {
		return nil
	}
	// InnoDB knows since when: those prepared belong to no session, or to one that waits. It takes PROCESS to see that.
	var age string
	if r, err := ask(ctx, i.conn, fmt.Sprintf("SELECT COUNT(*), MAX(TIMESTAMPDIFF(SECOND, trx_started, NOW())) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0 AND trx_started < NOW() - INTERVAL %d SECOND",
		int(DefaultXAPatience.Seconds()))); err == nil {
		seconds, _ := strconv.Atoi(r.rows[0][1])
		if r.rows[0][0] == "0" {
			return nil
		}
		age = fmt.Sprintf(", the oldest for %s", time.Duration(seconds)*time.Second)
	} else { // those of an application at work are others a moment later
		if !sleep(ctx, moment) {
			return nil
		}
		later := i.preparedXIDs(ctx)
		for xid := range xids {
			if !later[xid] {
				delete(xids, xid)
			}
		}
		if len(xids) == 0 {
			return nil
		}
	}
	return []Check{checkWarn(name, fmt.Sprintf("%d XA transactions are prepared and not ended%s: %s; their binlogs, and those after them, must be kept until they are",
		len(xids), age, someOf(xids)), endXARemedy)}
}

// preparedXIDs are those of XA RECOVER, in the form of Prepared.XID.
func (i *Inspector) preparedXIDs(ctx context.Context) map[string]bool {
	r, err := ask(ctx, i.conn, "XA RECOVER")
	if err != nil { // MySQL shows them with XA_RECOVER_ADMIN only, which is too much to ask for
		return nil
	}
	xids := make(map[string]bool, len(r.rows))
	for n := range r.rows {
		data := r.value(n, "data")
		gtrid, err := strconv.Atoi(r.value(n, "gtrid_length"))
		if err != nil || gtrid > len(data) {
			continue
		}
		xids[fmt.Sprintf("X'%s',X'%s',%s", hex.EncodeToString([]byte(data[:gtrid])), hex.EncodeToString([]byte(data[gtrid:])), r.value(n, "formatid"))] = true
	}
	return xids
}

// someOf keeps a message readable.
func someOf(xids map[string]bool) string {
	const limit = 3
	var shown []string
	for xid := range xids {
		if len(shown) == limit {
			return strings.Join(shown, " and ") + " and more"
		}
		shown = append(shown, xid)
	}
	return strings.Join(shown, " and ")
}

// xaWatch warns of XA transactions that hold the checkpoint back because nobody ends them.
type xaWatch struct {
	patience time.Duration
	next     time.Time // when to look again
}

// look warns of those that were prepared too long ago, each once an hour.
func (w *xaWatch) look(now time.Time, s *Source) {
	const between, again = time.Second, time.Hour
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(between)
	for _, h := range s.cutter.xa.held {
		age := now.Sub(h.preparedAt)
		if age < w.patience || now.Sub(h.warned) < again {
			continue
		}
		h.warned = now
		s.opts.Logger.Warn("an XA transaction stays prepared and nobody ends it: its binlog and those after it must be kept, since binlogd has to read its rows again after a restart",
			"xid", h.XID, "transaction", identity(h.GTID, h.File, h.Offset), "prepared", h.preparedAt.Format(time.RFC3339), "age", age.Round(time.Second), "remedy", endXARemedy)
	}
}
