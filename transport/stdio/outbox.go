package stdio

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Invariants of this file. Each has a test named after it.
//
//	O1  Lines are written whole and one after the other, in the order of put.
//	O2  put waits for room only where its caller may wait, and what is pending
//	    is bounded in either case.
//	O3  After failure nothing is written any more, and nobody waits.
//	O4  From the return of silence on, at most one message of the request that was
//	    put before is written, and none that is put after.

var (
	// ErrStalled is returned when the peer took nothing of what was written to it
	// for [Options.WriteTimeout].
	ErrStalled = errors.New("stdio: the peer has stopped reading")

	// ErrFlooded is returned when the peer went on sending, but left unread
	// twice what [Options.MaxPending] allows.
	ErrFlooded = errors.New("stdio: the peer sends without reading")

	// errEnded is what put returns after the service has ended.
	errEnded = errors.New("stdio: the stream is no longer served")
)

const (
	// maxWrite bounds one write, in bytes, so that a large output shows progress.
	maxWrite = 64 << 10
	// maxKept bounds the buffers that are kept for reuse, in bytes.
	maxKept = 256 << 10
)

// outbox is the output of a stream: lines that wait, and whoever writes them. A
// goroutine exists while there is something to write, so that neither the
// reading goroutine nor a handler is held up by the peer.
type outbox struct {
	w      io.Writer
	max    int           // bytes that may be pending before handlers wait
	stall  *stall        // gives up a peer that takes nothing; nil: never
	failed chan struct{} // closed by failLocked

	blocked atomic.Int64 // callers of put that wait; changed under mu

	mu       sync.Mutex    // guards the fields below and parts of reply; not held while w is called
	pending  *queue        // takes what is put
	current  *queue        // what flush writes; empty while it does not run
	writing  int           // bytes of current that are being written
	flushing bool          // flush runs; set by put, cleared by flush
	failure  error         // why nothing is written any more; set once, by failLocked
	idle     chan struct{} // closed when flush ends; nil if nobody waits

	waiting map[*reply]struct{} // those whose room is not nil
}

func newOutbox(w io.Writer, max int, timeout time.Duration) *outbox {
	o := &outbox{w: w, max: max, failed: make(chan struct{}), pending: &queue{}, current: &queue{}}
	if timeout > 0 {
		o.stall = newStall(timeout, func() { o.fail(ErrStalled) })
	}
	return o
}

// put queues a message. r is the request that it belongs to; a caller with one
// waits for room while the peer does not read, if r says that it may.
func (o *outbox) put(msg []byte, r *reply, last bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := r != nil && r.waits()
	for wait && o.failure == nil && !r.silent && o.sizeLocked() >= o.max {
		o.waitLocked(r)
	}
	if o.failure == nil && !wait && o.sizeLocked() >= 2*o.max {
		o.failLocked(ErrFlooded)
	}
	switch {
	case o.failure != nil:
		return o.failure
	case r == nil || last:
		o.pending.push(msg, nil)
	case !r.silent:
		o.pending.push(msg, r)
	}
	if r != nil && last {
		r.settled = true
	}
	if !o.flushing && o.pending.size() > 0 {
		o.flushing = true
		o.stall.begin()
		go o.flush()
	}
	return nil
}

// silence ends r without an answer: of what it has put, only what is being
// written is written.
func (o *outbox) silence(r *reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.silent = true
	o.current.withdraw(r)
	o.pending.withdraw(r)
	if o.sizeLocked() <= o.max/2 {
		o.wakeLocked()
		return
	}
	// Only r's own: when thousands are silenced at once, each of them waking all the others
	// would keep the end of the service waiting.
	delete(o.waiting, r)
	r.wakeLocked()
}

func (o *outbox) sizeLocked() int { return o.pending.size() + o.current.size() + o.writing }

// waitLocked waits until there may be room, or r is silenced.
func (o *outbox) waitLocked(r *reply) {
	if r.room == nil {
		r.room = make(chan struct{})
		if o.waiting == nil {
			o.waiting = map[*reply]struct{}{}
		}
		o.waiting[r] = struct{}{}
	}
	room := r.room
	o.blocked.Add(1)
	o.mu.Unlock()
	<-room
	o.mu.Lock()
	o.blocked.Add(-1)
}

// wakeLocked wakes all that wait for room.
func (o *outbox) wakeLocked() {
	for r := range o.waiting {
		r.wakeLocked()
	}
	clear(o.waiting)
}

func (r *reply) wakeLocked() {
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

// flush writes until nothing is pending.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.pending.size() > 0 && o.failure == nil {
		// Handlers that are about to answer go first, so that what they put leaves in
		// the same write. This halves the cost of many short calls.
		o.mu.Unlock()
		runtime.Gosched()
		o.mu.Lock()
		o.pending, o.current = o.current, o.pending
		for o.current.size() > 0 && o.failure == nil {
			o.writeLocked(o.current.next())
		}
		o.current.reset()
	}
	o.flushing = false
	o.stall.end()
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
}

// writeLocked writes b with mu released.
func (o *outbox) writeLocked(b []byte) {
	o.writing = len(b)
	o.mu.Unlock()
	n, err := o.w.Write(b)
	o.mu.Lock()
	o.writing = 0
	o.stall.progress()
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.failLocked(fmt.Errorf("stdio: write: %w", err))
		return
	}
	if o.sizeLocked() <= o.max/2 {
		o.wakeLocked()
	}
}

// fail ends the output. A write that is under way is interrupted, where that
// is possible.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

func (o *outbox) failLocked(err error) {
	if o.failure != nil {
		return
	}
	o.failure = err
	o.pending.reset()
	close(o.failed)
	o.wakeLocked()
	if o.flushing {
		interruptWrite(o.w)
	}
}

// err returns why nothing is written any more.
func (o *outbox) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failure
}

// finish writes what is pending, for at most d, and ends the output. It reports
// whether nobody writes any more, which is not so when a Write cannot be
// interrupted.
func (o *outbox) finish(d time.Duration) bool {
	o.awaitIdle(d)
	o.fail(errEnded)
	return o.awaitIdle(interruptGrace)
}

// awaitIdle waits until nothing is left to write, for at most d.
func (o *outbox) awaitIdle(d time.Duration) bool {
	o.mu.Lock()
	if !o.flushing {
		o.mu.Unlock()
		return true
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-idle:
		return true
	case <-t.C:
		return false
	}
}
