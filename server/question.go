package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Invariants of this file. Each has a test named after it.
//
//	Q1  A question of a cancelled request is not written.
//	Q2  A question that was written and whose request is then cancelled, whose
//	    context ends or whose limit expires is retracted with notifications/cancelled,
//	    before its request's stream ends.
//	Q3  A question gets one answer; what comes later is dropped.
//	Q4  Answers count only from the session that was asked.

// question is a request to the client that waits for its answer.
type question struct {
	id     jsonrpc.ID
	method string
	answer chan answer // holds the one answer; capacity 1

	written bool // the request went out and was not retracted; guarded by the call's out
}

// answer is how a question ended.
type answer struct {
	result json.RawMessage
	err    error
}

// resolve gives q its answer unless it has one (Q3). It never blocks.
func (q *question) resolve(a answer) {
	select {
	case q.answer <- a:
	default:
	}
}

// ask sends a request to the client on c's own stream and waits for the answer.
func (c *Call) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := encodeParams(params)
	if err != nil {
		return nil, err
	}
	q := &question{method: method, answer: make(chan answer, 1)}
	if err := c.open(q); err != nil {
		return nil, err
	}
	defer c.close(q)
	if err := c.pose(q, raw); err != nil {
		return nil, err
	}

	var limit <-chan time.Time
	if d := c.server.options.ClientTimeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		limit = t.C
	}
	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-limit:
		err = fmt.Errorf("%s: the client did not answer within %v: %w", method, c.server.options.ClientTimeout, context.DeadlineExceeded)
	}
	// When the request was cancelled, ctx ends as well; the cancellation is what counts
	// then. Cancel is about to take q and to resolve it: q must not be closed before,
	// or nobody would retract it.
	if cancelled := c.source.Requested(); cancelled != nil {
		<-q.answer
		return nil, cancelled
	}
	c.retract(q, err.Error())
	return nil, err
}

// open registers q with the request and the session, unless the request was
// cancelled or has ended (Q1).
func (c *Call) open(q *question) error {
	ss := c.session
	ss.mu.Lock()
	closed := ss.closed
	if closed == nil {
		ss.nextID++
		q.id = jsonrpc.NumberID(ss.nextID)
		put(&ss.pending, q.id, q)
	}
	ss.mu.Unlock()

	c.mu.Lock()
	cancelled := c.source.Requested()
	over := c.handler.Load() == handlerReturned
	if cancelled == nil && !over && closed == nil {
		if c.questions == nil {
			c.questions = map[*question]struct{}{}
		}
		c.questions[q] = struct{}{}
	}
	c.mu.Unlock()

	var err error
	switch {
	case cancelled != nil:
		err = cancelled
	case over:
		err = cancellation.ErrFinished
	case closed != nil:
		return ErrClosed
	}
	if err != nil {
		c.close(q)
	}
	return err
}

// close unregisters q.
func (c *Call) close(q *question) {
	ss := c.session
	ss.mu.Lock()
	delete(ss.pending, q.id)
	ss.mu.Unlock()
	c.mu.Lock()
	delete(c.questions, q)
	c.mu.Unlock()
}

// pose writes q, unless the request was cancelled meanwhile (Q1).
func (c *Call) pose(q *question, params []byte) error {
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = jsonrpc.AppendRequest(*buf, q.id, q.method, params)
	c.out.Lock()
	defer c.out.Unlock()
	if cancelled := c.source.Requested(); cancelled != nil {
		return cancelled
	}
	if c.settled {
		return cancellation.ErrFinished
	}
	c.flushProgressOutLocked()
	q.written = true
	return c.reply.Send(*buf)
}

// retract tells the client that q needs no answer any more (Q2).
func (c *Call) retract(q *question, reason string) {
	c.out.Lock()
	defer c.out.Unlock()
	c.retractOutLocked(q, reason)
}

// retractOrphansOutLocked retracts the questions that were under way when the
// request was cancelled or ended.
func (c *Call) retractOrphansOutLocked(reason string) {
	c.mu.Lock()
	orphans := c.orphans
	c.orphans = nil
	c.mu.Unlock()
	for _, q := range orphans {
		c.retractOutLocked(q, reason)
	}
}

// retractOutLocked may send after a cancel, unlike everything else, since what
// it sends belongs to the cancel.
func (c *Call) retractOutLocked(q *question, reason string) {
	if !q.written || c.settled {
		return
	}
	q.written = false // once
	c.sendCancelledOutLocked(q.id, reason)
}

// sendCancelledOutLocked sends notifications/cancelled for a request of the server's,
// or for a subscription.
func (c *Call) sendCancelledOutLocked(id jsonrpc.ID, reason string) {
	params := append([]byte(`{"requestId":`), id.String()...)
	if reason != "" {
		params = append(params, `,"reason":`...)
		params = jsonrpc.AppendString(params, reason)
	}
	params = append(params, '}')
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = jsonrpc.AppendNotification(*buf, "notifications/cancelled", params)
	if err := c.reply.Send(*buf); err != nil {
		c.log().Debug("notifications/cancelled could not be sent", "error", err)
	}
}

// orphanQuestionsLocked takes the questions that are under way; the caller has
// locked mu, gives each its answer and sees to it that they are retracted.
func (c *Call) orphanQuestionsLocked() []*question {
	var questions []*question
	for q := range c.questions {
		questions = append(questions, q)
	}
	c.questions = nil
	c.orphans = append(c.orphans, questions...)
	return questions
}

// acceptResponse gives an answer to the question it belongs to (Q4). Answers to
// nothing are dropped: they came too late.
func (ss *Session) acceptResponse(m *jsonrpc.Message) {
	ss.mu.Lock()
	q := ss.pending[m.ID]
	delete(ss.pending, m.ID)
	ss.mu.Unlock()
	if q == nil {
		ss.server.options.Logger.Debug("ignored an answer to no request", "session", ss.ID(), "id", bounded(m.ID.String()))
		return
	}
	if m.Kind == jsonrpc.KindErrorResponse {
		q.resolve(answer{err: peerError(q.method, m.Error)})
		return
	}
	q.resolve(answer{result: m.Result})
}

// PeerError is an error that the client answered a nested call with.
type PeerError struct {
	// Method is what the client was asked.
	Method string
	// Err is its answer; the text is the client's and untrusted.
	Err *sdkrpc.Error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("%s: the client answered with error %d: %q", e.Method, e.Err.Code, bounded(e.Err.Message))
}

// Is makes errors.Is match the client's error. There is no Unwrap on purpose: a
// client's error must not be taken for a protocol error of the server's own.
func (e *PeerError) Is(target error) bool { return target == error(e.Err) }

func peerError(method string, raw []byte) error {
	e := &sdkrpc.Error{}
	if err := json.Unmarshal(raw, e); err != nil {
		e = &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "malformed error"}
	}
	return &PeerError{Method: method, Err: e}
}
