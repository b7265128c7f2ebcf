package canal

import (
	"errors"
	"fmt"
	"time"
)

// xaHold keeps the rows of XA transactions between their PREPARE and their COMMIT, and says what may count as
// done meanwhile.
//
// A MySQL GTID set can have holes: there the GTID of an unresolved PREPARE is left out of the executed set, and the server
// sends just that transaction again after a restart. By file and offset, and on MariaDB, the resume point stays before
// the oldest unresolved PREPARE instead.
type xaHold struct {
	holes   bool // MySQL with GTIDs
	dir     string
	limit   int // see heldRows
	current *heldXA
	held    []*heldXA  // in order of their PREPAREs
	missing []Prepared // held when the checkpoint was written and not read again yet
}

// heldXA is one XA transaction.
type heldXA struct {
	Prepared
	heldRows
	schemas *schemaSnapshot // in force at its PREPARE
	// preparedAt is when, by the server's clock, and warned when somebody was told that nobody ends it.
	preparedAt, warned time.Time
	// after are the last GTIDs by domain from this PREPARE up to the next held one: withheld until this
	// transaction is resolved.
	after map[uint32]GTID
}

// begin starts to hold the rows of a new XA transaction, and gives where they go to.
func (x *xaHold) begin() *heldRows {
	x.current = &heldXA{heldRows: heldRows{dir: x.dir, limit: x.limit}}
	return &x.current.heldRows
}

// discard drops the one being read.
func (x *xaHold) discard() {
	if x.current != nil {
		x.current.close()
		x.current = nil
	}
}

// prepared notes that the one being read was prepared.
func (x *xaHold) prepared(p Prepared) {
	h := x.current
	x.current = nil
	h.Prepared = p
	for i, m := range x.missing {
		if m.XID == p.XID {
			x.missing = append(x.missing[:i:i], x.missing[i+1:]...)
			break
		}
	}
	x.held = append(x.held, h)
}

// resolve takes out the held transaction with xid, and reports whether there is one. released are the GTIDs that it withheld
// and that no other one withholds.
func (x *xaHold) resolve(xid string) (h *heldXA, released []GTID) {
	for i, h := range x.held {
		if h.XID != xid {
			continue
		}
		x.held = append(x.held[:i:i], x.held[i+1:]...)
		switch {
		case x.holes:
			released = []GTID{h.GTID}
		case i == 0:
			for _, g := range h.after {
				released = append(released, g)
			}
		default:
			for _, g := range h.after {
				x.held[i-1].withhold(g)
			}
		}
		return h, released
	}
	return nil, nil
}

// settle writes into the last piece of a transaction what may count as done once it is durable. It is called for each transaction, in
// order.
func (x *xaHold) settle(t *Transaction) {
	t.ResumeFile, t.ResumeOffset = t.EndFile, t.EndOffset
	last := len(x.held) - 1
	prepares := last >= 0 && x.held[last].File == t.File && x.held[last].Offset == t.Start
	switch {
	case x.holes:
		if !prepares {
			t.Executed = append(t.Executed, t.GTID)
		}
	case last >= 0:
		t.ResumeFile, t.ResumeOffset = x.held[0].File, x.held[0].Offset
		if !t.GTID.IsZero() {
			x.held[last].withhold(t.GTID)
		}
	case !t.GTID.IsZero():
		t.Executed = append(t.Executed, t.GTID)
	}
	if n := len(x.held) + len(x.missing); n > 0 {
		t.Held = make([]Prepared, 0, n)
		t.Held = append(t.Held, x.missing...)
		for _, h := range x.held {
			t.Held = append(t.Held, h.Prepared)
		}
	}
}

// unread is the number of PREPAREs that count as executed but were not read by this process yet.
func (x *xaHold) unread() int {
	if !x.holes {
		return 0
	}
	return len(x.missing)
}

func (x *xaHold) isUnread(g GTID) bool {
	for _, m := range x.missing {
		if m.GTID == g {
			return x.holes
		}
	}
	return false
}

// close drops all rows.
func (x *xaHold) close() {
	x.discard()
	for _, h := range x.held {
		h.close()
	}
	x.held = nil
}

func (h *heldXA) withhold(g GTID) {
	if h.after == nil {
		h.after = make(map[uint32]GTID)
	}
	h.after[g.Domain] = g
}

// xaPrepare ends the first half of an XA transaction, or all of it where it commits in one phase.
func (c *cutter) xaPrepare(e rawEvent) error {
	o := c.open
	if o == nil || !o.xa {
		return c.broken(errors.New("an XA PREPARE without XA START"))
	}
	p, err := parseXAPrepare(e)
	if err != nil {
		return c.broken(err)
	}
	if p.onePhase {
		h := c.xa.current
		c.xa.current = nil
		return c.release(h)
	}
	if c.schemas != nil {
		c.xa.current.schemas = c.schemas.snapshot()
	}
	o.held = nil // the rows wait for their XA COMMIT
	c.xa.current.preparedAt = o.begin.committedAt
	c.xa.prepared(Prepared{XID: p.xid, GTID: o.piece.GTID, File: o.piece.File, Offset: o.piece.Start})
	return c.finish()
}

// xaResolve takes XA COMMIT or XA ROLLBACK of an XA transaction that was prepared before.
func (c *cutter) xaResolve(xid string, commits bool) error {
	o := c.open
	h, released := c.xa.resolve(xid)
	o.released = released
	switch {
	case h != nil && commits:
		return c.release(h)
	case h != nil:
		h.close()
	case commits && !o.replay && c.lookBack != nil:
		id := identity(o.piece.GTID, o.piece.File, o.piece.Start)
		h, err := c.lookBack(xid, place{o.piece.File, o.piece.Start})
		if err != nil {
			return fmt.Errorf("look for the XA PREPARE of %s, which transaction %s commits: %w", xid, id, err)
		}
		if h == nil {
			return &SourceError{
				Err: fmt.Errorf("transaction %s at %s is the XA COMMIT of %s, and its XA PREPARE, with the rows, is in none of the binlogs that the server still has",
					id, c.place, xid),
				Remedy: "bring the consumers of the tables that it changed up to date by hand, and go on behind it with a new checkpoint (source.start: " + c.startBehind() + " and another checkpoint.path)",
			}
		}
		if c.schemas != nil { // an XA transaction locks its tables until it ends
			h.schemas = c.schemas.snapshot()
		}
		return c.release(h)
	}
	return c.finish()
}

// release gives the rows of an XA transaction to the open one, which commits them, and ends it.
func (c *cutter) release(h *heldXA) error {
	o := c.open
	o.xa, o.schemas = false, h.schemas
	o.held, o.size = &h.heldRows, h.size
	return c.finish()
}
