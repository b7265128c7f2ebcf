package pipeline_test

import (
	"os"
	"testing"

	"github.com/binlogd/binlogd/internal/testenv"
)

// TestMain runs the tests, or, in a process that a test has started, the pipeline that dies where it is told to.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	testenv.Main(m)
}
