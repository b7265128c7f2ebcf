// Package canal is the source: it joins a MySQL or MariaDB server as a replica,
// reads its binlog, cuts it into transactions and decodes their rows.
//
// One goroutine reads and looks at event headers only (Source); any number of
// workers decode what it hands out (Decoder). Nothing in this package knows
// what becomes of a row.
package canal
