package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// tables are rows by table and key.
type tables map[string]map[string]map[string]any

// fold applies events, each once and in the given order, the way a consumer keeps a
// copy of the tables. Its complaints are about events that do not fit the rows before
// them: a change of a row that is not there, or an old value that it never had.
func fold(events []*event) (state tables, complaints []string) {
	state = tables{}
	for _, e := range events {
		rows := state[e.Table]
		if rows == nil {
			rows = map[string]map[string]any{}
			state[e.Table] = rows
		}
		before, exists := rows[e.Key]
		if exists == (e.Op == created) {
			complaints = append(complaints, fmt.Sprintf("%s.%s of row %s (%s): the events before it say the row exists: %t", e.Table, e.Op, e.Key, e.GTID, exists))
		}
		for column, old := range e.Old {
			if exists && !reflect.DeepEqual(before[column], old) {
				complaints = append(complaints, fmt.Sprintf("%s.%s of row %s (%s): old %s is %v, the events before it say %v", e.Table, e.Op, e.Key, e.GTID, column, old, before[column]))
			}
		}
		if e.Op == deleted {
			delete(rows, e.Key)
			continue
		}
		rows[e.Key] = e.Row
	}
	return state, complaints
}

// compare lists the rows that differ between the database and the folded events.
func compare(database, folded tables) (differences []string) {
	for table, rows := range database {
		for key, row := range rows {
			other, exists := folded[table][key]
			if !exists {
				differences = append(differences, fmt.Sprintf("%s row %s is in the database and not in the events", table, key))
				continue
			}
			if !reflect.DeepEqual(row, other) {
				differences = append(differences, fmt.Sprintf("%s row %s: the database has %s, the events say %s", table, key, compact(row), compact(other)))
			}
		}
	}
	for table, rows := range folded {
		for key := range rows {
			if _, exists := database[table][key]; !exists {
				differences = append(differences, fmt.Sprintf("%s row %s is in the events and not in the database", table, key))
			}
		}
	}
	slices.Sort(differences)
	return differences
}

func (t tables) rows() int {
	n := 0
	for _, rows := range t {
		n += len(rows)
	}
	return n
}

func compact(row map[string]any) string {
	text, err := json.Marshal(row)
	if err != nil {
		return fmt.Sprint(row)
	}
	return string(text)
}
