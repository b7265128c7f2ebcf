package pipeline_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// kills is how often a test kills: usual times, unless BINLOGD_KILLS says how often.
func kills(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("BINLOGD_KILLS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "BINLOGD_KILLS")
	return n
}
