package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
)

// Invariants of this file. Each has a test named after it.
//
//	R1  Nothing is written to a response after its ServeHTTP has returned.
//	R2  A dropped response cancels its request, in whatever form it is answered.
//	R3  A response becomes an event stream only for a client that accepts one.
//	R4  A silenced request writes no message after the one that was being written.

// reply is the server.Reply of a request that belongs to no session: all those
// of the stateless era, and those of the handshake era where there are no
// sessions. It is answered on the connection that brought it, or not at all.
//
// Fields of the first block are set by newReply and never changed.
type reply struct {
	handler   *Handler
	context   context.Context // ends when the client drops the response
	extra     server.Extra
	stateless bool // which era's status codes hold
	json      bool // the answer may be plain JSON
	stream    bool // the response may become an event stream
	eager     bool // and does so whatever comes, errors that have a status of their own excepted

	calls []*server.Call  // accepted; appended by start, before any of them runs
	one   [1]*server.Call // where calls are kept unless it is a batch
	apart bool            // they run on goroutines of their own, not on ServeHTTP's; set by newReply and start

	silenced atomic.Bool                 // set by Silence
	unwatch  atomic.Pointer[func() bool] // stops the watch for a drop; nil before it began; set by watch

	mu    sync.Mutex // guards the fields below; held while the response is written to
	sink  sink
	ended bool          // nothing may be written any more, but by finish
	over  chan struct{} // closed when ended; nil unless calls run apart
	slow  bool          // the call has taken for longer than watchAfter; set by tick
	lull  alarm         // calls tick first
	timer *time.Timer   // calls tick from then on; nil before it is needed
}

// watchAfter is how long a call may take before anybody looks whether its client
// is still there, unless its handler begins to wait for that sooner. Most calls
// never have to pay for the watch.
const watchAfter = 20 * time.Millisecond

func newReply(h *Handler, p *post, stateless bool) *reply {
	// The answer to a subscription is an event stream by its nature.
	subscription := stateless && p.msg.Method == "subscriptions/listen"
	mode := h.options.Response
	r := &p.reply
	*r = reply{
		handler:   h,
		context:   p.r.Context(),
		extra:     p.extra(),
		stateless: stateless,
		json:      p.accepts.json,
		stream:    p.accepts.stream && (mode != JSON || !p.accepts.json || subscription),
		eager:     p.accepts.stream && mode == Stream,
		// A response over HTTP/2 ends only when ServeHTTP returns, whatever was written.
		apart: p.r.ProtoMajor != 1,
		sink:  h.newSink(p.w, p.r),
	}
	return r
}

// start takes a call that the server has accepted. It runs on the goroutine
// that reads, before any call does.
func (r *reply) start(c *server.Call) {
	if r.calls == nil {
		r.calls = r.one[:0]
	}
	r.calls = append(r.calls, c)
	// Where the runtime may have to answer for a handler that does not return, the
	// response must be able to end before it.
	r.apart = r.apart || len(r.calls) > 1 || c.Limited()
}

// serve runs what was accepted and returns when the response is complete, or when
// nobody waits for it any more.
func (r *reply) serve() {
	defer r.finish() // also when a ResponseWriter of somebody's middleware panics
	if len(r.calls) > 0 {
		r.arm()
		if r.apart {
			r.runApart()
		} else {
			r.calls[0].OnWait(r.watch)
			r.calls[0].Run()
		}
	}
}

// watch begins to watch for a drop of the response, once. It is called by the first
// who waits for the call's cancellation, or by the timer for handlers that only
// poll. It must not take mu: whoever waits cannot wait for a slow client.
func (r *reply) watch() {
	if r.unwatch.Load() != nil {
		return
	}
	stop := context.AfterFunc(r.context, r.dropped)
	if !r.unwatch.CompareAndSwap(nil, &stop) {
		stop() // somebody else was faster
	}
}

// arm sees to it that the client is watched, the stream committed and kept alive.
func (r *reply) arm() {
	r.mu.Lock()
	defer r.unlock()
	if r.apart {
		r.over = make(chan struct{})
		if r.ended { // cancelled before it was started
			close(r.over)
		}
	}
	if after := r.handler.options.StreamAfter; r.stream && after > 0 && after < watchAfter {
		r.tickAfterLocked(after)
		return
	}
	r.handler.lulls.set(&r.lull, r)
}

// ring is called when the call has taken watchAfter.
func (r *reply) ring() { go r.tick() }

// tickAfterLocked has tick called after d.
func (r *reply) tickAfterLocked(d time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(d, r.tick)
		return
	}
	r.timer.Reset(d)
}

// runApart runs the calls on goroutines of their own and waits for the end of
// the response, not for theirs.
func (r *reply) runApart() {
	for _, c := range r.calls {
		go c.Run()
	}
	select {
	case <-r.over:
	case <-r.context.Done():
		r.dropped()
	}
}

// finish sees to it that nobody writes any more (R1).
func (r *reply) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
	if r.silenced.Load() && r.context.Err() == nil {
		r.closeEmptyLocked()
	}
	r.sink.close()
	r.lull.unset()
	if r.timer != nil {
		r.timer.Stop()
	}
	// A watch that begins only now, on a goroutine that the handler has left behind, meets
	// calls that have ended, and ends with the request's context.
	if stop := r.unwatch.Load(); stop != nil {
		(*stop)()
	}
}

// tick is called after a while: first to begin watching the client, then to commit
// a stream for a call that stays silent, then to keep the stream alive.
func (r *reply) tick() {
	if !r.mu.TryLock() {
		time.AfterFunc(watchAfter, r.tick) // somebody is writing, so the response is not silent
		return
	}
	defer r.unlock()
	if r.ended {
		return
	}
	o := &r.handler.options
	switch {
	case !r.slow:
		r.slow = true
		if !r.apart {
			r.watch() // runApart does so itself
		}
		if r.eager {
			r.commitLocked()
		}
		if r.stream && r.sink.phase == sinkFresh && o.StreamAfter > 0 {
			r.tickAfterLocked(max(o.StreamAfter-watchAfter, 0))
			return
		}
	case r.sink.phase == sinkFresh:
		r.commitLocked()
	case time.Since(r.sink.written) >= o.KeepAlive:
		r.failed(r.sink.comment())
	}
	if r.sink.phase == sinkStreaming && o.KeepAlive > 0 {
		r.tickAfterLocked(o.KeepAlive - time.Since(r.sink.written))
	}
}

// dropped cancels the calls of a response that the client has closed (R2).
func (r *reply) dropped() {
	for _, c := range r.calls {
		c.Cancel(cancellation.Disconnect, "the client closed the response")
	}
}

// failed deals with a client that cannot be written to. The cancel must not come
// from within a Send.
func (r *reply) failed(err error) {
	if err != nil {
		go r.dropped()
	}
}

// commitLocked turns the response into an event stream (R3). What keeps it
// alive is the timer, which was set for less, or is set when it fires.
func (r *reply) commitLocked() {
	if r.beginLocked() {
		r.failed(r.sink.flush())
	}
}

// beginLocked is commitLocked without the sending: for an event that follows at once.
func (r *reply) beginLocked() bool {
	if !r.stream || r.sink.phase != sinkFresh {
		return false
	}
	r.sink.begin(nil)
	if r.slow && r.handler.options.KeepAlive > 0 {
		r.tickAfterLocked(r.handler.options.KeepAlive)
	}
	return true
}

// Send implements server.Reply.
func (r *reply) Send(msg []byte) error {
	r.mu.Lock()
	defer r.unlock()
	switch {
	case r.ended || r.silenced.Load():
		return errStreamGone
	case r.sink.phase == sinkFresh && !r.stream:
		return errNoStream
	}
	r.beginLocked()
	err := r.sink.event("", msg)
	r.failed(err)
	return err
}

// Answer implements server.Reply.
func (r *reply) Answer(msg []byte, code int) {
	r.mu.Lock()
	defer r.unlock()
	if r.ended || r.silenced.Load() {
		return
	}
	if r.sink.phase == sinkFresh && (r.json && !r.eager || code != 0) {
		if len(r.calls) > 0 && !r.apart && !r.calls[0].Returned() {
			// The handler goes on, and with it this ServeHTTP: until it returns the
			// connection can serve nothing else.
			r.sink.w.Header().Set("Connection", "close")
		}
		// A client that is gone learns nothing, and has nothing running any more.
		_ = r.sink.json(statusOf(code, r.stateless, len(r.calls) == 0), msg, true)
	} else {
		r.beginLocked()
		if r.apart {
			_ = r.sink.last("", msg)
		} else {
			_ = r.sink.event("", msg) // observers come before the return of ServeHTTP
		}
	}
	r.endLocked()
}

// Silence implements server.Reply. It must not wait for a Send to a client that
// does not read: whoever holds mu then ends the response when letting go of it.
func (r *reply) Silence() {
	r.silenced.Store(true)
	r.settleSilence()
}

// unlock gives mu back and does what Silence could not do meanwhile (R4).
func (r *reply) unlock() {
	r.mu.Unlock()
	if r.silenced.Load() {
		r.settleSilence()
	}
}

func (r *reply) settleSilence() {
	if r.mu.TryLock() {
		r.endLocked()
		r.mu.Unlock()
	}
}

func (r *reply) endLocked() {
	if r.ended {
		return
	}
	r.ended = true
	if r.over != nil {
		close(r.over)
	}
}

// closeEmptyLocked ends the response of a request that gets no answer.
func (r *reply) closeEmptyLocked() {
	if r.sink.phase != sinkFresh {
		return
	}
	switch {
	case len(r.calls) == 0:
		r.sink.empty(http.StatusAccepted) // a batch without requests
	case r.stream:
		r.commitLocked()
	default:
		r.sink.empty(http.StatusNoContent)
	}
}

func notSupported(err error) bool { return errors.Is(err, http.ErrNotSupported) }
