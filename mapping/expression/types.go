package expression

import (
	"github.com/binlogd/binlogd/canal"
)

// KindBool is the kind of truth values, beside those of columns: Bytes are true or false.
const KindBool canal.Kind = 0x80

// class is what the checker knows of a value before there is one.
type class uint8

const (
	classAny class = iota // of a column of unknown type, or one of several
	classNull
	classBool
	classNumber
	classText // ENUM, too
	classBinary
	classDate
	classDateTime
	classInstant
	classTime
	classSet
	classJSON
	classGeometry
	classVector
)

func (c class) String() string {
	switch c {
	case classAny:
		return "a value"
	case classNull:
		return "null"
	case classBool:
		return "a condition"
	case classNumber:
		return "a number"
	case classText:
		return "a text"
	case classBinary:
		return "bytes"
	case classDate:
		return "a DATE"
	case classDateTime:
		return "a DATETIME"
	case classInstant:
		return "a TIMESTAMP"
	case classTime:
		return "a TIME"
	case classSet:
		return "a SET"
	case classJSON:
		return "JSON"
	case classGeometry:
		return "a GEOMETRY"
	case classVector:
		return "a VECTOR"
	}
	return "unknown"
}

// valueType is the type of a part of an expression.
type valueType struct {
	class class
	// labels are those of an ENUM or SET, where known: other texts can never be equal.
	labels []string
}

// describe names the type to people.
func (t valueType) describe() string { return t.class.String() }

// columnType is the type of a column's values.
func columnType(c *canal.Column) valueType {
	kind, ok := c.ValueKind()
	if !ok {
		return valueType{}
	}
	t := valueType{class: classOf(kind)}
	if kind == canal.KindEnum || kind == canal.KindSet {
		t.labels = c.Labels
	}
	return t
}

func classOf(kind canal.Kind) class {
	switch kind { //nolint:exhaustive // absent values have no class
	case canal.KindNull:
		return classNull
	case canal.KindInt, canal.KindUint, canal.KindFloat, canal.KindDouble, canal.KindDecimal:
		return classNumber
	case canal.KindText, canal.KindEnum:
		return classText
	case canal.KindBinary:
		return classBinary
	case canal.KindDate:
		return classDate
	case canal.KindDateTime:
		return classDateTime
	case canal.KindInstant:
		return classInstant
	case canal.KindTime:
		return classTime
	case canal.KindSet:
		return classSet
	case canal.KindJSON:
		return classJSON
	case canal.KindGeometry:
		return classGeometry
	case canal.KindVector:
		return classVector
	case KindBool:
		return classBool
	}
	return classAny
}

// join is the type of a value that is of one of two types.
func join(a, b valueType) valueType {
	switch {
	case a.class == classNull:
		return b
	case b.class == classNull || a.class == b.class:
		return valueType{class: a.class}
	}
	return valueType{}
}
