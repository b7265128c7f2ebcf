package pipeline

import (
	"os"
	"runtime/debug"
)

// Memory of the process. What is alive is at most the bytes in flight (16 MiB), the tables' schemas and the sink's buffers; the rest of
// a larger heap would be garbage waiting. The soft limit makes the collector run in time when the bytes in flight are at their
// maximum, so that the process stays below 64 MiB resident; the percentage is high because that limit does the work: most
// of the time little is alive, and a collector that ran at each doubling of it would run all the time.
const (
	gcPercent   = 400
	memoryLimit = 42 << 20
)

// TuneMemory sets the garbage collector for a daemon, unless the environment has its own wishes (GOGC, GOMEMLIMIT).
func TuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
