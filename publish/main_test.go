package publish_test

import (
	"testing"

	"github.com/binlogd/binlogd/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
