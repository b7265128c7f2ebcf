package checkpoint

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/binlogd/binlogd/canal"
)

// Entry is one entry of a checkpoint's history: what was saved, when, by whom and why.
type Entry struct {
	// ID names the entry for good. Later entries have higher numbers.
	ID     string
	At     time.Time
	Action Action
	// Manual entries were asked for by a person. They are kept for good.
	Manual bool
	By     Holder
	Reason string // of a manual one; may be empty
	// Before is the record that a manual entry took the place of, and From its position.
	// Both are nil where there was none, and in automatic entries.
	Before *Record
	From   *canal.Position
	Record Record // what was saved
}

// Action is what made an entry.
type Action string

// The actions. Start, save and failover are automatic.
const (
	ActionStart    Action = "start"    // a process saved for the first time
	ActionSave     Action = "save"     // the place moved on
	ActionFailover Action = "failover" // the place moved on, on another server than before
	ActionRewind   Action = "rewind"
	ActionSet      Action = "set"
	ActionUndo     Action = "undo"
	ActionImport   Action = "import"
	ActionConvert  Action = "convert"
)

// Move is what a person has to say of a move of the checkpoint.
type Move struct {
	Action Action
	Reason string
	By     Holder // the process that opened the store where it is zero
}

// lasting reports whether the entry is kept whatever its age.
func (e *Entry) lasting() bool { return e.Manual || e.Action == ActionFailover }

// number is the ID as a number; 0 where it is none.
func (e *Entry) number() uint64 {
	n, err := strconv.ParseUint(e.ID, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Holder is the process that holds a checkpoint, or moved it.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	User  string    `json:"user,omitempty"`
	Since time.Time `json:"since"`
}

func (h Holder) String() string {
	who := fmt.Sprintf("process %d on host %s", h.PID, h.Host)
	if h.User != "" {
		who += " of user " + h.User
	}
	return who + " since " + h.Since.Format(time.RFC3339)
}

// self is this process as a holder from now on.
func self() (Holder, error) {
	host, err := os.Hostname()
	if err != nil {
		return Holder{}, fmt.Errorf("ask for the host's name: %w", err)
	}
	h := Holder{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)}
	if u, err := user.Current(); err == nil { // a container's user may have no name
		h.User = u.Username
	}
	return h, nil
}

// writtenBy names the process in records.
func (h Holder) writtenBy() string { return fmt.Sprintf("%s, process %d", h.Host, h.PID) }
