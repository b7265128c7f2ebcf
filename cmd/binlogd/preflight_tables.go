package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping"
)

// checkTables compares the events section with the tables of the server.
func checkTables(ctx context.Context, cfg *config, inspector *canal.Inspector) ([]canal.Check, error) {
	mapper, err := mapping.New(cfg.mapping())
	if err != nil {
		return nil, err
	}
	tables, err := inspector.Tables(ctx)
	if err != nil {
		return nil, err
	}
	databases, err := inspector.Databases(ctx)
	if err != nil {
		return nil, err
	}
	matched := make([][]canal.TableInfo, len(cfg.Events))
	var captured []canal.TableInfo
	for _, table := range tables {
		if entry, ok := mapper.Match(table.Database, table.Name); ok {
			matched[entry] = append(matched[entry], table)
		}
		if mapper.Captured(table.Database, table.Name) {
			captured = append(captured, table)
		}
	}

	var checks []canal.Check
	for i := range cfg.Events {
		keys, patterns := cfg.Events[i].Patterns()
		for j, pattern := range patterns {
			of := matched[i]
			if cfg.Events[i].Root != "" {
				if of, err = matching(cfg.Name, pattern, captured); err != nil {
					return nil, err
				}
			}
			check := canal.Check{Name: "tables " + pattern, Status: canal.CheckOK, Detail: countNames(of)}
			if len(of) == 0 {
				check, err = checkUnmatched(ctx, cfg, fmt.Sprintf("events[%d].%s", i, keys[j]), pattern, inspector, tables, databases)
				if err != nil {
					return nil, err
				}
			} else if err := checkMapping(mapper, i, of); err != nil {
				check = canal.FailedCheck(check.Name, &canal.ConfigError{Err: cfg.locateAll(err)})
			}
			checks = append(checks, check)
		}
	}
	return append(checks, checkKeys(captured), checkCascades(captured, inspector)), nil
}

// matching are those of tables that a pattern fits.
func matching(name, pattern string, tables []canal.TableInfo) (matched []canal.TableInfo, err error) {
	alone, err := mapping.New(mapping.Options{Name: name, Tables: []mapping.TableRule{{Table: pattern}}})
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if alone.Captured(t.Database, t.Name) {
			matched = append(matched, t)
		}
	}
	return matched, nil
}

// checkUnmatched tells a mistyped table from one that does not exist yet; key is that of the pattern.
func checkUnmatched(ctx context.Context, cfg *config, key, pattern string, inspector *canal.Inspector, tables []canal.TableInfo, databases []string) (canal.Check, error) {
	check := canal.Check{Name: "tables " + pattern}
	hidden, err := matching(cfg.Name, pattern, tables)
	if err != nil {
		return check, err
	}
	if taken := takenBy(cfg, hidden); len(taken) > 0 {
		entry, _, _ := strings.Cut(key, ".")
		problem := cfg.located(fmt.Errorf("%s: %s is unused: %s", key, entry, firstOf(taken)))
		check.Detail, check.Remedy = problem.Error(), "remove the entry, or move it up"
		check.Status = canal.CheckWarn // tables that come later may be its own
		if !strings.ContainsAny(pattern, "*?") {
			check.Status, check.Err = canal.CheckFail, &canal.ConfigError{Err: problem, Remedy: check.Remedy}
		}
		return check, nil
	}

	database, _, _ := cutPattern(pattern)
	inDatabase, err := mapping.New(mapping.Options{Name: cfg.Name, Tables: []mapping.TableRule{{Table: database + ".*"}}})
	if err != nil {
		return check, err
	}
	visible := slices.ContainsFunc(databases, func(name string) bool { return inDatabase.Captured(name, "any") })
	if visible && strings.ContainsAny(pattern, "*?{[") {
		check.Status = canal.CheckWarn
		check.Detail = "no table yet: those that are created later are captured"
		return check, nil
	}

	names := make([]string, len(tables))
	for i, table := range tables {
		names[i] = table.FullName()
	}
	near := nearest(pattern, names)
	if near == "" && !visible {
		if near = nearest(database, databases); near != "" {
			near = mapping.QuotePattern(near) + strings.TrimPrefix(pattern, database)
		}
	}
	problem := cfg.located(fmt.Errorf("%s: unknown table %s: no such table is there, or the account may not see it", key, pattern))
	remedy := fmt.Sprintf("if the table exists, run on the server: GRANT SELECT ON `%s`.* TO %s;", strings.ReplaceAll(database, "`", "``"), inspector.Account(ctx))
	if near != "" {
		remedy = fmt.Sprintf("did you mean %s? Or, %s", near, remedy)
	}
	return canal.FailedCheck(check.Name, &canal.ConfigError{Err: problem, Remedy: remedy}), nil
}

// takenBy says of each table which entry takes it, or that it is excluded.
func takenBy(cfg *config, tables []canal.TableInfo) (taken []string) {
	all, err := mapping.New(cfg.mapping())
	if err != nil {
		return nil
	}
	for _, t := range tables {
		if other, ok := all.Match(t.Database, t.Name); ok {
			taken = append(taken, fmt.Sprintf("%s is taken by events[%d]", t.FullName(), other))
		} else {
			taken = append(taken, t.FullName()+" is excluded")
		}
	}
	return taken
}

// cutPattern splits database.table at the dot that no backslash precedes.
func cutPattern(pattern string) (database, table string, found bool) {
	for i := range len(pattern) {
		if pattern[i] == '\\' {
			continue
		}
		if pattern[i] == '.' && (i == 0 || pattern[i-1] != '\\') {
			return pattern[:i], pattern[i+1:], true
		}
	}
	return pattern, "", false
}

// checkMapping looks for keys, topics and rules that the real tables do not allow.
func checkMapping(mapper *mapping.Mapper, entry int, tables []canal.TableInfo) error {
	full := make([]*canal.Table, len(tables))
	for i, info := range tables {
		full[i] = info.Table()
		if err := mapper.Check(full[i]); err != nil {
			return err
		}
	}
	return mapper.CheckColumns(entry, full)
}

func checkKeys(tables []canal.TableInfo) canal.Check {
	check := canal.Check{Name: "primary keys", Status: canal.CheckOK, Detail: "every captured table has one, or a unique key that stands in for it"}
	var without []canal.TableInfo
	for _, table := range tables {
		if len(table.PrimaryKey) == 0 {
			without = append(without, table)
		}
	}
	if len(without) > 0 {
		check.Status = canal.CheckWarn
		check.Detail = fmt.Sprintf("none in %s: events have no subject, and share one partition unless the configuration gives a key", countNames(without))
		check.Remedy = fmt.Sprintf("run on the server: ALTER TABLE %s ADD PRIMARY KEY (…); or write key: [column] in its entry of events", without[0].FullName())
	}
	return check
}

func checkCascades(tables []canal.TableInfo, inspector *canal.Inspector) canal.Check {
	check := canal.Check{Name: "foreign keys", Status: canal.CheckOK, Detail: "none changes rows of a captured table without the binlog showing it"}
	if inspector.LogsCascades() {
		check.Detail = "the server logs the rows that they change"
		return check
	}
	var found []string
	for _, table := range tables {
		for _, key := range table.Cascades {
			found = append(found, table.FullName()+" "+key)
		}
	}
	if len(found) > 0 {
		check.Status = canal.CheckWarn
		check.Detail = "the server does not log the rows that it changes by " + firstOf(found)
		check.Remedy = "let the application change those rows itself; MySQL logs them from 9.6 on"
	}
	return check
}

// countNames is "3 tables: a.b, a.c, a.d", cut short.
func countNames(tables []canal.TableInfo) string {
	names := make([]string, len(tables))
	for i, table := range tables {
		names[i] = table.FullName()
	}
	if len(names) == 1 {
		return "1 table: " + names[0]
	}
	return fmt.Sprintf("%d tables: %s", len(names), firstOf(names))
}

func firstOf(names []string) string {
	const limit = 5
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
