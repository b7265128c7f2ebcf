package canal

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseValue reads a value of the column from the text that events show for it: numbers in decimal, byte strings in base64, a SET as
// its labels joined by commas. A date and a time may have a space between them in the place of the T.
func (c *Column) ParseValue(text string) (Value, error) {
	kind, ok := c.ValueKind()
	if !ok {
		return Value{}, fmt.Errorf("column %s is of a type that is unknown to this version of binlogd", c.Name)
	}
	v, err := c.parseValue(kind, text)
	if err != nil {
		return Value{}, fmt.Errorf("%q is no value of column %s (%s): %w", text, c.Name, c.typeName(), err)
	}
	return v, nil
}

func (c *Column) parseValue(kind Kind, text string) (Value, error) {
	switch kind { //nolint:exhaustive // the rest is text
	case KindInt:
		n, err := strconv.ParseInt(text, 10, 64)
		return NewInt(n), numberError(err)
	case KindUint:
		n, err := strconv.ParseUint(text, 10, 64)
		return NewUint(n), numberError(err)
	case KindFloat:
		f, err := strconv.ParseFloat(text, 32)
		return NewFloat(float32(f)), numberError(err)
	case KindDouble:
		f, err := strconv.ParseFloat(text, 64)
		return NewDouble(f), numberError(err)
	case KindDecimal:
		padded, err := padFraction(text, int(c.Meta&0xff))
		return NewBytes(kind, []byte(padded)), err
	case KindEnum:
		if !slices.Contains(c.Labels, text) {
			return Value{}, fmt.Errorf("write one of %s", strings.Join(c.Labels, ", "))
		}
	case KindSet:
		return c.parseSet(text)
	case KindBinary:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return Value{}, errors.New("write it in base64, as events show it")
		}
		return NewBytes(kind, b), nil
	case KindJSON, KindGeometry, KindVector:
		if !json.Valid([]byte(text)) {
			return Value{}, errors.New("it is no JSON")
		}
	case KindDateTime:
		return c.parseTime(kind, strings.Replace(text, " ", "T", 1), "")
	case KindInstant:
		return c.parseTime(kind, strings.TrimSuffix(strings.Replace(text, " ", "T", 1), "Z"), "Z")
	case KindTime:
		return c.parseTime(kind, text, "")
	}
	return NewBytes(kind, []byte(text)), nil
}

// numberError says what is wrong without naming Go's functions.
func numberError(err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return errors.New("it is too large")
	}
	if err != nil {
		return errors.New("write a number")
	}
	return nil
}

// padFraction gives a number, or the seconds of a time, all digits of its fraction.
func padFraction(text string, digits int) (string, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > digits {
		return "", fmt.Errorf("at most %d digits follow its point", digits)
	}
	if strings.Trim(fraction, "0123456789") != "" || strings.Trim(whole, "+-0123456789:T") != "" || whole == "" {
		return "", errors.New("write it as events show it")
	}
	if digits == 0 {
		return whole, nil
	}
	return whole + "." + fraction + strings.Repeat("0", digits-len(fraction)), nil
}

// parseTime pads the seconds to the column's precision.
func (c *Column) parseTime(kind Kind, text, zone string) (Value, error) {
	padded, err := padFraction(text, int(c.Meta))
	return NewBytes(kind, []byte(padded+zone)), err
}

// parseSet makes a list of labels, in their order, of those that text joins by commas.
func (c *Column) parseSet(text string) (Value, error) {
	wanted := strings.Split(text, ",")
	labels := []string{}
	for _, label := range c.Labels {
		if slices.Contains(wanted, label) {
			labels = append(labels, label)
		}
	}
	if text != "" && len(labels) != len(wanted) {
		return Value{}, fmt.Errorf("write labels of %s, joined by commas", strings.Join(c.Labels, ", "))
	}
	list, err := json.Marshal(labels)
	return NewBytes(KindSet, list), err
}
