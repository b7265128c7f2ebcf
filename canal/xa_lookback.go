package canal

import (
	"context"
	"fmt"
	"slices"
)

// lookBack finds the XA transaction that was prepared last with an xid before a place: reading began between its PREPARE and its
// COMMIT. It reads the server's binlog files backwards from there, each from its beginning, as far as they go.
func (s *Source) lookBack(xid string, before place) (*heldXA, error) {
	s.waiting.Store(true) // the stream is not listened to meanwhile
	defer s.waiting.Store(false)
	b, err := OpenBinlogs(s.ctx, s.opts.Servers.Present(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // it only reads
	files, err := b.Files(s.ctx)
	if err != nil {
		return nil, err
	}
	last := slices.IndexFunc(files, func(f BinlogFile) bool { return f.Name == before.file })
	if last < 0 {
		return nil, fmt.Errorf("the server does not list %s any more, which is being read", before.file)
	}
	for i := last; i >= 0; i-- {
		s.opts.Logger.Info("looking back for the rows of an XA transaction that was prepared before the start", "xid", xid, "file", files[i].Name)
		h, err := b.preparedIn(s.ctx, files[:i+1], xid, before, s.opts.SpillDir)
		if h != nil || err != nil {
			return h, err
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// preparedIn reads the last of files up to a place, or to its end, and gives the XA transaction with an xid that is prepared there and
// not ended, or nil.
func (b *Binlogs) preparedIn(ctx context.Context, files []BinlogFile, xid string, before place, dir string) (*heldXA, error) {
	i := len(files) - 1
	w := b.newWalk(files, i, func(at place, _ begin) bool { return !at.before(before) })
	defer w.cutter.xa.close()
	w.keepXA, w.cutter.xa.dir = true, dir
	if _, err := b.run(ctx, w, files[i:]); err != nil {
		return nil, err
	}
	h, _ := w.cutter.xa.resolve(xid)
	return h, nil
}
