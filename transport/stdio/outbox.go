package stdio

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Invariants of this file. Each has a test named after it.
//
//	O1  Lines are written whole and one after the other, in the order of put.
//	O2  put waits for room only where its caller may wait; memory is bounded
//	    in either case.
//	O3  A peer that takes nothing for the timeout is given up.
//	O4  After failure nothing is written any more, and nobody waits.

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
	w       io.Writer
	max     int           // bytes that may be pending before handlers wait
	timeout time.Duration // 0: none

	blocked  atomic.Int64  // callers of put that wait; changed under mu
	failed   chan struct{} // closed by failLocked
	progress atomic.Uint64 // writes that ended; changed by flush

	mu       sync.Mutex    // guards the fields below; not held while w is called
	pending  []byte        // lines to be written
	writing  int           // bytes being written, taken out of pending
	spare    []byte        // an empty buffer for the next pending
	flushing bool          // flush runs; set by put, cleared by flush
	failure  error         // why nothing is written any more; set once
	room     chan struct{} // closed when there may be room again; nil if nobody waits
	idle     chan struct{} // closed when flush ends; nil if nobody waits
	watch    *time.Timer   // looks for a stalled write; nil before the first
	watching bool          // watch is armed
	seen     uint64        // progress when watch looked last
	still    int           // how often it saw the same
}

func newOutbox(w io.Writer, max int, timeout time.Duration) *outbox {
	return &outbox{w: w, max: max, timeout: timeout, failed: make(chan struct{})}
}

// put queues msg as a line. wait says that the caller may be kept waiting while
// the peer does not read, until gone, which may be nil, reports true.
func (o *outbox) put(msg []byte, wait bool, gone func() bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for wait && o.failure == nil && len(o.pending)+o.writing >= o.max {
		if gone != nil && gone() {
			return nil
		}
		o.waitLocked()
	}
	if o.failure == nil && !wait && len(o.pending)+o.writing >= 2*o.max {
		o.failLocked(ErrFlooded)
	}
	if o.failure != nil {
		return o.failure
	}
	o.pending = append(o.pending, msg...)
	o.pending = append(o.pending, '\n')
	if !o.flushing {
		o.flushing = true
		o.watchLocked()
		go o.flush()
	}
	return nil
}

// waitLocked waits until there may be room.
func (o *outbox) waitLocked() {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	room := o.room
	o.blocked.Add(1)
	o.mu.Unlock()
	<-room
	o.mu.Lock()
	o.blocked.Add(-1)
}

// wake makes all who wait for room look again.
func (o *outbox) wake() {
	o.mu.Lock()
	o.wakeLocked()
	o.mu.Unlock()
}

func (o *outbox) wakeLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// flush writes until nothing is pending.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.pending) > 0 && o.failure == nil {
		b := o.pending
		o.pending, o.spare = o.spare[:0], nil
		o.writing = len(b)
		o.writeLocked(b)
		o.writing = 0
		if cap(b) <= maxKept {
			o.spare = b[:0]
		}
	}
	o.flushing = false
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
}

// writeLocked writes b with mu released.
func (o *outbox) writeLocked(b []byte) {
	for len(b) > 0 && o.failure == nil {
		part := b[:min(len(b), maxWrite)]
		o.mu.Unlock()
		n, err := o.w.Write(part)
		o.progress.Add(1)
		o.mu.Lock()
		if err == nil && n < len(part) {
			err = io.ErrShortWrite
		}
		if err != nil {
			o.failLocked(fmt.Errorf("stdio: write: %w", err))
			return
		}
		b = b[n:]
		o.writing -= n
		if len(o.pending)+o.writing <= o.max/2 {
			o.wakeLocked()
		}
	}
}

// watchLocked arms the timer that finds a stalled write. It looks on while
// there is something to write, and costs nothing for each write.
func (o *outbox) watchLocked() {
	if o.timeout <= 0 || o.watching {
		return
	}
	o.watching, o.seen, o.still = true, o.progress.Load(), 0
	if o.watch == nil {
		o.watch = time.AfterFunc(o.timeout/4, o.look)
		return
	}
	o.watch.Reset(o.timeout / 4)
}

func (o *outbox) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.flushing || o.failure != nil {
		o.watching = false
		return
	}
	if now := o.progress.Load(); now != o.seen {
		o.seen, o.still = now, 0
	} else if o.still++; o.still >= 4 {
		o.watching = false
		o.failLocked(ErrStalled)
		return
	}
	o.watch.Reset(o.timeout / 4)
}

// fail ends the output. A write that is under way is interrupted, where that
// is possible.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	o.failLocked(err)
	o.mu.Unlock()
}

func (o *outbox) failLocked(err error) {
	if o.failure != nil {
		return
	}
	o.failure = err
	o.pending = nil
	close(o.failed)
	o.wakeLocked()
	if o.watch != nil {
		o.watch.Stop()
	}
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

// finish writes what is pending, for as long as until is not closed, and ends
// the output.
func (o *outbox) finish(until <-chan time.Time) {
	if idle := o.idling(); idle != nil {
		select {
		case <-idle:
		case <-until:
		}
	}
	o.fail(errEnded)
}

// idling returns a channel that is closed when nothing is left to write; nil
// when that is so already.
func (o *outbox) idling() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.flushing {
		return nil
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	return o.idle
}
