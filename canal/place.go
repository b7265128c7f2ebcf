package canal

import (
	"fmt"
	"strconv"
	"strings"
)

// place is where the reader stands in the server's binlog files. It counts in 64 bits: the protocol's 32-bit
// positions wrap in a file above 4 GiB, and MariaDB 11.4 and later leave them zero in many events.
type place struct {
	file   string
	offset uint64 // behind the last event
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.offset) }

// advance moves behind e, unless the server made it up for the connection.
func (p *place) advance(e rawEvent) {
	low := e.logPos()
	if e.flags()&flagArtificial != 0 {
		return
	}
	next := p.offset + uint64(e.size())
	switch {
	case low == 0:
		if e.inFile() {
			p.offset = next
		}
	case uint32(next) == low:
		p.offset = next
	default: // the server passed over events that the connection did not ask for
		p.jump(low)
	}
}

// jump moves forward to the next offset whose low half is low.
func (p *place) jump(low uint32) {
	next := p.offset&^0xffffffff | uint64(low)
	if next < p.offset {
		next += 1 << 32
	}
	p.offset = next
}

// startOf is where e, the event just passed, begins.
func (p *place) startOf(e rawEvent) uint64 { return p.offset - uint64(e.size()) }

// rotate goes to another file.
func (p *place) rotate(file string, offset uint64) { p.file, p.offset = file, offset }

// compareFiles orders binlog files by the number behind the last dot.
func compareFiles(a, b string) int {
	x, y := fileNumber(a), fileNumber(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// FileNumber is the number behind the last dot of a binlog file's name; 0 where there is none.
func FileNumber(name string) uint64 { return fileNumber(name) }

func fileNumber(name string) uint64 {
	n, err := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
