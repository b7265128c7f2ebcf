package canal

// Flavor says whose binlog it is: the two servers' formats and GTIDs differ.
type Flavor uint8

const (
	MySQL Flavor = iota
	MariaDB
)

func (f Flavor) String() string {
	if f == MariaDB {
		return "mariadb"
	}
	return "mysql"
}

// GTID names one transaction. The zero GTID stands for an anonymous transaction
// (a MySQL server with gtid_mode=OFF).
//
// MySQL: UUID, Tag (8.3 and later, else empty) and Number.
// MariaDB: Domain, ServerID and Number; UUID and Tag are zero.
type GTID struct {
	Flavor   Flavor
	UUID     [16]byte
	Tag      string
	Domain   uint32
	ServerID uint32
	Number   uint64
}

// IsZero reports whether the transaction is anonymous.
func (g GTID) IsZero() bool { return g.Number == 0 }

// GTIDSet is a set of GTIDs. MySQL: any set, with holes and tags. MariaDB: per
// domain the last GTID, everything up to it included.
type GTIDSet struct{}
