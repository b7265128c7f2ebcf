package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases: -ldflags "-X main.version=v1.2.3".
var version string

// buildInfo is what `binlogd version` shows.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // "unknown" outside a checkout; with "+changes" for an altered tree
	Built    string `json:"built"`    // the commit's time, RFC 3339
	GoMySQL  string `json:"go_mysql"` // version of the replication library
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuildInfo takes what the Go toolchain wrote into the binary.
func readBuildInfo() buildInfo {
	b := buildInfo{Version: version, Commit: "unknown", GoMySQL: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	modified := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.Built = setting.Value
		case "vcs.modified":
			modified = setting.Value == "true"
		}
	}
	if modified {
		b.Commit += "+changes"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/go-mysql-org/go-mysql" {
			b.GoMySQL = dep.Version
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version, the commit and the versions it was built with",
		Example: "  binlogd version\n  binlogd version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			if output == outputJSON {
				return writeJSON(a.stdout, b)
			}
			_, err := fmt.Fprintf(a.stdout, "binlogd %s (commit %s) go-mysql %s, %s, %s\n", b.Version, b.Commit, b.GoMySQL, b.Go, b.Platform)
			return err
		},
	}
	addOutputFlag(cmd, &output)
	return cmd
}

// writeJSON writes a result for programs.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
