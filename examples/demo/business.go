package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The shop's business events, which the rules of examples/php-shop/binlogd.yaml make.
const (
	orderPlaced    = "order.placed"
	orderPaid      = "order.paid"
	orderCancelled = "order.cancelled"
	stockDeducted  = "stock.deducted"
)

var businessTypes = map[string]bool{orderPlaced: true, orderPaid: true, orderCancelled: true, stockDeducted: true}

// businessTopics are the topics of the business events, without the database.
var businessTopics = []string{"order", "inventory"}

// shopRules is the events section of the shop's configuration, for the demo's database.
func shopRules(module, database string) (string, error) {
	file := filepath.Join(module, "examples", "php-shop", "binlogd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the shop's rules: %w", err)
	}
	_, events, found := strings.Cut(string(text), "\nevents:\n")
	if !found {
		return "", fmt.Errorf("read the shop's rules: %s has no events section at its end", file)
	}
	return "events:\n" + strings.ReplaceAll(events, " shop.", " "+database+"."), nil
}

// business is what the business events say, and what says the same without them.
type business struct {
	What               string
	Committed, Claimed int
}

// businessOf compares the business events with the rows that were committed, and with what the shop says that it did.
func businessOf(committed map[change]int, distinct []*event, cancelled int) (all []business, complaints []string) {
	counts := map[string]int{}
	itemsPlaced, piecesPlaced, piecesDeducted, piecesCreated := 0, 0, 0, 0
	for _, e := range distinct {
		counts[e.Type]++
		switch {
		case e.Type == orderPlaced:
			items, ok := e.Data["items"].([]any)
			if !ok || len(items) == 0 {
				complaints = append(complaints, fmt.Sprintf("event %s: an order was placed without items", e.ID))
			}
			itemsPlaced += len(items)
			for _, item := range items {
				row, _ := item.(map[string]any)
				piecesPlaced += whole(row["quantity"])
			}
		case e.Type == stockDeducted:
			piecesDeducted += whole(e.Data["pieces"])
		case e.Table == "order_items" && e.Op == created:
			piecesCreated += whole(e.Row["quantity"])
		}
	}
	return []business{
		{orderPlaced + ": orders inserted", total(committed, "orders", created), counts[orderPlaced]},
		{orderPlaced + ": items in them", total(committed, "order_items", created), itemsPlaced},
		{orderPlaced + ": pieces in them", piecesCreated, piecesPlaced},
		{orderPaid + ": payments inserted", total(committed, "payments", created), counts[orderPaid]},
		{orderCancelled + ": as the shop counts", cancelled, counts[orderCancelled]},
		{stockDeducted + ": items inserted", total(committed, "order_items", created), counts[stockDeducted]},
		{stockDeducted + ": pieces", piecesCreated, piecesDeducted},
	}, complaints
}

func whole(v any) int {
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil {
		return 0
	}
	return int(n)
}

// printBusiness shows what the business events say.
func (st *stage) printBusiness(all []business) {
	s := st.story
	fmt.Fprintf(s.out, "\n   %s\n", s.paint("2", fmt.Sprintf("%-40s%12s%12s", "business events, by rules alone", "committed", "published")))
	for _, b := range all {
		fmt.Fprintf(s.out, "   %-40s%12s%12s  %s\n", b.What, count(b.Committed), count(b.Claimed), s.mark(b.Committed == b.Claimed))
	}
}
