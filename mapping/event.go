// Package mapping turns the rows of a transaction into domain events. It is pure: no
// I/O, no clock; the same transaction and rules give the same bytes.
package mapping

import "time"

// Event is one domain event, ready to be published. Its byte slices and strings may
// share one larger allocation: keep none of them beyond the publishing of the event.
type Event struct {
	ID       string // at most 64 of [0-9a-z-]; the same for the same change, always
	Type     string // "orders.created"
	Source   string // "/shop/shop/orders"
	Topic    string // "shop.orders"
	Key      []byte // partition key: the key columns' text, "1001" or "1001,2"; may be empty, not nil
	Time     string // RFC 3339 UTC, the commit time: microseconds on MySQL, seconds on MariaDB
	Sequence string // fixed width, grows with commit order
	Table    string // "shop.orders", for metrics and messages
	GTID     string // as the server writes it; empty for anonymous transactions
	Headers  []Header
	Payload  []byte // the event as CloudEvents 1.0 JSON, one line, without the line's end; nil for a tombstone
	// ContentType is the media type of Payload where an entry asks for another form of it, else empty.
	ContentType string

	OccurredAt time.Time
}

// Header is one extra header that a rule gave an event.
type Header struct {
	Key   string
	Value []byte
}
