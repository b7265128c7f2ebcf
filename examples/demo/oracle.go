package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// committedChanges counts the row changes of one database, from a binlog position to
// the end, by letting the server's own mysqlbinlog read them. No line of binlogd's code
// and none of the library that it reads binlogs with takes part.
func committedChanges(ctx context.Context, mysqlbinlog []string, s server, database string, from binlogPosition) (map[change]int, error) {
	args := slices.Concat(mysqlbinlog[1:], []string{
		"--no-defaults", "--read-from-remote-server", "--host=" + s.Host, "--port=" + s.Port, "--user=" + s.User,
		"--base64-output=decode-rows", "--verbose", "--to-last-log", fmt.Sprintf("--start-position=%d", from.Offset), from.File,
	})
	command := exec.CommandContext(ctx, mysqlbinlog[0], args...)
	command.Env = append(os.Environ(), "MYSQL_PWD="+s.Password)
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to mysqlbinlog: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start mysqlbinlog: %w", err)
	}
	changes, parseErr := countChanges(output, database)
	if err := command.Wait(); err != nil {
		return nil, fmt.Errorf("run mysqlbinlog: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return changes, parseErr
}

var (
	gtidLine   = regexp.MustCompile(`^SET @@SESSION\.GTID_NEXT=\s*'([^']+)'`)
	changeLine = regexp.MustCompile("^### (INSERT INTO|UPDATE|DELETE FROM) `([^`]+)`\\.`([^`]+)`$")
	operations = map[string]op{"INSERT INTO": created, "UPDATE": updated, "DELETE FROM": deleted}
)

// countChanges reads what mysqlbinlog --verbose prints: before each transaction its
// GTID, then for each row change a comment that begins with the operation. Values stand
// in lines that begin with "###   @", with control characters escaped, so that none can
// be taken for a change.
func countChanges(text io.Reader, database string) (map[change]int, error) {
	changes := map[change]int{}
	gtid := ""
	lines := bufio.NewReader(text)
	for {
		line, err := lines.ReadString('\n')
		if match := gtidLine.FindStringSubmatch(line); match != nil {
			gtid = strings.ToLower(match[1])
		}
		if match := changeLine.FindStringSubmatch(strings.TrimRight(line, "\n")); match != nil && match[2] == database {
			if !strings.Contains(gtid, ":") {
				return nil, fmt.Errorf("read mysqlbinlog: a change to %s without a GTID before it", match[3])
			}
			changes[change{GTID: gtid, Table: match[3], Op: operations[match[1]]}]++
		}
		if err == io.EOF {
			return changes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read mysqlbinlog: %w", err)
		}
	}
}
