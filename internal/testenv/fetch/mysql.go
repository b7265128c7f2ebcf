package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// RootPassword is the password of root@'%' in every data folder that this package initialises.
const RootPassword = "root"

// Database is a database server that can be started: programs, and an initialised
// data folder to copy.
type Database struct {
	Tree
	// Template is a data folder of a server that was initialised and shut down. It
	// has no identity (auto.cnf) and no binlog yet.
	Template string
	// Program is the server inside the tree, Messages the folder with its messages.
	Program  string
	Messages string
}

// MySQL is the newest MySQL of Debian's unstable suite, the only one that has it: 9.x.
func MySQL(ctx context.Context) (Database, error) { return mysql(ctx, "mysql-9-data") }

// MySQLLowerCase is the same MySQL with a data folder that was initialised with
// lower_case_table_names=1: a server refuses another value than that of its folder.
func MySQLLowerCase(ctx context.Context) (Database, error) {
	return mysql(ctx, "mysql-9-data-lower", "--lower-case-table-names=1")
}

func mysql(ctx context.Context, template string, args ...string) (Database, error) {
	tree, err := debianTree(ctx, "mysql-9", "sid", "mysql-server-core", "mysql-client-core")
	if err != nil {
		return Database{}, err
	}
	db := Database{Tree: tree, Program: "usr/sbin/mysqld", Messages: filepath.Join(tree.Root, "usr/share/mysql")}
	db.Template, err = once(ctx, template, "initialise a MySQL data folder", func(ctx context.Context, dir string) error {
		script := dir + ".sql"
		defer os.Remove(script)
		accounts := "CREATE USER root@'%' IDENTIFIED BY '" + RootPassword + "';\n" +
			"GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n"
		if err := os.WriteFile(script, []byte(accounts), 0o644); err != nil {
			return fmt.Errorf("write the account script: %w", err)
		}
		words, err := db.Command(db.Program, append([]string{
			"--no-defaults", "--initialize-insecure", "--user=root",
			"--basedir=" + filepath.Join(db.Root, "usr"), "--datadir=" + dir, "--init-file=" + script,
			"--skip-log-bin",                // the first transaction in the binlog is the user's
			"--innodb-redo-log-capacity=8M", // less to copy for each server
			"--innodb-buffer-pool-size=64M", "--log-error-verbosity=1",
		}, args...)...)
		if err != nil {
			return err
		}
		if err := command(ctx, words...); err != nil {
			return err
		}
		return os.Remove(filepath.Join(dir, "auto.cnf"))
	})
	return db, err
}
