package mapping

import (
	"fmt"

	"github.com/binlogd/binlogd/canal"
)

// A sequence is "NNNNNNNNNNNNNNNNNNNN-PPPPPPPPPP-H": 33 characters that sort as text in
// commit order within a source and are the same on every replay.
//
//	N  20 digits: the transaction's number. Without GTIDs, 7 digits of the binlog file's
//	   number and 13 of the transaction's offset in it
//	P  10 digits: the change's place among all of the transaction, from 1
//	H  0 for the first event of the change, then 1 … 9, A … Z, a … z: two for a primary-key change of the default
//	   mapping, one for each rule that made an event of the change
const (
	sequenceNumber = 20
	sequenceFile   = 7
	sequenceOffset = 13
	sequencePlace  = 10
	maxFile        = 9_999_999
	maxOffset      = 9_999_999_999_999
)

// sequenceDigits number the events of one change, in the order of ASCII.
const sequenceDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// appendSequenceTransaction appends the part of the sequence that the events of t have
// in common, up to and including the first dash.
func appendSequenceTransaction(b []byte, t *canal.Transaction) ([]byte, error) {
	if !t.GTID.IsZero() {
		return append(appendPadded(b, t.Number, 10, sequenceNumber), '-'), nil
	}
	file, err := binlogNumber(t.File)
	if err != nil {
		return nil, err
	}
	if file > maxFile || t.Start > maxOffset {
		return nil, fmt.Errorf("number the transaction at %s:%d: beyond what an event's sequence holds; set gtid_mode=ON on the server", t.File, t.Start)
	}
	b = appendPadded(b, file, 10, sequenceFile)
	b = appendPadded(b, t.Start, 10, sequenceOffset)
	return append(b, '-'), nil
}

// appendSequenceChange appends the rest: the change's place and which of its events it is.
func appendSequenceChange(b []byte, place uint64, half byte) []byte {
	b = appendPadded(b, place, 10, sequencePlace)
	return append(b, '-', sequenceDigits[half])
}
