package canal

import "errors"

var errPartialBefore = errors.New("a partial JSON update comes without the value before it; SET GLOBAL binlog_row_value_options='', or binlog_row_image=FULL")

// readPartialUpdate reads a row of PARTIAL_UPDATE_ROWS: JSON values of its After image may be
// differences to those of its Before image.
func (r *Rows) readPartialUpdate() error {
	e := &r.event
	beforeImage := e.data
	rest, err := r.readImage(&e.first, r.before, e.data)
	if err != nil {
		return err
	}
	bits, rest, err := readPartialBits(e.table, rest)
	if err != nil {
		return r.fail(e.table, nil, err)
	}
	if len(bits) == 0 {
		e.data, err = r.readImage(&e.second, r.after, rest)
		return err
	}
	afterImage := rest
	if rest, err = skipImage(e.table, &e.second, afterImage); err != nil {
		return r.fail(e.table, nil, err)
	}
	e.data = rest

	// The images are sound now: walk over both together.
	before := newImageWalk(e.table, &e.first, beforeImage)
	after := newImageWalk(e.table, &e.second, afterImage)
	jsonPlace := 0
	for i := range r.after {
		f := &e.table.fields[i]
		partial := false
		if f.code == codeJSON {
			partial = bitSet(bits, jsonPlace)
			jsonPlace++
		}
		old, oldNull, oldHere := before.next(i)
		b, null, here := after.next(i)
		switch {
		case !here:
			r.after[i] = Value{}
		case null:
			r.after[i] = Value{Kind: KindNull}
		case partial && (!oldHere || oldNull):
			err = errPartialBefore
		case partial:
			err = r.d.readPartialJSON(&r.after[i], old[f.prefix:], b[f.prefix:])
		default:
			_, err = r.d.readValue(&r.after[i], f, b)
		}
		if err != nil {
			return r.fail(e.table, &e.table.table.Columns[i], err)
		}
	}
	return nil
}

func (d *Decoder) readPartialJSON(v *Value, before, diffs []byte) error {
	start := len(d.text)
	var err error
	if d.text, err = appendJSONDiffs(d.text, before, diffs); err != nil {
		return err
	}
	*v = Value{Kind: KindJSON, Bytes: d.text[start:len(d.text):len(d.text)]}
	return nil
}

// imageWalk goes over a row image column by column. The image was checked before.
type imageWalk struct {
	table *tableMap
	image *image
	nulls []byte
	place int
	b     []byte
}

func newImageWalk(t *tableMap, im *image, b []byte) imageWalk {
	return imageWalk{table: t, image: im, nulls: b[:im.nulls], b: b[im.nulls:]}
}

// next gives the bytes of column i, which is the next one, with the length before them.
func (w *imageWalk) next(i int) (b []byte, null, here bool) {
	if !bitSet(w.image.present, i) {
		return nil, false, false
	}
	null = bitSet(w.nulls, w.place)
	w.place++
	if null {
		return nil, true, true
	}
	f := &w.table.fields[i]
	n := f.size
	if f.prefix > 0 {
		n = int(f.prefix) + prefixedLength(w.b, int(f.prefix))
	}
	b = w.b[:n]
	w.b = w.b[n:]
	return b, false, true
}
