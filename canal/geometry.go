package canal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Well-known binary: byte order 1, type 4, then by type; MySQL puts the SRID in four bytes
// before it. OGC 06-103r4, section 8.
const (
	wkbPoint              = 1
	wkbLineString         = 2
	wkbPolygon            = 3
	wkbMultiPoint         = 4
	wkbMultiLineString    = 5
	wkbMultiPolygon       = 6
	wkbGeometryCollection = 7

	sridBytes   = 4
	wkbHeader   = 5
	wkbMaxDepth = 64
)

var (
	errGeometryShort = errors.New("the geometry is cut off")
	errGeometryDeep  = errors.New("the geometry is nested too deeply")
)

// wkbReader renders well-known binary as GeoJSON (RFC 7946). Coordinates are in stored
// order, as ST_AsGeoJSON shows them.
type wkbReader struct {
	b     []byte
	order binary.ByteOrder
}

// appendGeoJSON renders a geometry in MySQL's storage format. The SRID has no place in
// GeoJSON and is left out.
func appendGeoJSON(dst, b []byte) ([]byte, error) {
	if len(b) < sridBytes {
		return dst, errGeometryShort
	}
	r := wkbReader{b: b[sridBytes:]}
	return r.geometry(dst, wkbMaxDepth)
}

func (r *wkbReader) geometry(dst []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return dst, errGeometryDeep
	}
	kind, err := r.header()
	if err != nil {
		return dst, err
	}
	name := wkbName(kind)
	if name == "" {
		return dst, fmt.Errorf("geometry type %d is unknown", kind)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, name...)
	if kind == wkbGeometryCollection {
		dst = append(dst, `","geometries":`...)
		dst, err = r.list(dst, wkbHeader, func(dst []byte) ([]byte, error) { return r.geometry(dst, depth-1) })
	} else {
		dst = append(dst, `","coordinates":`...)
		dst, err = r.coordinates(dst, kind)
	}
	return append(dst, '}'), err
}

func wkbName(kind uint32) string {
	switch kind {
	case wkbPoint:
		return "Point"
	case wkbLineString:
		return "LineString"
	case wkbPolygon:
		return "Polygon"
	case wkbMultiPoint:
		return "MultiPoint"
	case wkbMultiLineString:
		return "MultiLineString"
	case wkbMultiPolygon:
		return "MultiPolygon"
	case wkbGeometryCollection:
		return "GeometryCollection"
	}
	return ""
}

func (r *wkbReader) header() (kind uint32, err error) {
	if len(r.b) < wkbHeader {
		return 0, errGeometryShort
	}
	switch r.b[0] {
	case 0:
		r.order = binary.BigEndian
	case 1:
		r.order = binary.LittleEndian
	default:
		return 0, fmt.Errorf("geometry has byte order %d", r.b[0])
	}
	kind = r.order.Uint32(r.b[1:])
	r.b = r.b[wkbHeader:]
	return kind, nil
}

func (r *wkbReader) coordinates(dst []byte, kind uint32) ([]byte, error) {
	const pointBytes, countBytes = 16, 4
	switch kind {
	case wkbPoint:
		return r.point(dst)
	case wkbLineString:
		return r.list(dst, pointBytes, r.point)
	case wkbPolygon:
		return r.list(dst, countBytes, func(dst []byte) ([]byte, error) {
			return r.list(dst, pointBytes, r.point)
		})
	default: // the Multi types hold whole geometries of the type three below theirs
		member := kind - (wkbMultiPoint - wkbPoint)
		return r.list(dst, wkbHeader, func(dst []byte) ([]byte, error) {
			got, err := r.header()
			if err != nil {
				return dst, err
			}
			if got != member {
				return dst, fmt.Errorf("a %s holds geometry type %d", wkbName(kind), got)
			}
			return r.coordinates(dst, member)
		})
	}
}

// list renders a count and that many members, each of at least so many bytes.
func (r *wkbReader) list(dst []byte, least int, member func([]byte) ([]byte, error)) ([]byte, error) {
	if len(r.b) < 4 {
		return dst, errGeometryShort
	}
	count := int(r.order.Uint32(r.b))
	r.b = r.b[4:]
	if count > len(r.b)/least {
		return dst, errGeometryShort
	}
	dst = append(dst, '[')
	for i := range count {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = member(dst); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (r *wkbReader) point(dst []byte) ([]byte, error) {
	if len(r.b) < 16 {
		return dst, errGeometryShort
	}
	x := math.Float64frombits(r.order.Uint64(r.b))
	y := math.Float64frombits(r.order.Uint64(r.b[8:]))
	r.b = r.b[16:]
	dst, err := appendJSONDouble(append(dst, '['), x)
	if err != nil {
		return dst, err
	}
	dst, err = appendJSONDouble(append(dst, ','), y)
	return append(dst, ']'), err
}

// appendVector renders a VECTOR, little-endian 4-byte floats, as a JSON array with the
// shortest digits that read back as the same floats.
func appendVector(dst, b []byte) ([]byte, error) {
	if len(b)%4 != 0 {
		return dst, fmt.Errorf("a VECTOR of %d bytes is impossible", len(b))
	}
	dst = append(dst, '[')
	for i := 0; i < len(b); i += 4 {
		if i > 0 {
			dst = append(dst, ',')
		}
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, errJSONNumber
		}
		dst = strconv.AppendFloat(dst, v, 'g', -1, 32)
	}
	return append(dst, ']'), nil
}
