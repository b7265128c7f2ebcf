package canal

import (
	"errors"
	"fmt"
	"strings"
)

// statement takes a QUERY event: transaction control, DDL, or rows changed in statement format.
func (c *cutter) statement(q query) error {
	o := c.open
	if o == nil {
		return c.broken(errors.New("a statement outside a transaction"))
	}
	text := string(q.text)
	switch classify(text) {
	case statementBegin:
		o.began = true
		return nil
	case statementCommit:
		return c.commit()
	case statementRollback:
		return c.rollback()
	case statementSavepoint:
		c.setSavepoint(savepointName(text))
		return nil
	case statementRollbackTo:
		return c.rollbackTo(savepointName(text))
	case statementXAStart:
		o.began, o.xa, o.held = true, true, c.xa.begin()
		return nil
	case statementXAEnd:
		return nil
	case statementXACommit:
		return c.xaResolve(xidOf(text), true)
	case statementXARollback:
		return c.xaResolve(xidOf(text), false)
	case statementDML:
		return c.statementChange(q)
	case statementOther:
		if c.reach != nil {
			c.reach.changed(q)
		}
		if err := c.ddl(q); err != nil {
			return err
		}
	}
	if !o.began {
		return c.finish()
	}
	if readDDL(q).kind != ddlTables { // it is about temporary tables, not CREATE TABLE … START TRANSACTION
		c.holdFrom()
	}
	return nil
}

// ddl has the schemas follow a statement, and notes which captured tables it empties.
func (c *cutter) ddl(q query) error {
	if c.schemas == nil {
		return nil
	}
	o := c.open
	truncated, err := c.schemas.statement(q, ddlPlace{
		gtid: o.piece.GTID, begin: place{o.piece.File, o.piece.Start}, after: c.place, read: c.read,
	})
	if err != nil {
		return err
	}
	if !o.replay {
		o.piece.truncated = append(o.piece.truncated, truncated...)
	}
	return nil
}

// statementChange takes a statement that changed rows without logging them. It stops where one of them may be of a
// captured table.
func (c *cutter) statementChange(q query) error {
	o := c.open
	if o == nil {
		return c.broken(errors.New("a statement outside a transaction"))
	}
	var table string
	hit := !o.replay && names(q, func(database, name string) bool {
		table = database + "." + name
		return c.captured(database, name) || c.captured(strings.ToLower(database), strings.ToLower(name))
	})
	if hit {
		return c.notInRows(fmt.Sprintf("changes table %s in statement format, so that its rows are not in the binlog", table), q, "")
	}
	if c.reach != nil && !o.replay {
		table, way, unknown, err := c.reach.of(q)
		switch {
		case err != nil:
			return err
		case table != "":
			return c.notInRows(fmt.Sprintf("changes rows in statement format, and may change table %s through %s without its rows in the binlog", table, way), q, "")
		case unknown != "":
			return c.notInRows(fmt.Sprintf("changes rows in statement format, and cannot be shown to change no captured table: %s", unknown), q,
				", or let binlogd see for itself (GRANT SELECT, SHOW VIEW, TRIGGER, EXECUTE ON *.* TO the account of source.user) and start it again")
		}
	}
	if !o.began {
		return c.finish()
	}
	c.holdFrom()
	return nil
}

// notInRows is a change that may be one of a captured table, without its rows. instead is another way out.
func (c *cutter) notInRows(what string, q query, instead string) error {
	o := c.open
	return &SourceError{
		Err: fmt.Errorf("transaction %s at %s %s: %q", identity(o.piece.GTID, o.piece.File, o.piece.Start), c.place, what, abbreviate(string(q.text))),
		Remedy: "set binlog_format=ROW for every session that writes (SET GLOBAL binlog_format = ROW), bring the table's consumers up to date by hand, and go on behind this transaction with a new checkpoint (source.start: " +
			c.startBehind() + " and another checkpoint.path)" + instead,
	}
}

// startBehind is the value of source.start that begins behind the open transaction.
func (c *cutter) startBehind() string {
	if c.read == nil || c.open.piece.GTID.IsZero() {
		return fmt.Sprintf("file:%s:%d", c.place.file, c.place.offset)
	}
	behind := c.read.Clone()
	behind.Add(c.open.piece.GTID)
	return "gtid:" + behind.String()
}
