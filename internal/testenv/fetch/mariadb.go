package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MariaDB1011 is MariaDB 10.11, of Debian 12.
func MariaDB1011(ctx context.Context) (Database, error) {
	return mariadb(ctx, "mariadb-10.11", "bookworm")
}

// MariaDB118 is MariaDB 11.8, of Debian 13.
func MariaDB118(ctx context.Context) (Database, error) {
	return mariadb(ctx, "mariadb-11.8", "trixie")
}

func mariadb(ctx context.Context, name, suite string) (Database, error) {
	tree, err := debianTree(ctx, name, suite, "mariadb-server-core", "mariadb-client-core")
	if err != nil {
		return Database{}, err
	}
	db := Database{Tree: tree, Program: "usr/sbin/mariadbd"}
	if db.Messages, err = folderOf(filepath.Join(tree.Root, "usr/share/m*/fill_help_tables.sql")); err != nil {
		return Database{}, err
	}
	db.Template, err = once(ctx, name+"-data", "initialise a "+name+" data folder", func(ctx context.Context, dir string) error {
		script, err := mariadbSystemTables(db.Messages)
		if err != nil {
			return err
		}
		words, err := db.Command(db.Program, "--no-defaults", "--bootstrap", "--user=root",
			"--basedir="+filepath.Join(db.Root, "usr"), "--datadir="+dir,
			"--lc-messages-dir="+db.Messages,
			"--innodb-log-file-size=8M", // less to copy for each server
			"--max-allowed-packet=8M", "--net-buffer-length=16K", "--enforce-storage-engine=")
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Stdin = strings.NewReader(script)
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w\n%s", db.Program, err, bytes.TrimSpace(output))
		}
		return nil
	})
	return db, err
}

// mariadbSystemTables is what mariadb-install-db feeds to the server, one statement a
// line where it is ours. (That script itself needs the tree to be the machine's root.)
func mariadbSystemTables(share string) (string, error) {
	prefix := "mariadb_"
	if !exists(filepath.Join(share, prefix+"system_tables.sql")) {
		prefix = "mysql_" // before 11
	}
	var script strings.Builder
	script.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range []string{
		prefix + "system_tables.sql", prefix + "performance_tables.sql", prefix + "system_tables_data.sql",
		"fill_help_tables.sql", "maria_add_gis_sp_bootstrap.sql", prefix + "sys_schema.sql",
	} {
		text, err := os.ReadFile(filepath.Join(share, name))
		if err != nil {
			return "", fmt.Errorf("read the system tables' definitions: %w", err)
		}
		script.Write(text)
		script.WriteString("\n")
	}
	// The accounts without a password that it comes with go before they shadow root@'%'.
	script.WriteString("DELETE FROM global_priv WHERE User = '' OR Host NOT IN ('localhost', '');\n" +
		"FLUSH PRIVILEGES;\n" +
		"GRANT ALL ON *.* TO root@'%' IDENTIFIED BY '" + RootPassword + "' WITH GRANT OPTION;\n")
	return script.String(), nil
}

// folderOf returns the folder of the one file that matches pattern.
func folderOf(pattern string) (string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("find " + pattern + ": no such file; delete that folder to have it fetched again")
	}
	return filepath.Dir(files[0]), nil
}
