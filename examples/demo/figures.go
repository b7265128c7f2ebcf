package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// figure is a number that the shop's owner knows, computed by the database and from
// the events alone.
type figure struct {
	Name             string
	Database, Events string
}

// figures asks the database for the shop's key figures and computes them from the
// folded events.
func figures(ctx context.Context, db *sql.DB, database string, folded tables) ([]figure, error) {
	questions := []struct {
		name, query string
		answer      func() string
	}{
		{
			"orders by status",
			"SELECT GROUP_CONCAT(n ORDER BY n SEPARATOR ', ') FROM (SELECT CONCAT(status, ' ', COUNT(*)) AS n FROM `%s`.orders GROUP BY status) AS counts",
			func() string { return countBy(folded["orders"], "status") },
		},
		{
			"money received",
			"SELECT COALESCE(SUM(amount), 0) FROM `%s`.payments WHERE status = 'succeeded'",
			func() string {
				return sum(folded["payments"], "amount", 2, func(row map[string]any) bool { return row["status"] == "succeeded" })
			},
		},
		{
			"points given",
			"SELECT COALESCE(SUM(delta), 0) FROM `%s`.points",
			func() string { return sum(folded["points"], "delta", 0, nil) },
		},
		{
			"pieces in stock",
			"SELECT COALESCE(SUM(quantity), 0) FROM `%s`.stock",
			func() string { return sum(folded["stock"], "quantity", 0, nil) },
		},
	}
	var all []figure
	for _, question := range questions {
		var answer sql.NullString
		if err := db.QueryRowContext(ctx, fmt.Sprintf(question.query, database)).Scan(&answer); err != nil {
			return nil, fmt.Errorf("ask the database for %s: %w", question.name, err)
		}
		all = append(all, figure{question.name, answer.String, question.answer()})
	}
	return all, nil
}

// countBy counts rows by a column's value: "paid 3, shipped 5".
func countBy(rows map[string]map[string]any, column string) string {
	counts := map[string]int{}
	for _, row := range rows {
		counts[fmt.Sprint(row[column])]++
	}
	var parts []string
	for value, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", value, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// sum adds a column up exactly, over the rows that are wanted, nil for all.
func sum(rows map[string]map[string]any, column string, decimals int, wanted func(map[string]any) bool) string {
	sum := new(big.Rat)
	for _, row := range rows {
		if wanted != nil && !wanted(row) {
			continue
		}
		value, ok := new(big.Rat).SetString(fmt.Sprint(row[column]))
		if !ok {
			return fmt.Sprintf("%v is no number", row[column])
		}
		sum.Add(sum, value)
	}
	return sum.FloatString(decimals)
}
