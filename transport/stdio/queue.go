package stdio

import "bytes"

// Invariants of this file. Each has a test named after it.
//
//	W1  What next returns is at most maxWrite bytes, and holds at most one message
//	    of each request that may still be cancelled.
//	W2  withdraw takes out every notification of its request that next has not
//	    returned a part of, and nothing else.

// queue is a run of lines, and which of them may still be withdrawn.
type queue struct {
	b     []byte
	taken int    // bytes of b that next has returned
	marks []mark // in order of place
	gone  int    // how many marks next has passed
	round uint64 // counts calls of next that met marks, to tell who was met in this one
	torn  mark   // the line that next has returned a part of, if it had a mark
}

// mark says whose line stands at [from, to).
type mark struct {
	r        *reply
	from, to int
}

func (q *queue) size() int { return len(q.b) - q.taken }

// push appends msg as a line. With r the line is a message of r that is not its
// last.
func (q *queue) push(msg []byte, r *reply) {
	from := len(q.b)
	q.b = append(q.b, msg...)
	q.b = append(q.b, '\n')
	if r != nil {
		q.marks = append(q.marks, mark{r, from, len(q.b)})
	}
}

// next returns what is to be written next; nothing if there is nothing.
func (q *queue) next() []byte {
	to := min(len(q.b), q.taken+maxWrite)
	if len(q.marks) > q.gone {
		to = q.pass(to)
	}
	part := q.b[q.taken:to:to]
	q.taken = to
	return part
}

// pass drops the marks of lines that begin before to, and returns where the second
// message of one request begins, if that is sooner.
func (q *queue) pass(to int) int {
	q.round++
	now := meeting{q, q.round}
	if q.torn.to > q.taken {
		q.torn.r.met = now
	}
	for _, m := range q.marks[q.gone:] {
		if m.from >= to {
			break
		}
		if !m.r.settled {
			if m.r.met == now {
				to = m.from
				break
			}
			m.r.met = now
		}
		if m.to > to {
			q.torn = m
		}
		q.gone++
	}
	return to
}

// meeting is a call of next.
type meeting struct {
	q     *queue
	round uint64
}

// withdraw takes out the notifications of r. Requests to the client stay, and so
// do the cancels that take them back, since one without the other would be wrong.
func (q *queue) withdraw(r *reply) {
	cut, from := 0, 0 // bytes taken out so far, and where what follows them stands
	kept := q.marks[:q.gone]
	for _, m := range q.marks[q.gone:] {
		if m.r == r && isPassing(q.b[m.from:m.to]) {
			if cut > 0 { // what stands before the first is being written, perhaps
				copy(q.b[from-cut:], q.b[from:m.from]) // each byte moves once, however many lines go
			}
			cut, from = cut+m.to-m.from, m.to
			continue
		}
		m.from -= cut
		m.to -= cut
		kept = append(kept, m)
	}
	if cut == 0 {
		return
	}
	copy(q.b[from-cut:], q.b[from:])
	q.b = q.b[:len(q.b)-cut]
	clear(q.marks[len(kept):])
	q.marks = kept
}

// isPassing reports whether line is a notification that nobody misses once its
// request is cancelled.
func isPassing(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","method":"`))
	return ok && !bytes.HasPrefix(rest, []byte(`notifications/cancelled"`))
}

// reset empties q and keeps its buffers, unless they are large.
func (q *queue) reset() {
	clear(q.marks)
	q.b, q.taken, q.marks, q.gone, q.torn = q.b[:0], 0, q.marks[:0], 0, mark{}
	if cap(q.b) > maxKept {
		q.b = nil
	}
	if cap(q.marks) > maxKept/64 {
		q.marks = nil
	}
}
