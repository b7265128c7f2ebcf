package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Tree is a folder with Debian packages and everything that they depend on, the C
// library included. Its programs run from where they are, without root rights and
// whatever the machine's own libraries are, because the tree's own loader starts them.
type Tree struct {
	Root string
}

// Command returns the words that run program ("usr/sbin/mysqld") of the tree.
func (t Tree) Command(program string, args ...string) ([]string, error) {
	// One folder per architecture: usr/lib/x86_64-linux-gnu, usr/lib/aarch64-linux-gnu.
	loaders, err := filepath.Glob(filepath.Join(t.Root, "usr/lib/*-linux-gnu*/ld-linux-*.so.*"))
	if err != nil || len(loaders) == 0 {
		// Before Debian 13 the C library was in /lib.
		loaders, err = filepath.Glob(filepath.Join(t.Root, "lib/*-linux-gnu*/ld-linux-*.so.*"))
	}
	if err != nil || len(loaders) == 0 {
		return nil, fmt.Errorf("find the loader in %s: none there; delete that folder to have it fetched again", t.Root)
	}
	arch := filepath.Base(filepath.Dir(loaders[0]))
	var libraries []string
	for _, dir := range []string{"usr/lib/" + arch, "lib/" + arch, "usr/lib/" + arch + "/systemd"} {
		libraries = append(libraries, filepath.Join(t.Root, dir))
	}
	words := []string{
		loaders[0], "--library-path", strings.Join(libraries, ":"),
		filepath.Join(t.Root, program),
	}
	return append(words, args...), nil
}

// debianTree returns the tree called name with packages from a Debian suite.
func debianTree(ctx context.Context, name, suite string, packages ...string) (Tree, error) {
	what := fmt.Sprintf("fetch %s from Debian %s", strings.Join(packages, ", "), suite)
	dir, err := once(ctx, name, what, func(ctx context.Context, dir string) error {
		apt := dir + ".apt" // thrown away: package lists and archives are of no use later
		defer os.RemoveAll(apt)
		archives, err := download(ctx, apt, suite, packages)
		if err != nil {
			return err
		}
		for _, archive := range archives {
			if err := command(ctx, "dpkg-deb", "--extract", archive, dir); err != nil {
				return err
			}
		}
		return nil
	})
	return Tree{Root: dir}, err
}

// download lets apt resolve and fetch packages with all dependencies into folder, as
// if for an empty machine: with a state of its own, so that the machine's packages
// are neither used nor changed, and no root rights are needed.
func download(ctx context.Context, folder, suite string, packages []string) (archives []string, err error) {
	mirror, err := debianMirror()
	if err != nil {
		return nil, err
	}
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if !exists(keyring) {
		return nil, errors.New("read Debian's archive keys: " + keyring + " is missing; install the package debian-archive-keyring")
	}
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return nil, fmt.Errorf("make apt's folder: %w", err)
		}
	}
	files := map[string]string{
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, suite),
		"status":       "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write apt's configuration: %w", err)
		}
	}
	apt := []string{
		"apt-get", "-qq",
		"-o", "Dir::Etc::sourcelist=" + filepath.Join(folder, "sources.list"),
		"-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::Etc::preferences=/dev/null",
		"-o", "Dir::Etc::preferencesparts=/dev/null",
		"-o", "Dir::State=" + filepath.Join(folder, "state"),
		"-o", "Dir::State::status=" + filepath.Join(folder, "status"),
		"-o", "Dir::Cache=" + filepath.Join(folder, "cache"),
		"-o", "APT::Install-Recommends=false",
		"-o", "APT::Sandbox::User=root", // the folder is not open to apt's own user
		"-o", "Acquire::Retries=3",
	}
	if err := command(ctx, append(apt, "update")...); err != nil {
		return nil, err
	}
	install := slices.Concat(apt, []string{"install", "--yes", "--download-only"}, packages)
	if err := command(ctx, install...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(folder, "cache/archives/*.deb"))
}

// debianMirror is the first package source of the machine's own configuration: what
// the machine may reach.
func debianMirror() (string, error) {
	// A configuration has deb822 files (Debian 12's images), one-line files, or both;
	// third-party sources stand in files whose names sort anywhere.
	files, err := filepath.Glob("/etc/apt/sources.list.d/debian*.sources")
	if err != nil {
		return "", err
	}
	files = append(files, "/etc/apt/sources.list")
	for _, pattern := range []string{"*.sources", "*.list"} {
		more, err := filepath.Glob("/etc/apt/sources.list.d/" + pattern)
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // sources.list is often missing
		}
		if mirror := firstMirror(text); mirror != "" {
			return mirror, nil
		}
	}
	return "", errors.New("find a Debian mirror: none of apt's source lists names one; on other systems use the containers of docker-compose.yml")
}

// firstMirror returns the first address of one of apt's source lists, in either format.
func firstMirror(sources []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(sources))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "URIs:":
			return words[1]
		case "deb":
			for _, word := range words[1:] {
				if strings.Contains(word, "://") { // after options in brackets
					return word
				}
			}
		}
	}
	return ""
}

// command runs a program to its end; its output becomes part of the error.
func command(ctx context.Context, words ...string) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", words[0], err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
