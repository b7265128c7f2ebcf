package mapping

import "unsafe"

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
	chunk []byte
}

// keep returns a copy of b, never nil, whose capacity ends with it.
func (a *arena) keep(b []byte) []byte {
	if len(b) >= ownChunk {
		return append(make([]byte, 0, len(b)), b...)
	}
	if a.chunk == nil || cap(a.chunk)-len(a.chunk) < len(b) {
		a.chunk = make([]byte, 0, chunkSize)
	}
	start := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[start:len(a.chunk):len(a.chunk)]
}

// alias is b as a string without a copy. b must never be written again: true of what
// arena.keep returns, and of nothing else in this package.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
