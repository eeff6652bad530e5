package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Invariants of this file. Each has a test named after it.
//
//	D1  While a request attends, the work is part of it: what it returns is the
//	    request's outcome, and nothing else is counted, reported or answered.
//	D2  Either the request gets what the work returns, or the work leaves the
//	    request, never both. What leaves is kept before it leaves.
//	D3  What has left ends by a cancel of its own, by its limit, or with the server, and
//	    not with its request, whose stream or session.
//	D4  What has left is a call like any other: it holds its tool's slot, is listed as
//	    in flight, watched when it ignores a cancel, waited for and cancelled by a
//	    drain, reported when it returns.
//	D5  Its outcome is told exactly once, after its handler has returned and never before.

var (
	// ErrReturned is returned by [Detached.Leave] when the handler has returned: its
	// outcome is the request's.
	ErrReturned = errors.New("server: the handler has returned")
	// ErrDraining is returned by [Detached.Leave] and [Server.Revive] when the
	// server is shutting down.
	ErrDraining = errors.New("server: the server is shutting down")
)

// Detachment says how work that may leave its request is served. All fields but ID
// and Ended may be zero.
type Detachment struct {
	// ID is what the work is called in logs, and by [Server.InFlight].
	ID string
	// Host makes the host that the handler talks through, from one that knows the
	// request and sends nothing; nil: that one.
	Host func(nobody servercontext.Host) servercontext.Host
	// Rounds answers the input requests that the handler has returned, once the work
	// has left, so that it can be called again. state is what it wants back; with
	// a state alone there are no requests. nil: it cannot ask.
	Rounds func(ctx context.Context, state string, requests map[string]InputRequest) (map[string]json.RawMessage, error)
	// Ended is called once for work that has left, when its handler has returned. A
	// shutdown waits for it.
	Ended func(Outcome)
	// Timeout limits the work from when it leaves; 0: no limit.
	Timeout time.Duration
}

// InputRequest is a question to the client: a method and its encoded params.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Outcome is how work ended that had left its request.
type Outcome struct {
	// Cancelled is why it was asked to stop, nil when it was not.
	Cancelled *cancellation.Error
	// Err is what the handler returned as its error, nil if it returned a value.
	Err error
	// Result is the value as the request's revision writes it: the result of the
	// response that a waiting client would have got. nil if there is a Fault.
	Result json.RawMessage
	// Fault is the error of that response.
	Fault *sdkrpc.Error
}

// Detached is a handler that runs beside the request that has started it and may
// leave it: it then goes on when the request has been answered.
type Detached struct {
	call     *Call // what stands for the request; its peer is whoever reads the outcome
	from     *Call // the request; nil for revived work
	o        Detachment
	returned chan struct{} // closed when the handler returned while the request attended

	mu     sync.Mutex // guards the fields below; held while Leave keeps the work
	alone  bool       // it has left; set once, by Leave
	over   bool       // the handler has returned; set once, by run
	result any        // what it returned; set with over
	err    error      // set with over
	fault  *sdkrpc.Error
	raw    json.RawMessage // the outcome, encoded; set by Answer
}

// Detach prepares next, as middleware was given it, to be run beside the request
// that ctx and req belong to. The work has the request's parameters and a token of its
// own; its context has the values of ctx and does not end with it. The caller
// starts it, and either waits for what it returns or lets it leave.
func Detach(ctx context.Context, req *servercontext.Request, next Handler, o Detachment) *Detached {
	from := callFrom(ctx)
	d := &Detached{from: from, o: o, returned: make(chan struct{})}
	d.prepare(ctx, from.server, from.reg, from.rev, from.method, next)
	from.beside.Store(d.call)
	d.call.params = from.paramsOf(req)
	brought := from.answered()
	d.call.retry = &brought
	d.call.request = req.Through(d.host(), d.call.source.Token())
	return d
}

// Revival is a request that was served by a process before this one.
type Revival struct {
	// Params are those of its tools/call, without what a retry adds.
	Params json.RawMessage
	// Responses and State are what the last round had brought.
	Responses map[string]json.RawMessage
	State     string
	// Version is the revision it was served in.
	Version string
	// Extra is what the transport had known; nil: nothing.
	Extra *Extra
}

// Revive prepares a tools/call to be served again without a client, all middleware
// included. The work has left from the start; the caller starts it. It returns
// an error when the revision or the tool is unknown, and ErrDraining.
func (s *Server) Revive(ctx context.Context, r Revival, o Detachment) (*Detached, error) {
	rev := find(s.revisions, r.Version)
	if rev == nil {
		return nil, s.unsupported(r.Version)
	}
	reg := s.current()
	md, err := s.lookup(reg, rev, methodCallTool)
	if err != nil {
		return nil, err
	}
	x := r.Extra
	if x == nil {
		x = noExtra
	}
	d := &Detached{o: o, returned: make(chan struct{})}
	d.prepare(ctx, s, reg, rev, md, md.handler)
	c := d.call
	c.params = parseParams(r.Params, md.nameParam)
	c.retry = &retry{responses: r.Responses, state: r.State}
	c.request = servercontext.New(servercontext.Options{
		ID: c.id.String(), Method: md.name, Params: c.params.all, Meta: c.params.meta,
		ProtocolVersion: rev.version, Stateless: rev.stateless,
		TokenInfo: x.TokenInfo, Header: x.Header, Token: c.source.Token(), Host: d.host(),
	})
	if md.tool(c) == nil {
		return nil, invalidParams("unknown tool %q", bounded(c.name()))
	}
	return d, d.Leave(nil)
}

// prepare makes the call that stands for the request.
func (d *Detached) prepare(ctx context.Context, s *Server, reg *registry, rev *revision, md *method, next Handler) {
	served := *md
	served.handler = next
	c := &Call{
		server: s, session: s.stateless, reg: reg, rev: rev, method: &served,
		id: jsonrpc.StringID(d.o.ID), accepted: time.Now(), waited: -1, detached: d,
		source: cancellation.New(context.WithoutCancel(ctx)),
	}
	c.reply = (*detachedReply)(d)
	c.source.SetPanicHandler(c.hookPanicked)
	d.call = c
}

func (d *Detached) host() servercontext.Host {
	var h servercontext.Host = (*host)(d.call)
	if d.o.Host != nil {
		h = d.o.Host(h)
	}
	return h
}

// Start runs the handler, on a goroutine of its own.
func (d *Detached) Start() { go d.run() }

// Token is the work's token.
func (d *Detached) Token() *cancellation.Token { return d.call.source.Token() }

// Requested is the cancel that was accepted, nil if none was.
func (d *Detached) Requested() *cancellation.Error { return d.call.source.Requested() }

// Cancel asks the work to stop. It reports whether this was the cancel that decided it.
func (d *Detached) Cancel(origin cancellation.Origin, reason string) bool {
	return d.call.cancel(origin, reason)
}

// Returned returns a channel that is closed when the handler has returned while the
// request attended.
func (d *Detached) Returned() <-chan struct{} { return d.returned }

// Result is what the handler returned, once Returned is closed.
func (d *Detached) Result() (any, error) { return d.result, d.err }

// WantsInput tells whether that asks for input.
func (d *Detached) WantsInput() bool {
	_, _, _, asks := wanted(d.result)
	return asks && d.err == nil
}

// Encode returns what Result is on the wire: one of both is nil.
func (d *Detached) Encode() (json.RawMessage, *sdkrpc.Error) {
	var buf []byte
	code := d.call.encodeAnswer(&buf, d.result, d.err)
	return splitAnswer(buf, code)
}

// Leave lets the work go on without the request. keep, which may be nil, is called
// first, so that the work can be found before anybody hears of it; the handler's
// return waits for it. Leave returns keep's error, ErrReturned, ErrDraining, or
// the cancel that the work was asked to stop with; it then has not left.
func (d *Detached) Leave(keep func() error) error {
	c := d.call
	d.mu.Lock()
	defer d.mu.Unlock()
	cancelled := c.source.Requested()
	switch {
	case d.over:
		return ErrReturned
	case cancelled != nil:
		return cancelled
	case c.session.refusing():
		return ErrDraining
	}
	if keep != nil {
		if err := keep(); err != nil {
			return err
		}
	}
	d.alone = true
	c.session.adopt(c)
	if d.from != nil {
		c.takeToolSlot(d.from) // not the server's: others must be able to ask for the work
	}
	if d.o.Timeout > 0 {
		c.setLimit(d.o.Timeout)
	}
	if c.session.refusing() {
		// A drain began meanwhile and may have looked already.
		go c.cancel(cancellation.Shutdown, drainReason)
	}
	return nil
}

// cancelAttended cancels work that is part of its request, which alone is counted (D1). It
// reports whether it is.
func (d *Detached) cancelAttended(origin cancellation.Origin, reason string) (attended, accepted bool) {
	if d == nil {
		return false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.alone {
		return false, false
	}
	return true, d.call.source.Cancel(origin, reason)
}

// run serves the work to its end.
func (d *Detached) run() {
	c := d.call
	var result any
	err := errEnded
	defer func() { // also when the handler ends its goroutine
		if p := recover(); p != nil {
			result, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
		d.finish(result, err)
	}()
	d.mu.Lock()
	revived := d.alone && d.from == nil
	d.mu.Unlock()
	if revived && !c.acquire(c.method.slotsOf(c), holdsTool) {
		err = c.source.Requested()
		return
	}
	c.waited = time.Since(c.accepted)
	c.handler.Store(handlerRunning)
	result, err = d.serve()
}

// serve calls the handler, again and again while it returns input requests.
func (d *Detached) serve() (any, error) {
	c := d.call
	for round := 1; ; round++ {
		result, err := c.invoke()
		requests, state, _, ok := wanted(result)
		if err != nil || !ok || d.attended() {
			return result, err
		}
		if round == maxRounds {
			return nil, fmt.Errorf("the handler asked for input %d times", maxRounds)
		}
		asked, err := c.inputRequests(requests)
		if err != nil {
			return nil, err
		}
		public := make(map[string]InputRequest, len(asked))
		for key, q := range asked {
			public[key] = InputRequest{q.method, q.params}
		}
		if d.o.Rounds == nil {
			return nil, errNoInput
		}
		responses, err := d.o.Rounds(c.source.Context(), state, public)
		if err != nil {
			return nil, err
		}
		if len(requests) == 0 {
			// A state alone means: try again later.
			if err := pause(c.source.Context(), time.Duration(round)*100*time.Millisecond); err != nil {
				return nil, err
			}
		}
		c.mu.Lock()
		c.retry = &retry{responses: responses, state: state}
		c.mu.Unlock()
	}
}

// attended decides who is asked for the input that the handler wants: the request,
// if it still attends, with which the work then is over.
func (d *Detached) attended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = d.over || !d.alone
	return !d.alone
}

// finish passes on what the handler returned (D2).
func (d *Detached) finish(result any, err error) {
	d.mu.Lock()
	d.over, d.result, d.err = true, result, err
	alone := d.alone
	d.mu.Unlock()
	c := d.call
	if alone {
		c.finish(result, err)
		return
	}
	c.handler.Store(handlerReturned)
	c.source.Finish()
	c.mu.Lock()
	c.stopTimerLocked()
	c.mu.Unlock()
	close(d.returned)
}

// ended tells the outcome (D5).
func (d *Detached) ended(cancelled *cancellation.Error, err error) {
	if d == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			d.call.log().Error("the end of detached work was not noted", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	d.o.Ended(Outcome{Cancelled: cancelled, Err: err, Result: d.raw, Fault: d.fault})
}

// detachedReply is where the messages of work go that has left: all but the answer
// are for nobody.
type detachedReply Detached

func (r *detachedReply) Send([]byte) error { return nil }
func (r *detachedReply) Silence()          {}
func (r *detachedReply) Answer(msg []byte, code int) {
	r.raw, r.fault = splitAnswer(msg, code)
}

// splitAnswer copies the result or the error out of a response.
func splitAnswer(msg []byte, code int) (json.RawMessage, *sdkrpc.Error) {
	if code == 0 {
		result, _ := jsonrpc.Get(msg, "result")
		return slices.Clone(result), nil
	}
	fault := &sdkrpc.Error{}
	raw, _ := jsonrpc.Get(msg, "error")
	if err := json.Unmarshal(raw, fault); err != nil {
		return nil, errInternal
	}
	return nil, fault
}
