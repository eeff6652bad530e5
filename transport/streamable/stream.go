package streamable

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/server"
)

// Invariants of this file. Each has a test named after it.
//
//	H1  A stream ends at once when its request is cancelled, without an answer,
//	    even while the handler runs on; nothing of it is replayed afterwards, nor of a
//	    cancelled request of a batch.
//	H2  A dropped connection cancels nothing; what follows is kept for the client
//	    to resume, if it has an event id to resume from.
//	H3  At any time at most one connection is written to; a newer one replaces it.
//	H4  Every event with an id is in the store before it is written.
//
// Lock order: stream.mu, then session.mu. Neither is held while the server is called.

// stream is the server.Splitter of a POST in a session. It may outlive the
// connection that the POST came on, and be resumed on others.
//
// Fields of the first block are set before any call is accepted, and never
// changed.
type stream struct {
	s      *session
	number uint64
	name   string // number as the store knows it
	json   bool   // the answer may be plain JSON
	sse    bool   // the response may be an event stream
	eager  bool   // and is one from the start

	silenced atomic.Bool                // set by Silence
	newest   atomic.Pointer[connection] // the connection attached last; set by attach and serveRequest

	mu     sync.Mutex // guards the fields below; held while a connection is written to
	calls  []*server.Call
	one    [1]*server.Call // where calls are kept unless it is a batch
	conn   *connection     // what is written to; nil while the client is away
	events atomic.Int64    // how many events were given an id; changed with mu held
	parts  []*part         // of a batch, for each of its requests; nil for most
	broken bool            // the store has failed: no more ids
	ended  bool            // no more messages
	grace  *time.Timer     // cancels unless the client comes back; nil while it is there
}

// connection is one HTTP response that a stream is written to. The stream owns
// its sink until it tells newsGone, and the goroutine that serves the response from then on.
type connection struct {
	sink     sink
	silence  alarm         // rings when the call was silent for Options.StreamAfter
	silenced bool          // the request was cancelled; set before gone
	hurried  bool          // a write was given up; belongs to the goroutine that serves the response
	news     atomic.Uint32 // what the goroutine that serves the response has to look at; set by tell
	wake     chan struct{} // holds a token when there is news; capacity 1
}

// News for whoever serves a response. One channel with flags beside it costs each
// call less than a channel for each would.
const (
	newsGone  uint32 = 1 << iota // the stream will not write to sink any more; the last news
	newsHurry                    // a write that blocks is to be given up
	newsTick                     // it is time for a look at the stream
)

func (h *Handler) newConnection(w http.ResponseWriter, r *http.Request) *connection {
	return &connection{sink: h.newSink(w, r), wake: make(chan struct{}, 1)}
}

// tell sets news and wakes whoever serves the response. It never blocks.
func (c *connection) tell(news uint32) {
	c.news.Or(news)
	select {
	case c.wake <- struct{}{}:
	default: // a token is there: the news will be seen along with the older one
	}
}

// ring is called when the call was silent for Options.StreamAfter, and by the timer.
func (c *connection) ring() { c.tell(newsTick) }

// serveRequest serves a request, or a batch, until its response is complete or the
// connection is lost.
func (s *session) serveRequest(p *post) {
	o := &s.handler.options
	st := s.newStream()
	st.json = p.accepts.json
	st.sse = p.accepts.stream && (o.Response != JSON || !p.accepts.json)
	st.eager = p.accepts.stream && o.Response == Stream
	c := s.handler.newConnection(p.w, p.r)
	st.conn = c
	st.newest.Store(c)
	x := p.extra()
	if st.sse && primes(s.version) {
		x.CloseStream = st.closeForNow
	}
	if p.batch {
		s.inner.Receive(p.body, st, &x, st.start)
	} else {
		s.inner.Accept(&p.msg, nil, st, &x, st.start)
	}
	var timer *time.Timer
	switch {
	case !st.sse: // there is no stream to be committed or kept alive
	case o.StreamAfter > 0:
		s.handler.silences.set(&c.silence, c)
		defer c.silence.unset()
	default:
		timer = time.AfterFunc(o.keepAlive(), c.ring)
	}
	st.wait(p.r.Context(), c, timer)
}

// start takes a call that the server has accepted, and runs it on a goroutine of
// its own: its response may end before it does, and it before its response.
func (st *stream) start(c *server.Call) {
	st.mu.Lock()
	if st.calls == nil {
		st.calls = st.one[:0]
	}
	st.calls = append(st.calls, c)
	if st.eager && st.conn != nil && st.conn.sink.phase == sinkFresh {
		st.commitLocked()
	}
	st.unlock()
	go run(c)
}

func run(c *server.Call) {
	deepen(0)
	c.Run()
}

// deepen makes the goroutine's stack as large as a call with its JSON answer needs it,
// in one step and while there is nothing on it to be copied. Growing by and by took
// a twelfth of the time of a short call.
//
//go:noinline
func deepen(i int) byte {
	var frame [4 << 10]byte
	return frame[i]
}

// wait serves a connection: it returns when nobody will write to it any more. timer calls
// the connection's ring; nil: an alarm does, or none is needed.
func (st *stream) wait(ctx context.Context, c *connection, timer *time.Timer) {
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			st.detach(c)
			return
		}
		news := c.news.Swap(0)
		if news&newsGone != 0 {
			st.finish(c)
			return
		}
		if news&newsHurry != 0 {
			// Or not supported: then the write takes the time that it may.
			_ = http.NewResponseController(c.sink.w).SetWriteDeadline(time.Now())
			c.hurried = true
		}
		if news&newsTick != 0 {
			if next := st.tick(c); timer == nil {
				timer = time.AfterFunc(next, c.ring)
			} else {
				timer.Reset(next)
			}
		}
	}
}

// finish ends a response that the stream has let go of.
func (st *stream) finish(c *connection) {
	c.sink.cut = c.sink.cut || c.hurried
	if c.silenced && c.sink.phase == sinkFresh {
		st.mu.Lock()
		requests := len(st.calls)
		st.mu.Unlock()
		switch {
		case requests == 0:
			c.sink.empty(http.StatusAccepted) // a batch without requests
		case st.sse:
			_ = c.sink.open(nil) // an event stream without events
		default:
			c.sink.empty(http.StatusNoContent)
		}
	}
	c.sink.close()
}

// tick commits the stream of a call that stays silent, or keeps it alive, and says
// when to come again.
func (st *stream) tick(c *connection) time.Duration {
	o := &st.s.handler.options
	if !st.mu.TryLock() {
		return time.Second // somebody is writing, so the stream is not quiet
	}
	defer st.unlock()
	if st.conn != c {
		return o.keepAlive() // newsGone is set
	}
	switch {
	case c.sink.phase == sinkFresh && st.sse && o.StreamAfter > 0:
		st.commitLocked()
	case c.sink.phase == sinkStreaming && o.KeepAlive > 0 && time.Since(c.sink.written) >= o.KeepAlive:
		st.lostLocked(c.sink.comment())
	}
	if c.sink.phase != sinkStreaming {
		return o.keepAlive()
	}
	return max(o.keepAlive()-time.Since(c.sink.written), time.Millisecond)
}

// commitLocked turns the response into an event stream, whose first event lets
// the client resume it.
//
// Specification: basic/transports (2025-11-25), sending messages to the server.
func (st *stream) commitLocked() {
	st.lostLocked(st.conn.sink.open(st.firstLocked()))
}

// firstLocked is what a stream begins with.
func (st *stream) firstLocked() []byte {
	if primes(st.s.version) {
		if id := st.recordLocked(nil); id != "" {
			return appendEvent(nil, id, nil)
		}
	}
	return nil
}

// recordLocked keeps an event for later and returns its id, "" when it could not
// be kept (H4).
func (st *stream) recordLocked(msg []byte) string {
	if st.broken || st.s.ended.Load() {
		return ""
	}
	store, ctx := st.s.handler.options.EventStore, context.Background()
	var err error
	if st.events.Load() == 0 {
		if err = store.Open(ctx, st.s.id, st.name); err == nil {
			st.s.resumable(st)
		}
	}
	if err == nil {
		err = store.Append(ctx, st.s.id, st.name, append([]byte(nil), msg...))
	}
	if err != nil {
		st.broken = true
		st.s.handler.options.Logger.Warn("event store failed; the stream cannot be resumed", "session", st.s.id, "error", err)
		return ""
	}
	if st.s.ended.Load() {
		// The store was told of the session's end already, or is being told right now.
		st.s.closeStore()
	}
	return eventID{st.number, int(st.events.Add(1)) - 1}.String()
}

// Send implements server.Reply.
func (st *stream) Send(msg []byte) error {
	st.mu.Lock()
	defer st.unlock()
	return st.sendLocked(msg)
}

func (st *stream) sendLocked(msg []byte) error {
	switch {
	case st.ended || st.silenced.Load():
		return errStreamGone
	case st.conn == nil && st.events.Load() == 0:
		return errStreamGone // the client has no id to come back with
	case st.conn != nil && st.conn.sink.phase == sinkFresh && !st.sse:
		return errNoStream
	}
	return st.writeLocked(msg, (*sink).event)
}

// writeLocked sends an event, or keeps it for a client that is away.
func (st *stream) writeLocked(msg []byte, send func(k *sink, id string, msg []byte) error) error {
	if st.conn != nil && st.conn.sink.phase == sinkFresh {
		st.conn.sink.begin(st.firstLocked())
	}
	id := st.recordLocked(msg)
	if st.conn != nil {
		st.lostLocked(send(&st.conn.sink, id, msg))
	}
	if st.conn == nil && id == "" {
		return errStreamGone
	}
	return nil
}

// Answer implements server.Reply.
func (st *stream) Answer(msg []byte, code int) {
	st.mu.Lock()
	defer st.unlock()
	if st.ended || st.silenced.Load() {
		return
	}
	switch c := st.conn; {
	case c == nil && st.events.Load() == 0: // nobody can get it any more
	case c != nil && c.sink.phase == sinkFresh && (st.json || len(st.calls) == 0):
		_ = c.sink.json(statusOf(code, false, len(st.calls) == 0), msg, false) // there is nothing to resume
	default:
		_ = st.writeLocked(msg, (*sink).last) // and nothing to be done for a client that cannot resume
	}
	st.endLocked(true)
}

// Silence implements server.Reply. It must not wait for a Send to a client that does
// not read: whoever holds mu then ends the stream when letting go of it.
func (st *stream) Silence() {
	st.silenced.Store(true)
	// The handler that has just been woken goes first: whoever ends the response would take
	// its place.
	runtime.Gosched()
	st.settleSilence()
}

// unlock gives mu back and does what Silence could not do meanwhile.
func (st *stream) unlock() {
	st.mu.Unlock()
	if st.silenced.Load() {
		st.settleSilence()
	}
}

// settleSilence ends the stream of a cancelled request (H1).
func (st *stream) settleSilence() {
	if !st.mu.TryLock() {
		return
	}
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	if st.conn != nil {
		st.conn.silenced = true
	}
	st.endLocked(false)
}

// endLocked ends the stream.
func (st *stream) endLocked(answered bool) {
	st.ended = true
	st.disconnectLocked()
	if st.grace != nil {
		st.grace.Stop()
	}
	if forget := st.s.over(st, answered); forget != "" {
		// A store elsewhere may take its time, which Silence has not.
		go st.s.forget(forget)
	}
}

// disconnectLocked lets go of the connection: its ServeHTTP may return.
func (st *stream) disconnectLocked() {
	if st.conn != nil {
		st.conn.tell(newsGone)
		st.conn = nil
	}
}
