package mapping

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was given out stays as it is, whatever is kept or appended to it afterwards.
func TestArena(t *testing.T) {
	var a arena
	sizes := []int{0, 1, 809, ownChunk - 1, ownChunk, chunkSize, 7}
	var kept, want [][]byte
	for i := range 40 {
		b := bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])
		got := a.keep(b)
		require.NotNil(t, got)
		require.Len(t, got, cap(got))
		_ = append(got, 'x')
		kept, want = append(kept, got), append(want, bytes.Clone(b))
		clear(b)
	}
	for i := range kept {
		require.True(t, bytes.Equal(want[i], kept[i]), "copy %d", i)
	}
}
