package canal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// asText is a value as SELECT shows it: dates without the T and Z that events have.
func asText(v Value) string {
	switch v.Kind { //nolint:exhaustive // the others are shown as they are
	case KindInt:
		return strconv.FormatInt(v.Int(), 10)
	case KindUint:
		return strconv.FormatUint(v.Uint(), 10)
	case KindDateTime:
		return strings.Replace(string(v.Bytes), "T", " ", 1)
	case KindInstant:
		return strings.TrimSuffix(strings.Replace(string(v.Bytes), "T", " ", 1), "Z")
	case KindSet:
		var labels []string
		if err := json.Unmarshal(v.Bytes, &labels); err != nil {
			return err.Error()
		}
		return strings.Join(labels, ",")
	}
	return string(v.Bytes)
}

func asHex(v Value) string { return strings.ToUpper(hex.EncodeToString(v.Bytes)) }

// compactJSON takes the spaces out that MySQL puts between the parts of a document.
func compactJSON(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return err.Error() + ": " + text
	}
	return b.String()
}

// floatBits make equal numbers equal texts: the servers print doubles in their own way.
func floatBits(f float64) string { return strconv.FormatUint(math.Float64bits(f), 16) }

func geoJSON(v Value) string { return sameNumbers(string(v.Bytes)) }

func vectorHex(v Value) string {
	var numbers []float32
	if err := json.Unmarshal(v.Bytes, &numbers); err != nil {
		return err.Error()
	}
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
	}
	return strings.ToUpper(hex.EncodeToString(b))
}
