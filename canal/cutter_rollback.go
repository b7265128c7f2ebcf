package canal

import (
	"fmt"
	"strings"
	"unicode"
)

// A transaction that is rolled back, in part or as a whole, is in the binlog all the same where it holds what cannot be rolled back:
// a temporary table that it made or dropped, or a statement-format change to a table without transactions. Then ROLLBACK stands
// at its end instead of a commit, or ROLLBACK TO SAVEPOINT in it. Which rows stay is plain, since servers log rows by the table:
// those of tables without transactions go into the binlog at the end of their statement, as a transaction of their own, whatever
// becomes of the one around it. So the rows inside a transaction are of tables with transactions, and what was rolled back goes.
//
// MySQL's binlog_write_table_map and MariaDB's THD::binlog_write_table_map choose between the two caches by
// handler::has_transactions(); TestMixedEngines asks the servers.

// savepoint is one that was set in the open transaction.
type savepoint struct {
	name string
	size int // of the rows before it
}

// setSavepoint notes a savepoint. One of the same name before it is gone.
func (c *cutter) setSavepoint(name string) {
	o := c.open
	kept := o.savepoints[:0]
	for _, s := range o.savepoints {
		if s.name != name {
			kept = append(kept, s)
		}
	}
	o.savepoints = append(kept, savepoint{name, o.size})
}

// savepointName is the name in SAVEPOINT `a` and ROLLBACK TO [SAVEPOINT] `a`, without regard to case, as the servers compare it.
func savepointName(text string) string {
	words := newTokens(text, false)
	name := ""
	for word := words.next(); word != ""; word = words.next() {
		name = word
	}
	return strings.ToLower(name)
}

// rollbackTo drops the rows since a savepoint.
func (c *cutter) rollbackTo(name string) error {
	o := c.open
	at := -1
	for i, s := range o.savepoints {
		if s.name == name {
			at = i
		}
	}
	// Servers take é and e for one name of a savepoint; which letters beyond ASCII are which is not worth knowing.
	foreign := func(r rune) bool { return r > unicode.MaxASCII }
	for _, s := range o.savepoints {
		if s.name != name && (strings.ContainsFunc(s.name, foreign) || strings.ContainsFunc(name, foreign)) {
			at = -1
		}
	}
	if at < 0 {
		if o.size == 0 {
			return nil
		}
		return c.cannotTakeBack(fmt.Sprintf("was rolled back to savepoint %q, and where that was set cannot be told", name))
	}
	o.savepoints = o.savepoints[:at+1]
	return c.takeBack(o.savepoints[at].size, fmt.Sprintf("was rolled back to savepoint %q", name))
}

// rollback ends a transaction that was rolled back.
func (c *cutter) rollback() error {
	o := c.open
	if err := c.takeBack(0, "was rolled back"); err != nil {
		return err
	}
	if o.xa {
		o.xa, o.held = false, nil
		c.xa.discard()
	}
	return c.finish()
}

// takeBack drops the rows behind the first ones of a size.
func (c *cutter) takeBack(size int, what string) error {
	o := c.open
	o.tableMaps = nil
	if size >= o.size {
		return nil
	}
	if size < o.pieceStart {
		return c.cannotTakeBack(what)
	}
	if o.held != nil {
		if err := o.held.truncate(max(size-(o.size-o.held.size), 0)); err != nil {
			return err
		}
	}
	piece := o.piece
	piece.events = firstEvents(piece.events, size-o.pieceStart)
	piece.Bytes = 0
	for _, e := range piece.events {
		piece.Bytes += len(e)
	}
	o.size = size
	return nil
}

func (c *cutter) cannotTakeBack(what string) error {
	o := c.open
	return &SourceError{
		Err: fmt.Errorf("transaction %s at %s %s, after %d pieces of it were published",
			identity(o.piece.GTID, o.piece.File, o.piece.Start), c.place, what, o.pieces),
		Remedy: "bring the consumers of its tables up to date by hand, and go on behind this transaction with a new checkpoint (source.start: " + c.startBehind() + " and another checkpoint.path)",
	}
}

// mayRollBack reports whether rows that are read may still be rolled back. MariaDB does not say it before the end: making a
// temporary table in a transaction is enough, and leaves no trace. On MySQL a statement in the transaction tells.
func (c *cutter) mayRollBack() bool {
	o := c.open
	return c.flavor == MariaDB && o.began && !o.settled && o.pieces == 0
}

// hold has the rows of the open transaction wait, those that were read and those to come.
func (c *cutter) hold() error {
	o := c.open
	o.held = &heldRows{dir: c.xa.dir, limit: c.xa.limit}
	for _, e := range o.piece.events {
		if err := o.held.append(e); err != nil {
			return err
		}
	}
	o.piece.events, o.piece.Bytes = nil, 0
	return nil
}

// holdFrom has the rows wait that follow a statement in a MySQL transaction: one that cannot be rolled back, so that ROLLBACK may follow.
func (c *cutter) holdFrom() {
	if o := c.open; c.flavor == MySQL && o.held == nil && !o.replay {
		o.held = &heldRows{dir: c.xa.dir, limit: c.xa.limit}
	}
}

// releaseHeld gives the rows that waited back to the open transaction: they count now.
func (c *cutter) releaseHeld() error {
	o := c.open
	held := o.held
	if o.settled = true; held == nil {
		return nil
	}
	o.held = nil
	defer held.close()
	if o.replay {
		return nil
	}
	o.size -= held.size
	return held.each(func(e rawEvent) error {
		if isRowsEvent(e.kind()) {
			return c.rows(e)
		}
		return c.tableMap(e)
	})
}
