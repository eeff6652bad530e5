package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
)

// Invariants of this file. Each has a test named after it.
//
//	P1  A handler runs once, however many requests it takes.
//	P2  At any time at most one request attends an operation; cancelling that
//	    request cancels the operation.
//	P3  A parked operation ends: by its retry, by the time limit, by a cancel of the
//	    id it was parked for, with its session, or with the server.
//	P4  Only a retry by the same principal, of the same request, with the state of
//	    the last round resumes an operation, and only once.
//	P5  What became of a parked operation is told to its next retry.
//	P6  The observer is told once of each handler's end: with the request that attends, or,
//	    when none does or will, by the id that it was parked for last.
//
// Lock order: operation.mu, then Server.mu or Session.mu. Call.out and Call.mu
// are not taken while operation.mu is held.

var (
	errTooManyParked = errors.New("server: too many handlers wait for input from clients")
	errNotParked     = errors.New("params.requestState belongs to a request that has ended")
)

// settleInput is how long an operation waits for further questions of its
// handler before it asks the first, so that what is asked at once is asked in
// one round.
const settleInput = time.Millisecond

// operation is a handler of the stateless era that may block for input from
// the client. It outlives the request that started it: while it waits, that
// request is answered with input_required, and the operation is parked until the
// retry comes.
type operation struct {
	first   *Call                  // the request that started it; never changed
	source  *cancellation.Source   // what the handler's context follows; never changed
	request *servercontext.Request // what the handler sees; never changed
	id      string                 // never changed

	mu       sync.Mutex
	session  *Session                   // of the request that attends, or did last; changed by resume
	current  *Call                      // the request that attends; nil while parked
	asked    map[string]*parkedQuestion // questions without an answer
	keys     int                        // questions asked so far
	round    int                        // how often the operation has parked
	flush    *time.Timer                // will park the operation; nil when nothing is to be asked
	expiry   *time.Timer                // ends a parked operation; nil while attended
	last     *Call                      // the request it was parked for last
	lingers  bool                       // it was cancelled while parked and its handler runs on; set by end
	over     bool                       // the handler has returned
	outcome  attended                   // and with this
	returned time.Time                  // and then
}

// parkedQuestion is one question to the client.
type parkedQuestion struct {
	inputRequest
	answer chan answer // capacity 1
}

// attended is what a request that attends an operation gets from it.
type attended struct {
	result any
	err    error
}

// startOperation runs the handler on a goroutine of its own and attends it.
func (c *Call) startOperation() (any, error) {
	op := &operation{
		first:   c,
		source:  cancellation.New(context.WithoutCancel(c.source.Context())),
		id:      rand.Text(),
		session: c.session,
		current: c,
		asked:   map[string]*parkedQuestion{},
	}
	op.source.SetPanicHandler(c.hookPanicked)
	op.request = c.request.Through((*operationHost)(op), op.source.Token())
	c.attending(op)
	c.session.takes(op)
	go op.run()
	return op.attend(c)
}

// run runs the handler to its end (P1).
func (op *operation) run() {
	outcome := attended{err: errEnded}
	defer func() { op.ended(outcome) }() // also when the handler ends its goroutine
	outcome.result, outcome.err = op.invoke()
}

// ended passes on what the handler has returned.
func (op *operation) ended(outcome attended) {
	op.source.Finish()
	op.mu.Lock()
	op.over, op.outcome, op.returned = true, outcome, time.Now()
	if op.flush != nil {
		op.flush.Stop()
		op.flush = nil
	}
	current := op.current
	op.current = nil
	cancelled := op.source.Requested()
	if current != nil || cancelled != nil {
		op.unparkLocked()
	}
	parked, lingered, session := op.expiry != nil, op.lingers, op.session
	if parked {
		session.keepsOutcome(op) // for the retry (P5), until op expires
	}
	op.mu.Unlock()
	switch {
	case current != nil:
		session.gives(op)
		current.yield <- outcome
		return
	case lingered:
		session.lingers(-1)
	}
	if !parked {
		op.report(cancelled)
	}
	session.gives(op)
}

// invoke is Call.invoke for an operation; see there.
//
//go:noinline
func (op *operation) invoke() (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
	}()
	ctx := servercontext.NewContext(&operationContext{op.source.Context(), op.first}, op.request)
	result, err = op.first.method.handler(ctx, op.request)
	runtime.KeepAlive(op)
	return result, err
}

// attending makes c the request that attends op.
func (c *Call) attending(op *operation) {
	c.yield = make(chan attended, 1)
	c.operation.Store(op)
}

// attend waits for what the operation has for c: its outcome, or its questions.
func (op *operation) attend(c *Call) (any, error) {
	select {
	case a := <-c.yield:
		return a.result, a.err
	case <-c.source.Token().Done():
		// What decides c's fate is its own token; the handler hears of it and
		// is waited for like any other (P2).
		op.cancelled(c)
		a := <-c.yield
		return a.result, a.err
	}
}

// cancelled passes c's cancel on, if there was one. Whoever cancels c calls it. It is called again by
// c itself, which may have been cancelled before it attended op, and when c is finished,
// since a cancel may come while op is being parked for c.
func (op *operation) cancelled(c *Call) {
	cancelled := c.source.Requested()
	if cancelled == nil {
		return
	}
	op.mu.Lock()
	attended := op.current == c
	op.mu.Unlock()
	if attended {
		op.source.Cancel(cancelled.Origin, cancelled.Reason)
		return
	}
	op.end(nil, 0, cancelled.Origin, cancelled.Reason)
}

// ask puts a question to the client and waits for the retry that answers it.
func (op *operation) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := encodeParams(op.first.rev.inputParams(params))
	if err != nil {
		return nil, err
	}
	q := &parkedQuestion{inputRequest: inputRequest{method: method, params: raw}, answer: make(chan answer, 1)}
	op.mu.Lock()
	if cancelled := op.source.Requested(); cancelled != nil {
		op.mu.Unlock()
		return nil, cancelled
	}
	if op.over {
		op.mu.Unlock()
		return nil, cancellation.ErrFinished
	}
	op.keys++
	key := fmt.Sprintf("input_%d", op.keys)
	op.asked[key] = q
	op.scheduleLocked()
	op.mu.Unlock()
	defer func() {
		op.mu.Lock()
		delete(op.asked, key)
		op.mu.Unlock()
	}()

	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-op.source.Token().Done():
		if cancelled := op.source.Requested(); cancelled != nil {
			return nil, cancelled
		}
		return nil, cancellation.ErrFinished
	case <-ctx.Done():
		if cancelled := op.source.Requested(); cancelled != nil {
			return nil, cancelled
		}
		return nil, context.Cause(ctx)
	}
}

// scheduleLocked sees to it that open questions are put to the client soon, if
// a request attends that can be answered with them.
func (op *operation) scheduleLocked() {
	if op.current != nil && op.flush == nil && len(op.asked) > 0 {
		op.flush = time.AfterFunc(settleInput, op.park)
	}
}

// park answers the attending request with the open questions.
func (op *operation) park() {
	op.mu.Lock()
	op.flush = nil
	c := op.current
	if c == nil || op.over || len(op.asked) == 0 || op.source.Requested() != nil {
		op.mu.Unlock()
		return
	}
	s := op.first.server
	if c.session.refusing() {
		// The retry would be refused, and the handler wait for it in vain.
		op.mu.Unlock()
		c.cancel(cancellation.Shutdown, drainReason)
		return
	}
	if !s.park(op) {
		for key, q := range op.asked {
			q.answer <- answer{err: errTooManyParked}
			delete(op.asked, key)
		}
		op.mu.Unlock()
		return
	}
	op.round++
	lifetime := s.options.ParkTimeout
	required := &inputRequired{requests: make(map[string]inputRequest, len(op.asked))}
	for key, q := range op.asked {
		required.requests[key] = q.inputRequest
	}
	var err error
	required.state, err = s.sealer.seal(sealed{
		Operation: op.id, Round: op.round, Principal: c.principal(), Request: c.digest(),
	})
	op.current = nil
	round := op.round // a timer that was stopped too late must not end a later one
	op.expiry = time.AfterFunc(lifetime, func() {
		op.end(nil, round, cancellation.Timeout, fmt.Sprintf("no input from the client within %v", lifetime))
	})
	op.last, c.parked = c, true
	c.session.parkedFor(c.id, op)
	op.mu.Unlock()
	c.yield <- attended{required, err}
}

// end cancels a parked operation, or forgets one whose outcome nobody came for. in and round
// are the session and the round that it must be parked in, nil and 0 for any: it may have been
// resumed, and parked again, since it was found.
func (op *operation) end(in *Session, round int, origin cancellation.Origin, reason string) {
	op.mu.Lock()
	if op.current != nil || in != nil && op.session != in || round != 0 && op.round != round {
		op.mu.Unlock()
		return // resumed meanwhile
	}
	forgotten := op.over && op.expiry != nil
	op.unparkLocked()
	accepted := !op.over && op.source.Cancel(origin, reason)
	if accepted {
		op.lingers = true
		op.session.lingers(1)
	}
	op.mu.Unlock()
	switch {
	case accepted:
		time.AfterFunc(op.first.server.options.Grace, op.overdue)
	case forgotten:
		op.report(nil)
	}
}

// overdue is called when an operation that was cancelled while parked has had the grace period.
func (op *operation) overdue() {
	op.mu.Lock()
	over := op.over
	op.mu.Unlock()
	if !over {
		op.last.reportUnresponsive(op.source.Requested())
	}
}

// unparkLocked takes op out of where a retry, a cancel or a shutdown finds it.
// It does nothing when op is not parked.
func (op *operation) unparkLocked() {
	if op.expiry == nil {
		return
	}
	op.expiry.Stop()
	op.expiry = nil
	op.first.server.unpark(op)
	op.session.unparked(op)
}

// resume continues the operation that a retry belongs to, and attends it (P4).
func (s *Server) resume(c *Call, state *sealed) (any, error) {
	op := s.parkedOperation(state.Operation)
	if op == nil {
		return nil, invalidParams("%v", errNotParked)
	}
	op.mu.Lock()
	if op.current != nil || op.expiry == nil || op.round != state.Round {
		op.mu.Unlock()
		return nil, invalidParams("%v", errNotParked)
	}
	op.unparkLocked()
	if op.over {
		outcome := op.outcome
		op.mu.Unlock()
		return outcome.result, outcome.err
	}
	if op.session != c.session {
		c.session.takes(op)
		op.session.gives(op)
		op.session = c.session
	}
	c.attending(op)
	op.current = c
	for key, raw := range c.answered().responses {
		if q := op.asked[key]; q != nil && len(raw) > 0 && raw[0] == '{' {
			q.answer <- answer{result: raw}
			delete(op.asked, key)
		}
	}
	op.scheduleLocked() // what was not answered is asked again
	op.mu.Unlock()
	return op.attend(c)
}

// operationContext is the context of an operation's handler.
type operationContext struct {
	context.Context
	first *Call
}

func (c *operationContext) Value(key any) any {
	if key == (callKey{}) {
		return c.first
	}
	return c.Context.Value(key)
}
