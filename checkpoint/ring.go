package checkpoint

import "fmt"

// ring is a queue of steps in commit order. Tickets count them from 1, for ever, so that
// one is found by its ticket alone.
type ring struct {
	steps []step // its length is 0 or a power of two
	first Ticket // of the front; 0 before the first push
	next  Ticket
}

const ringSize = 64 // steps to begin with

func (r *ring) len() int { return int(r.next - r.first) }

func (r *ring) slot(t Ticket) *step { return &r.steps[int(t)&(len(r.steps)-1)] }

func (r *ring) push(s step) Ticket {
	if r.next == 0 {
		r.first, r.next = 1, 1
	}
	if r.len() == len(r.steps) {
		r.grow()
	}
	t := r.next
	r.next++
	*r.slot(t) = s
	return t
}

func (r *ring) grow() {
	bigger := ring{steps: make([]step, max(ringSize, 2*len(r.steps)))}
	for t := r.first; t < r.next; t++ {
		*bigger.slot(t) = *r.slot(t)
	}
	r.steps = bigger.steps
}

func (r *ring) front() *step { return r.slot(r.first) }

func (r *ring) back() *step { return r.slot(r.next - 1) }

// pop drops the front and what it refers to.
func (r *ring) pop() {
	*r.front() = step{}
	r.first++
}

// at returns the step of a ticket, or nil when it has left the ring or is the zero
// Ticket. A ticket that was never given out is a mistake of the caller's.
func (r *ring) at(t Ticket) *step {
	if t >= r.next && t != 0 {
		panic(fmt.Sprintf("checkpoint: ticket %d was never given out", t))
	}
	if t < r.first || t == 0 {
		return nil
	}
	return r.slot(t)
}
