package fetch

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// PHP returns the words that run a PHP 8.2 or newer with PDO for MySQL: the machine's
// own, or else Debian 12's.
func PHP(ctx context.Context) ([]string, error) {
	if program, err := exec.LookPath("php"); err == nil {
		const fits = `echo PHP_VERSION_ID >= 80200 && extension_loaded("pdo_mysql") && extension_loaded("ctype") ? "yes" : "no";`
		if out, err := exec.CommandContext(ctx, program, "-r", fits).Output(); err == nil && strings.TrimSpace(string(out)) == "yes" {
			return []string{program}, nil
		}
	}
	tree, err := debianTree(ctx, "php-8.2", "bookworm", "php-cli", "php-mysql")
	if err != nil {
		return nil, err
	}
	extensions, err := filepath.Glob(filepath.Join(tree.Root, "usr/lib/php/*/pdo_mysql.so"))
	if err != nil || len(extensions) == 0 {
		return nil, fmt.Errorf("find PHP's extensions in %s: none there; delete that folder to have it fetched again", tree.Root)
	}
	// Without -n it would read the machine's own php.ini, for extensions of another build.
	args := []string{"-n", "-d", "extension_dir=" + filepath.Dir(extensions[0])}
	for _, name := range []string{"ctype", "mysqlnd", "pdo", "pdo_mysql"} { // each needs those before it
		args = append(args, "-d", "extension="+name)
	}
	return tree.Command("usr/bin/php8.2", args...)
}
