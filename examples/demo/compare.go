package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/internal/testenv/fetch"
)

// compare counts both sides, prints the summary, and is an error unless they agree.
func (st *stage) compare(ctx context.Context) error {
	st.story.step("Was anything lost?", "MySQL's own mysqlbinlog counts what was committed; the sink is read back from its start.")
	mysql, err := fetch.MySQL(ctx)
	if err != nil {
		return fmt.Errorf("get mysqlbinlog: %w", err)
	}
	mysqlbinlog, err := mysql.Command("usr/bin/mysqlbinlog")
	if err != nil {
		return err
	}
	committed, err := committedChanges(ctx, mysqlbinlog, st.server, st.shop.database, st.began)
	if err != nil {
		return err
	}
	st.story.done("mysqlbinlog read the binlog from %s:%d: %s row changes", st.began.File, st.began.Offset, count(total(committed, "", "")))
	published, err := st.sink.read(ctx)
	if err != nil {
		return err
	}
	st.story.done("the %s sink holds %s events", st.options.sink, count(len(published)))
	rows, err := currentRows(ctx, st.server.DB, st.shop.database)
	if err != nil {
		return err
	}
	st.story.done("SELECT read %s rows of %d tables", count(rows.rows()), len(rows))

	v := judge(committed, published, rows)
	figures, err := figures(ctx, st.server.DB, st.shop.database, v.Folded)
	if err != nil {
		return err
	}
	for _, f := range figures {
		if f.Database != f.Events {
			v.complain("%s: the database says %s, the events say %s", f.Name, f.Database, f.Events)
		}
	}
	deeds, complaints := businessOf(committed, v.Events, st.cancelled)
	v.Complaints = append(v.Complaints, complaints...)
	for _, b := range deeds {
		if b.Committed != b.Claimed {
			v.complain("%s: %d were committed, the events say %d", b.What, b.Committed, b.Claimed)
		}
	}
	st.printTable(v)
	st.printFigures(figures)
	st.printBusiness(deeds)
	st.printTotals(v, rows.rows())
	return st.conclude(v)
}

// printTable shows the changes by table and operation.
func (st *stage) printTable(v *verdict) {
	s := st.story
	fmt.Fprintf(s.out, "\n   %s\n", s.paint("2", fmt.Sprintf("%-14s%32s    %32s", "", "committed by MySQL", "published by binlogd, distinct")))
	fmt.Fprintf(s.out, "   %s\n", s.paint("2", fmt.Sprintf("%-14s%12s%10s%10s    %12s%10s%10s", "table", "created", "updated", "deleted", "created", "updated", "deleted")))
	for _, table := range v.tableNames() {
		numbers := func(counts map[change]int) string {
			return fmt.Sprintf("%12s%10s%10s", count(total(counts, table, created)), count(total(counts, table, updated)), count(total(counts, table, deleted)))
		}
		committed, distinct := numbers(v.Committed), numbers(v.Distinct)
		fmt.Fprintf(s.out, "   %-14s%s    %s  %s\n", table, committed, distinct, s.mark(committed == distinct))
	}
}

// printFigures shows what the shop's owner would ask.
func (st *stage) printFigures(figures []figure) {
	s := st.story
	fmt.Fprintf(s.out, "\n   %s\n", s.paint("2", "asked of the database by SQL, and computed from the events alone"))
	for _, f := range figures {
		answer := f.Database
		if f.Database != f.Events {
			answer += " ≠ " + f.Events
		}
		fmt.Fprintf(s.out, "   %-18s%-62s  %s\n", f.Name, answer, s.mark(f.Database == f.Events))
	}
}

// printTotals shows the sums that the demo is about.
func (st *stage) printTotals(v *verdict, rows int) {
	s := st.story
	total := func(name string, n int, good bool, remark string) {
		line := fmt.Sprintf("   %-20s%10s  %s", name, count(n), s.mark(good))
		if remark != "" {
			line += " " + s.paint("2", remark)
		}
		fmt.Fprintln(s.out, line)
	}
	committed, distinct := sumOf(v.Committed), sumOf(v.Distinct)
	fmt.Fprintln(s.out)
	total("committed changes", committed, committed > 0, "rows that MySQL wrote, as its own mysqlbinlog counts them")
	total("distinct ids", distinct, distinct == committed, "one per change")
	total("repeats", v.Repeats, true, "published again after a kill, with the same id and the same bytes")
	total("missing", v.Missing, v.Missing == 0, "committed, and no event for it")
	total("made up", v.Surplus, v.Surplus == 0, "an event, and no such change")
	total("rows compared", rows, len(v.Complaints) == 0, "every column, as SELECT shows it, with the events folded into tables")
}

// conclude is nil when everything agrees; otherwise it lists what does not.
func (st *stage) conclude(v *verdict) error {
	s := st.story
	if v.ok() {
		st.proved = true
		fmt.Fprintf(s.out, "\n   %s\n", s.paint("1;32", "Nothing is missing, nothing is made up, every row's changes came in commit order."))
		fmt.Fprintf(s.out, "   %s\n", s.paint("2", "Configuration, log, checkpoint and, with the file sink, the events are in "+st.dir+"."))
		return nil
	}
	shown := v.Complaints[:min(10, len(v.Complaints))]
	message := fmt.Sprintf("database and events differ: %d missing, %d made up, %d other differences", v.Missing, v.Surplus, len(v.Complaints))
	if len(shown) > 0 {
		message += "\n   " + strings.Join(shown, "\n   ")
	}
	return errors.New(message + "\n   everything is in " + st.dir)
}

func (s *story) mark(good bool) string {
	if good {
		return s.paint("32", "✓")
	}
	return s.paint("31", "✗")
}

func sumOf(counts map[change]int) int { return total(counts, "", "") }

// openSink looks at the sink that binlogd is to publish the tables' events to.
func (st *stage) openSink(tables []string) (err error) {
	var topics []string
	for _, name := range slices.Concat(tables, businessTopics) {
		topics = append(topics, st.shop.database+"."+name)
	}
	switch st.options.sink {
	case "kafka":
		st.sink, err = openKafka([]string{st.broker}, topics)
	case "redis":
		st.sink = openRedis(st.broker, topics)
	default:
		st.sink = &fileSink{path: filepath.Join(st.dir, "events.jsonl")}
	}
	if err != nil {
		return err
	}
	st.later(st.sink.close)
	return nil
}
