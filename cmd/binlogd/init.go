package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/mapping"
)

func (a *app) initCommand() *cobra.Command {
	var write string
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration for a database's tables, and the GRANTs that it needs",
		Long: `Looks at a database and prints a commented configuration for its tables, with the
statements that create binlogd's account above it. With -w the configuration goes
to a file and only the statements are printed.`,
		Example: `  binlogd init --source root:secret@127.0.0.1:3306/shop
  binlogd init --source root@127.0.0.1:3306/shop -w binlogd.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.quick.source == "" {
				return &usageError{errors.New("init needs --source user:password@host:port/database: the database to look at")}
			}
			return a.init(cmd.Context(), write, force)
		},
	}
	cmd.Flags().StringVar(&a.quick.source, "source", "", "the database to look at: user:password@host:port/database; the password may come from "+passwordVariable+" or be asked for instead")
	cmd.Flags().StringVarP(&write, "write", "w", "", "write the configuration to this file")
	cmd.Flags().BoolVar(&force, "force", false, "with -w: overwrite the file if it is there")
	return cmd
}

func (a *app) init(ctx context.Context, path string, force bool) error {
	cfg, err := a.quick.config(a.password)
	if err != nil {
		return &usageError{err}
	}
	_, database, err := parseSource(a.quick.source)
	if err != nil {
		return &usageError{fmt.Errorf("--source: %w", err)}
	}
	draft, err := look(ctx, cfg, database)
	if err != nil {
		return err
	}
	if path == "" {
		_, err := fmt.Fprintf(a.stdout, "%s\n%s", commented(draft.grants()), draft.yaml())
		return err
	}
	if err := writeNewFile(path, draft.yaml(), force); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, `-- Wrote %s. On the server, create the account that it names:
%s
-- Then set MYSQL_PASSWORD to its password and run:
--   binlogd check -c %s
--   binlogd run -c %[1]s
`, path, draft.grants(), path)
	return err
}

// writeNewFile writes a file that is not there yet, or any with force.
func writeNewFile(path, content string, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{fmt.Errorf("%s is there already: name another file, or overwrite it with --force", path)}
	}
	if err != nil {
		return &usageError{fmt.Errorf("write the configuration: %w", err)}
	}
	_, err = file.WriteString(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the configuration %s: %w", filepath.Clean(path), err)
	}
	return nil
}

// configDraft is what init found.
type configDraft struct {
	name     string
	database string
	connect  canal.ConnectOptions
	server   canal.Identity
	tables   []canal.TableInfo
	logged   bool                      // rows that foreign keys change are in the binlog
	warnings []canal.Check             // about the server
	statuses map[string][]statusColumn // by the tables' full names
}

// look inspects a database.
func look(ctx context.Context, cfg *config, database string) (*configDraft, error) {
	inspector, err := canal.Inspect(ctx, cfg.Source.ConnectOptions)
	if err != nil {
		if exitCode(err) == exitUnexpected {
			err = &unavailableError{exitSource, err, "check that the server runs and that --source is right"}
		}
		return nil, err
	}
	defer func() { _ = inspector.Close() }()
	tables, err := inspector.Tables(ctx)
	if err != nil {
		return nil, err
	}
	draft := &configDraft{name: cfg.Name, database: database, connect: cfg.Source.ConnectOptions, server: inspector.Server(), logged: inspector.LogsCascades()}
	for _, table := range tables {
		if table.Database == database {
			draft.tables = append(draft.tables, table)
		}
	}
	if len(draft.tables) == 0 {
		databases, err := inspector.Databases(ctx)
		if err != nil {
			return nil, err
		}
		hint := "name a database with tables that the account may see"
		if near := nearest(database, databases); near != "" && near != database {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return nil, &canal.ConfigError{Err: fmt.Errorf("database %s has no tables, or the account may not see them", database), Remedy: hint}
	}
	draft.statuses = map[string][]statusColumn{}
	for _, t := range draft.tables {
		if len(draft.statuses) >= maxProposals {
			break
		}
		statuses, err := findStatuses(ctx, inspector, t)
		if err != nil {
			return nil, err
		}
		if len(statuses) > 0 {
			draft.statuses[t.FullName()] = statuses
		}
	}
	for _, c := range inspector.Checks(ctx, canal.PreflightOptions{}) {
		// The privileges of the account that looks are not those of the account to be.
		if c.Status != canal.CheckOK && !strings.HasPrefix(c.Name, "privilege") {
			draft.warnings = append(draft.warnings, c)
		}
	}
	return draft, nil
}

// grants are the statements that create an account which can do what binlogd does, and
// nothing more.
func (d *configDraft) grants() string {
	account := "'binlogd'@'%'"
	monitor := "REPLICATION CLIENT"
	if d.server.Flavor == canal.MariaDB {
		monitor = "BINLOG MONITOR"
	}
	lines := []string{
		fmt.Sprintf("CREATE USER %s IDENTIFIED BY 'choose a password';", account),
		fmt.Sprintf("GRANT REPLICATION SLAVE, %s ON *.* TO %s;", monitor, account),
		fmt.Sprintf("GRANT SELECT ON %s.* TO %s;", quoteGrantDatabase(d.database), account),
		"-- only with checkpoint.store: mysql, which keeps the checkpoint in a schema of its own:",
	}
	lines = append(lines, checkpoint.MySQLGrants(checkpoint.DefaultDatabase, account)...)
	for _, w := range d.warnings {
		lines = append(lines, fmt.Sprintf("-- %s: %s", w.Name, w.Detail))
		if w.Remedy != "" {
			lines = append(lines, "--   "+w.Remedy)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// quoteGrantDatabase quotes a database for GRANT, where _ and % are wildcards.
func quoteGrantDatabase(name string) string {
	return "`" + strings.NewReplacer("`", "``", "_", `\_`, "%", `\%`).Replace(name) + "`"
}

// yaml is the configuration.
func (d *configDraft) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `binlogd init` from %s %s at %s.\n\n", d.server.Flavor, d.server.Version, d.connect.Address)
	fmt.Fprintf(&b, "name: %s\n\n", quoteYAML(d.name))
	fmt.Fprintf(&b, "source:\n  address: %s\n  user: binlogd\n", quoteYAML(d.connect.Address))
	b.WriteString("  password: ${MYSQL_PASSWORD}   # from the environment\n" +
		"  tls: {mode: preferred}        # disabled | preferred | required | verify-ca | verify-identity\n" +
		"  start: latest                 # only where no checkpoint exists: latest | earliest | gtid:SET | file:NAME:OFFSET | time:RFC3339\n\n")
	fmt.Fprintf(&b, "checkpoint:\n  path: %s\n  # store: mysql              # or redis, kafka: on a server, so that another machine can go on\n\n", quoteYAML(d.name+".checkpoint"))
	b.WriteString(`publish:                        # exactly one of these
  stdout: {}
  # file: {path: events.jsonl}
  # kafka: {brokers: [127.0.0.1:9092]}
  # redis: {address: 127.0.0.1:6379}

admin:
  listen: 127.0.0.1:9808        # /healthz /readyz /metrics /status; off when left out

events:
`)
	for _, group := range findShards(d.tables) {
		b.WriteString(d.entry(group))
	}
	b.WriteString(d.aggregates())
	return b.String()
}

// maxProposals is for how many tables rules are proposed.
const maxProposals = 200

// entry is one table's rule, with what is worth knowing of the table.
func (d *configDraft) entry(group shards) string {
	var b strings.Builder
	t := group.tables[0]
	pattern := patternOf(t)
	if group.pattern != "" {
		pattern = group.pattern
	}
	fmt.Fprintf(&b, "  - table: %s", quoteYAML(pattern))
	// The server's estimates mean little for small tables.
	if t.Rows >= 1000 {
		fmt.Fprintf(&b, "   # about %d rows of %d bytes", t.Rows, t.RowBytes)
	}
	if group.pattern != "" {
		fmt.Fprintf(&b, "   # %d shards of one table\n    name: %s", len(group.tables), quoteYAML(group.name))
	}
	b.WriteByte('\n')
	if topic := topicFor(t, pattern); topic != "" {
		if group.name != "" {
			topic = legalName(t.Database + "." + group.name)
		}
		fmt.Fprintf(&b, "    topic: %s\n", quoteYAML(topic))
	}
	if len(t.PrimaryKey) == 0 {
		b.WriteString("    # no primary key, and no unique key without NULLs: events have no subject and share one partition; a key of columns helps:\n    # key: [column]\n")
	} else {
		quoted := make([]string, len(t.PrimaryKey))
		for i, column := range t.PrimaryKey {
			quoted[i] = quoteYAML(column)
		}
		fmt.Fprintf(&b, "    key: [%s]\n", strings.Join(quoted, ", "))
	}
	if !d.logged {
		for _, key := range t.Cascades {
			fmt.Fprintf(&b, "    # not in the binlog, and so without events: rows changed by foreign key %s\n", oneLine(key))
		}
	}
	b.WriteString(d.rules(t, cmp.Or(group.name, t.Name)))
	return b.String()
}

// topicFor is empty where the table's names make a topic, and otherwise the nearest
// topic to them.
func topicFor(t canal.TableInfo, pattern string) string {
	mapper, err := mapping.New(mapping.Options{Name: "x", Tables: []mapping.TableRule{{Table: pattern}}})
	if err == nil {
		_, err = mapper.Topic(t.Database, t.Name)
	}
	if err == nil {
		return ""
	}
	return legalName(t.FullName())
}

// plainText is what YAML reads back as the same text without quotes, in lists too.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*$`)

// quoteYAML writes a text so that it reads back as itself, with a dollar sign doubled so
// that nothing is expanded.
func quoteYAML(s string) string {
	s = strings.ReplaceAll(s, "$", "$$")
	word := slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s))
	number := strings.Trim(s, "0123456789abcdefABCDEFox_.:-") == ""
	if plainText.MatchString(s) && !word && (!number || strings.Count(s, ".") > 1) {
		return s
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return strconv.Quote(s) // YAML's double-quoted escapes contain Go's
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// commented puts each line behind a #, for statements in a YAML file.
func commented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("# " + line)
	}
	return b.String()
}

// oneLine keeps a name with line breaks inside its comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
