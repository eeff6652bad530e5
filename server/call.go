package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
)

// Invariants of this file. Each has a test named after it.
//
//	C1  Every accepted request is settled exactly once: answered, or silenced.
//	C2  Token state alone decides which: what the handler returned does not.
//	C3  From the moment a cancel was accepted no message of the request is sent,
//	    save the answer that is owed and the cancels of its nested calls.
//	C4  An answer is the last message of its request.
//	C5  A panic of a handler ends its request and nothing else.

// Call is one accepted request. Transports run it, on whatever goroutine
// suits them, and may cancel it.
//
// It holds the request's whole state. Fields of the first block are set by
// newCall and never changed.
type Call struct {
	server      *Server
	session     *Session
	reg         *registry // the snapshot the request is served from
	rev         *revision
	method      *method
	reply       Reply
	source      *cancellation.Source
	request     *servercontext.Request
	id          jsonrpc.ID
	params      callParams
	accepted    time.Time                 // when it came in
	closeStream func(time.Duration) error // nil: the transport cannot

	out     sync.Mutex // serializes Send and Answer of reply; held while they are called
	settled bool       // an answer was or will be written, or none ever; guarded by out, set by settle

	mu        sync.Mutex             // guards the fields below; no lock is taken while it is held
	questions map[*question]struct{} // calls to the client under way; taken away by cancel and finish
	orphans   []*question            // questions to be retracted
	progress  *progressState         // what was reported last; nil before the first report
	logs      pace                   // of log messages to the client
	timer     *time.Timer            // the limit in force, nil without one
	limit     time.Duration          // its length
	watch     *time.Timer            // fires when a cancelled handler outlives the grace period

	retry     *retry                    // what answered input requests brought; nil for nothing; guarded by mu
	detached  *Detached                 // set when the call has no peer of its own; never changed
	beside    atomic.Pointer[Call]      // the work that runs beside it; set by Detach, nil for most
	operation atomic.Pointer[operation] // what the call attends; set by Run, nil for most
	yield     chan attended             // what the operation gives it; set with operation

	logsDropped bool // some log messages were too many; guarded by mu

	parked  bool          // answered with a question for the client, its handler runs on; set by operation.park, read by report
	lingers bool          // left while its handler ran; guarded by the session's mu, set by forget
	left    bool          // taken out of the session's calls; guarded by the session's mu, set by forget
	slot    atomic.Uint32 // which slots are held: see slots.go
	silent  atomic.Bool   // reply.Silence was called or will be; set by silence
	waited  time.Duration // how long after accepted the handler began; negative: it has not; written by Run, before it does
	handler atomic.Uint32 // handlerWaiting → handlerRunning → handlerReturned, by Run and finish only
}

const (
	handlerWaiting uint32 = iota
	handlerRunning
	handlerReturned
)

func newCall(ss *Session, m *jsonrpc.Message, md *method, rev *revision, reg *registry, reply Reply, x *Extra) *Call {
	c := &Call{
		server:      ss.server,
		session:     ss,
		reg:         reg,
		rev:         rev,
		method:      md,
		reply:       reply,
		id:          m.ID,
		accepted:    time.Now(),
		closeStream: x.CloseStream,
		waited:      -1,
	}
	c.params.all = m.Params
	c.params.meta, _ = m.Param("_meta")
	if md.nameParam != "" {
		c.params.name, _ = m.Param(md.nameParam)
		c.params.arguments, _ = m.Param("arguments")
	}
	parent := ss.context
	if x.Context != nil {
		parent = context.WithoutCancel(x.Context)
	}
	c.source = cancellation.New(parent)
	c.source.SetPanicHandler(c.hookPanicked)
	o := servercontext.Options{
		ID:              m.ID.String(),
		Method:          md.name,
		Params:          m.Params,
		Meta:            c.params.meta,
		ProtocolVersion: rev.version,
		Stateless:       rev.stateless,
		Session:         ss.values,
		TokenInfo:       x.TokenInfo,
		Header:          x.Header,
		Token:           c.source.Token(),
		Host:            (*host)(c),
	}
	if !rev.stateless {
		o.Client = ss.clientInfo()
	}
	c.request = servercontext.New(o)
	return c
}

// Run serves the request: it waits for a free slot, calls the handler and
// settles the request. It returns when the handler has, so a transport whose
// stream may end earlier runs it on a goroutine of its own.
func (c *Call) Run() {
	var result any
	err := errEnded
	defer func() { // also when the handler ends its goroutine
		if p := recover(); p != nil {
			result, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
		c.finish(result, err)
	}()
	if c.acquireSlots() {
		c.startLimit()
		c.waited = time.Since(c.accepted)
		c.handler.Store(handlerRunning)
		result, err = c.serve()
	} else {
		cancelled := c.source.Requested()
		c.endAwaited(cancelled)
		err = cancelled
	}
}

// started is when the handler began, zero if it has not.
func (c *Call) started() time.Time {
	if c.waited < 0 {
		return time.Time{}
	}
	return c.accepted.Add(c.waited)
}

// errEnded is what a handler that called runtime.Goexit has returned.
var errEnded error = &panicError{value: "the handler has ended its goroutine"}

// OnWait has f called, once, when the handler begins to wait for its cancellation
// instead of looking at it now and then. A transport for which it costs something to
// notice that its peer is gone can begin to watch only then. Call it before Run.
func (c *Call) OnWait(f func()) { c.source.SetWaitHandler(f) }

// Cancel cancels the request, as a transport does whose stream was closed.
// It reports whether this was the cancel that decided the request, and never blocks.
func (c *Call) Cancel(origin cancellation.Origin, reason string) bool {
	return c.cancel(origin, reason)
}

// Unsettled reports whether the peer may still get an answer.
func (c *Call) Unsettled() bool {
	c.out.Lock()
	defer c.out.Unlock()
	return !c.settled && !c.silent.Load()
}

// Returned reports whether the handler has returned, or never will have started.
func (c *Call) Returned() bool { return c.handler.Load() == handlerReturned }

// invoke calls the handler and turns a panic into an error (C5).
//
// The compiler must not inline it: the watchdog finds a handler's stack by this
// frame and its argument.
//
//go:noinline
func (c *Call) invoke() (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
	}()
	result, err = c.method.handler((*callContext)(c), c.request)
	runtime.KeepAlive(c) // so that the frame has it where the watchdog reads it
	return result, err
}

// cancel is the one door: peers, transports, limits, operators and shutdown all
// come through here.
func (c *Call) cancel(origin cancellation.Origin, reason string) bool {
	if attended, accepted := c.detached.cancelAttended(origin, reason); attended {
		return accepted
	}
	if !c.source.Cancel(origin, reason) {
		return false
	}
	if op := c.operation.Load(); op != nil {
		op.cancelled(c) // here, and not when c hears of it: the handler must begin no commit after this
	}
	if !c.owes(origin) {
		c.leave() // the client may reuse the id at once
	}
	c.releaseSlots()
	c.mu.Lock()
	questions := c.orphanQuestionsLocked()
	c.stopTimerLocked()
	c.progress.take()
	if c.handler.Load() != handlerReturned {
		c.server.counters.lingering.Add(1) // until finish finds the watch
		c.watch = time.AfterFunc(c.server.options.Grace, c.overdue)
	}
	orphans := len(c.orphans) // also those that finish has taken meanwhile
	c.mu.Unlock()

	if orphans == 0 {
		c.silenceUnlessOwed(origin)
		return true
	}
	err := c.source.Requested()
	for _, q := range questions {
		q.resolve(answer{err: err})
	}
	// Telling the peer may block on a slow stream, and the reading goroutine may be
	// the one that cancels.
	go func() {
		c.out.Lock()
		c.retractOrphansOutLocked(err.Reason)
		c.out.Unlock()
		c.silenceUnlessOwed(origin)
	}()
	return true
}

// silenceUnlessOwed ends the request's stream where the peer gets no answer.
func (c *Call) silenceUnlessOwed(origin cancellation.Origin) {
	if !c.owes(origin) && !c.silent.Swap(true) {
		c.reply.Silence()
	}
}

// owes tells whether a request that was cancelled by origin is to be answered. What
// has left its request always is: somebody will come and ask.
func (c *Call) owes(origin cancellation.Origin) bool { return origin.AnswerOwed() || c.detached != nil }

// leave takes c out of its session's calls, once. Whoever comes second returns when c is out.
func (c *Call) leave() { c.session.forget(c) }

// finish settles the request after its handler has returned, or was never
// started (C1, C2).
func (c *Call) finish(result any, err error) {
	returned := time.Now()
	c.handler.Store(handlerReturned)
	cancelled := c.source.Finish()
	if op := c.operation.Load(); op != nil {
		op.cancelled(c)
	}
	c.releaseSlots()
	c.mu.Lock()
	c.stopTimerLocked()
	if c.watch != nil {
		c.watch.Stop()
		c.server.counters.lingering.Add(-1)
	}
	questions := c.orphanQuestionsLocked()
	c.mu.Unlock()
	for _, q := range questions {
		q.resolve(answer{err: cancellation.ErrFinished})
	}

	answered := false
	switch {
	case cancelled == nil:
		answered = c.answer(result, err)
	case !c.owes(cancelled.Origin):
		c.leave()
		if err == nil {
			c.server.counters.dropped.Add(1)
		}
	default:
		told := err
		if err != nil || c.parked { // what it was parked for has been cancelled with it
			told = cancelled
		}
		answered = c.answer(result, told)
	}
	c.detached.ended(cancelled, err)
	c.report(cancelled, err, returned, answered)
	c.session.returned(c)
}

// overdue is called when a cancelled handler has outlived the grace period.
func (c *Call) overdue() {
	cancelled := c.source.Requested()
	if cancelled == nil || c.handler.Load() == handlerReturned {
		return
	}
	if cancelled.Origin.AnswerOwed() && c.detached == nil {
		c.answer(nil, cancelled)
	}
	if c.handler.Load() == handlerRunning {
		c.reportUnresponsive(cancelled)
	}
}

// answer writes the response unless the request was settled before, in which
// case it reports false (C1, C4). err nil means that result is the answer.
func (c *Call) answer(result any, err error) bool {
	buf := getBuffer()
	defer putBuffer(buf)
	code := c.encodeAnswer(buf, result, err)
	c.leave() // before the answer: the client may reuse the id at once
	c.out.Lock()
	defer c.out.Unlock()
	if c.settled {
		c.server.counters.dropped.Add(1)
		return false
	}
	if cancelled := c.source.Requested(); cancelled != nil {
		c.retractOrphansOutLocked(cancelled.Reason)
	} else {
		c.retractOrphansOutLocked("the request has ended")
		c.flushProgressOutLocked()
	}
	c.settled = true
	c.reply.Answer(*buf, code)
	return true
}

// send writes a message of the request unless it was cancelled or has ended
// (C3, C4).
func (c *Call) send(msg []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	return c.sendOutLocked(msg)
}

func (c *Call) sendOutLocked(msg []byte) error {
	if c.settled || c.source.Requested() != nil {
		c.server.counters.dropped.Add(1)
		return nil
	}
	return c.reply.Send(msg)
}

func (c *Call) notify(method string, params []byte) error {
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = jsonrpc.AppendNotification(*buf, method, params)
	return c.send(*buf)
}

// name is the tool, prompt or resource that the request names, "" if none.
func (c *Call) name() string {
	s, _ := jsonrpc.Unquote(c.params.name)
	return s
}

// panicError is what a handler that panicked has returned. Its text goes to
// operators; the peer learns only that there was an internal error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// encodeParams encodes what a handler gave as params of an outgoing message; nil
// for none.
func encodeParams(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	raw, err := appendJSON(nil, params)
	switch {
	case err != nil:
		return nil, err
	case string(raw) == "null":
		return nil, nil
	case raw[0] != '{':
		return nil, fmt.Errorf("params must encode to a JSON object, not %s", bounded(string(raw)))
	}
	return raw, nil
}
