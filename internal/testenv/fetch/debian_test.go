package fetch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstMirror(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ sources, want string }{
		"deb822": {
			"Types: deb\n# http://old.example/debian\nURIs: http://mirror.example/debian\nSuites: bookworm\n\n" +
				"Types: deb\nURIs: http://mirror.example/debian-security\n",
			"http://mirror.example/debian",
		},
		"one line":     {"# deb http://old.example/debian bookworm main\ndeb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		"with options": {"deb-src http://src.example/ x main\ndeb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian x main\n", "https://mirror.example/debian"},
		"nothing":      {"# no sources here\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, firstMirror([]byte(test.sources)))
		})
	}
}
