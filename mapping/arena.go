package mapping

import (
	"strings"
	"unsafe"
)

const (
	// chunkSize is what the arena asks of the heap at a time, in bytes: about a hundred
	// events, and little enough that a batch of one pins no noticeable memory.
	chunkSize = 64 << 10
	// ownChunk is the size from which bytes get an allocation of their own instead of
	// ending a chunk early.
	ownChunk = chunkSize / 4
)

// arena gives out copies of bytes that lie one after the other in larger chunks. A byte
// that was given out is never written again, so the copies may be read from any
// goroutine while the arena's owner goes on. A chunk is freed by the garbage collector once
// nothing that was cut from it is referred to.
type arena struct {
	// chunk is a Builder for its memory's sake: unlike that of a slice, it is not zeroed before it is written.
	chunk strings.Builder
}

// keep returns a copy of b, never nil, whose capacity ends with it.
func (a *arena) keep(b []byte) []byte {
	if len(b) == 0 || len(b) >= ownChunk {
		return append(make([]byte, 0, len(b)), b...)
	}
	if a.chunk.Cap()-a.chunk.Len() < len(b) {
		a.chunk.Reset() // which leaves the old chunk to those who have parts of it
		a.chunk.Grow(chunkSize)
	}
	start := a.chunk.Len()
	a.chunk.Write(b)
	kept := a.chunk.String()[start:]
	return unsafe.Slice(unsafe.StringData(kept), len(kept))
}

// alias is b as a string without a copy. b must never be written again: true of what
// arena.keep returns, and of nothing else in this package.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
