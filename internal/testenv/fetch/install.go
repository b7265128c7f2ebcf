package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// CCompiler makes sure that there is one: Go's race detector needs it.
func CCompiler(ctx context.Context) error {
	return aptInstall(ctx, "gcc", "gcc", "libc6-dev")
}

// aptInstall installs packages of the machine's own distribution unless program is
// there already. It needs root, by sudo where the caller is somebody else.
func aptInstall(ctx context.Context, program string, packages ...string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	unlock, err := Lock(ctx, filepath.Join(cache, "apt-install.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := exec.LookPath(program); err == nil { // another process was faster
		return nil
	}
	names := strings.Join(packages, " ")
	var asRoot []string
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("sudo"); err != nil {
			return errors.New("install " + names + ": neither root nor sudo at hand; install that by hand")
		}
		asRoot = []string{"sudo", "--non-interactive"}
	}
	asRoot = append(asRoot, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq",
		"-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300")
	progress("install %s with apt-get …", names)
	for _, step := range [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)} {
		if err := command(ctx, slices.Concat(asRoot, step)...); err != nil {
			return fmt.Errorf("install %s: %w", names, err)
		}
	}
	return nil
}
