package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fieldOf finds the field that bears a YAML key, also in embedded structs.
func fieldOf(s reflect.Value, key string) (reflect.Value, bool) {
	for i := range s.NumField() {
		field := s.Type().Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if f, ok := fieldOf(s.Field(i), key); ok {
				return f, true
			}
			continue
		}
		if name := yamlName(field); name != "" && name == key {
			return s.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// keysOf lists the YAML keys of a struct in the order of its fields.
func keysOf(t reflect.Type) []string {
	var keys []string
	for field := range t.Fields() {
		switch name := yamlName(field); {
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			keys = append(keys, keysOf(field.Type)...)
		case name != "":
			keys = append(keys, name)
		}
	}
	return keys
}

func yamlName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	if name == "-" || !field.IsExported() {
		return ""
	}
	return name
}

// suggestion is the nearest of the known keys, or all of them where none is near.
func suggestion(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; known here: " + strings.Join(known, ", ")
}

// nearest is the known word with the smallest edit distance, if that is at most a third
// of its length (2 for short words).
func nearest(word string, known []string) string {
	best, bestDistance := "", 0
	for _, k := range known {
		d := editDistance(strings.ToLower(word), strings.ToLower(k))
		if d <= max(2, len(k)/3) && d < len(k) && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], slices.Min([]int{diagonal + cost, row[j] + 1, row[j+1] + 1})
		}
	}
	return row[len(b)]
}
