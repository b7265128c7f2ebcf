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
		if o.savepoints == nil {
			o.savepoints = make(map[string]int)
		}
		o.savepoints[savepointName(text)] = o.rows
		return nil
	case statementRollbackTo:
		return c.rollbackTo(savepointName(text))
	case statementXAStart:
		o.began, o.hold = true, true
		c.xa.begin()
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
		if err := c.ddl(q); err != nil {
			return err
		}
	}
	if o.began { // CREATE TABLE … START TRANSACTION, temporary tables
		return nil
	}
	return c.finish()
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
		return &SourceError{
			Err: fmt.Errorf("transaction %s at %s changes table %s in statement format, so that its rows are not in the binlog: %q",
				identity(o.piece.GTID, o.piece.File, o.piece.Start), c.place, table, abbreviate(string(q.text))),
			Remedy: "set binlog_format=ROW for every session that writes (SET GLOBAL binlog_format = ROW), bring the table's consumers up to date by hand, and go on behind this transaction with a new checkpoint (source.start: " + c.startBehind() + " and another checkpoint.path)",
		}
	}
	if !o.began {
		return c.finish()
	}
	return nil
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

// rollback ends a group that the server logged although it rolled the transaction back: with changes to tables of other
// engines in it, which stay. Rows of the two cannot be told apart here.
func (c *cutter) rollback() error {
	if o := c.open; o.rows > 0 && !o.replay {
		return c.mixedEngines("rolled back")
	}
	return c.finish()
}

func (c *cutter) rollbackTo(savepoint string) error {
	if o := c.open; o.rows > o.savepoints[savepoint] && !o.replay {
		return c.mixedEngines("rolled back to savepoint " + savepoint)
	}
	return nil
}

func (c *cutter) mixedEngines(what string) error {
	o := c.open
	return &SourceError{
		Err: fmt.Errorf("transaction %s at %s was %s after changing rows of transactional and other tables: which of its rows stayed cannot be told from the binlog",
			identity(o.piece.GTID, o.piece.File, o.piece.Start), c.place, what),
		Remedy: "do not change InnoDB tables and tables of other engines in one transaction; bring the tables' consumers up to date by hand and go on behind this transaction with a new checkpoint (source.start: " + c.startBehind() + " and another checkpoint.path)",
	}
}

// savepointName is the name in SAVEPOINT `a` and ROLLBACK TO [SAVEPOINT] `a`.
func savepointName(text string) string {
	words := newTokens(text, false)
	name := ""
	for word := words.next(); word != ""; word = words.next() {
		name = word
	}
	return name
}
