// Package admin tells people and machines over HTTP how a pipeline is doing.
package admin

import "time"

// Snapshot is what there is to say of a pipeline at one moment. In JSON it is the answer
// of /status, and so part of the contract with users. It holds no secrets: no passwords, no
// values of rows.
type Snapshot struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`  // of binlogd
	GoMySQL   string    `json:"go_mysql"` // its version
	StartedAt time.Time `json:"started_at"`

	Source Source `json:"source"`
	Sink   Sink   `json:"sink"`

	// Position is up to where everything is durable: a GTID set, or file:offset.
	Position string `json:"position"`
	// LagSeconds is the age of the oldest change that is not durable yet; 0 when caught
	// up, negative when it is not known.
	LagSeconds float64 `json:"lag_seconds"`
	// LagTransactions is how many transactions the server has that are not durable yet;
	// −1 when it is not known.
	LagTransactions int64 `json:"lag_transactions"`
	InFlightBytes   int64 `json:"in_flight_bytes"`
	// CheckpointAt is when the checkpoint was last saved; zero before that.
	CheckpointAt time.Time `json:"checkpoint_at,omitzero"`

	// Transactions counts those that were passed, with events and without; Events and
	// Bytes what was published; all since StartedAt.
	Transactions uint64  `json:"transactions"`
	Events       uint64  `json:"events"`
	Bytes        uint64  `json:"bytes"`
	Tables       []Table `json:"tables,omitempty"`
	// ReplacedText counts values whose invalid bytes were replaced.
	ReplacedText uint64 `json:"replaced_text"`
	// Skipped counts changes without an event because a rule failed and says on_error: skip.
	Skipped uint64 `json:"skipped"`

	// LastError is the newest failure, also of one that has passed; empty when none.
	LastError string `json:"last_error,omitempty"`
}

// Source is the server that the binlog comes from.
type Source struct {
	Address string `json:"address"` // in use
	// Addresses are all that the source may be read from, the one in use included.
	Addresses []string `json:"addresses,omitempty"`
	// Failovers is how often reading went on with another server than before.
	Failovers uint64 `json:"failovers"`
	Connected bool   `json:"connected"`
	// LastHeardAt is when the last event or heartbeat came in; zero before.
	LastHeardAt time.Time `json:"last_heard_at,omitzero"`
	LastError   string    `json:"last_error,omitempty"` // of the last lost connection
	Reconnects  uint64    `json:"reconnects"`

	Flavor   string `json:"flavor"` // mysql or mariadb
	Version  string `json:"version"`
	UUID     string `json:"uuid,omitempty"`
	ServerID uint32 `json:"server_id"`
}

// Sink is where the events go.
type Sink struct {
	Kind string `json:"kind"` // kafka, redis, file, stdout
	// Connected: the last attempt to publish, or to reach it, worked.
	Connected bool   `json:"connected"`
	LastError string `json:"last_error,omitempty"` // of the last failed attempt
	Retries   uint64 `json:"retries"`
}

// Table counts what was published of one table, to one topic, as one type of event.
type Table struct {
	Table  string `json:"table"`
	Topic  string `json:"topic"`
	Type   string `json:"type"`
	Events uint64 `json:"events"`
	Bytes  uint64 `json:"bytes"` // of payloads
}
