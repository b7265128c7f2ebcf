package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} by the variable's value and ${NAME:-default} by the default
// where the variable is unset or empty; $$ stands for one dollar sign, and any other
// dollar sign for itself. What a variable holds is not expanded again.
func expand(text string, variables func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), nil
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
			continue
		case !strings.HasPrefix(rest, "{"):
			b.WriteByte('$')
			text = rest
			continue
		}
		reference, after, closed := strings.Cut(rest[1:], "}")
		if !closed {
			return "", errors.New("${ without its }: write ${NAME}, or $$ for a dollar sign")
		}
		name, fallback, hasFallback := strings.Cut(reference, ":-")
		if !variableName.MatchString(name) {
			return "", errors.New("${…} does not hold the name of an environment variable: write ${NAME} or ${NAME:-default}, or $$ for a dollar sign")
		}
		value, set := variables(name)
		switch {
		case hasFallback && value == "":
			value = fallback
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set: set it, or write ${%s:-default}", name, name)
		}
		b.WriteString(value)
		text = after
	}
}

// size is a number of bytes, written as 512, 64KiB, 16MiB or 1GiB.
type size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size.
func (s *size) UnmarshalText(text []byte) error {
	wrong := errors.New("write a size such as 512KiB, 16MiB or 1GiB")
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(string(text), unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit.bytes {
			return wrong
		}
		*s = size(n * unit.bytes)
		return nil
	}
	return wrong
}

func (s size) String() string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		for _, u := range sizeUnits {
			if u.suffix == unit && s != 0 && int64(s)%u.bytes == 0 {
				return strconv.FormatInt(int64(s)/u.bytes, 10) + unit
			}
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
