package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The way from a call to a task. The handler is begun beside its request, which
// waits for it: for [ToolOptions.After], or until the handler asks its client
// something. Then the task is stored, the work leaves the request, and that is
// answered with the task. What returns before is the answer to the request; so are
// input requests, the rounds of which thus come before the task.
//
// Specification: extension io.modelcontextprotocol/tasks, task creation.

const (
	methodCallTool = "tools/call"
	capability     = "extensions." + ID
)

// intercept is the middleware that makes tasks of calls.
func (m *Manager) intercept(next server.Handler) server.Handler {
	return func(ctx context.Context, req *servercontext.Request) (any, error) {
		if _, inside := FromContext(ctx); inside || req.Method() != methodCallTool {
			return next(ctx, req)
		}
		tool, said := server.CalledTool(ctx, req, ID)
		o, _ := said.(*ToolOptions)
		if tool == nil || o == nil || o.Support == Never {
			return next(ctx, req)
		}
		if !req.Stateless() || !req.HasClientCapability(capability) {
			if o.Support == Always {
				return nil, refusal(req)
			}
			return next(ctx, req)
		}
		return m.call(ctx, req, next, m.o.forTool(o), tool.Name)
	}
}

// refusal is the error for clients that cannot take a task.
func refusal(req *servercontext.Request) error {
	if err := req.RequireClientCapability(capability); err != nil {
		return err
	}
	return &sdkrpc.Error{
		Code:    sdkrpc.CodeInvalidRequest,
		Message: "this tool can only be called as a task, which needs protocol version " + server.Version20260728,
	}
}

// call serves one call of a tool that may become a task.
func (m *Manager) call(ctx context.Context, req *servercontext.Request, next server.Handler, o ToolOptions, tool string) (any, error) {
	now := time.Now()
	t := newTask(m, &Record{
		ID: newID(), Principal: principal(req), Tool: tool,
		Status: Working, Created: now, Updated: now, TTL: o.TTL, Poll: o.Poll,
		Params: firstRound(req.Params()), Version: req.ProtocolVersion(), Owner: m.o.Owner, Run: 1,
	}, o)
	var nobody servercontext.Host
	t.work = server.Detach(withTask(ctx, t), req, next, t.detachment(&nobody))
	t.record.State, t.record.Responses = nobody.RequestState(), nobody.InputResponses()

	if o.After < 0 {
		if err := m.become(t); err == nil {
			t.work.Start()
			return t.snapshot().seed(), nil
		} else if o.Support == Always {
			return nil, m.refused(err)
		}
	}
	t.work.Start()
	timer := time.NewTimer(max(o.After, 0))
	defer timer.Stop()
	due, long := t.due, timer.C
	if o.After < 0 {
		due, long = nil, nil // it was tried
	}
	for {
		select {
		case <-t.work.Returned():
			return m.returned(t)
		case <-ctx.Done():
			if cancelled := new(cancellation.Error); errors.As(cancellation.Checkpoint(ctx), &cancelled) {
				t.work.Cancel(cancelled.Origin, cancelled.Reason)
			} else {
				t.work.Cancel(cancellation.Parent, context.Cause(ctx).Error())
			}
			<-t.work.Returned()
			return m.returned(t)
		case <-due:
		case <-long:
		}
		due, long = nil, nil
		switch err := m.become(t); {
		case err == nil:
			return t.snapshot().seed(), nil
		case errors.Is(err, server.ErrReturned):
		case t.o.Support == Always:
			t.work.Cancel(cancellation.Shutdown, err.Error())
			<-t.work.Returned()
			return nil, m.refused(err)
		}
		// Otherwise the client waits for the answer, as if there were no tasks.
	}
}

func (t *task) detachment(nobody *servercontext.Host) server.Detachment {
	return server.Detachment{
		ID: t.id,
		Host: func(h servercontext.Host) servercontext.Host {
			*nobody = h
			return &host{h, t}
		},
		Rounds: t.rounds, Ended: t.ended, Timeout: t.o.Timeout,
	}
}

// become makes the call a task: it is stored, and then leaves its request.
func (m *Manager) become(t *task) error {
	if err := m.enlist(t); err != nil {
		t.settle(err)
		return err
	}
	err := t.work.Leave(func() error {
		now := time.Now()
		_ = t.change(func(r *Record) error {
			r.Created, r.LeaseUntil = now, now.Add(m.o.Lease)
			return nil
		})
		ctx, cancel := m.storeContext()
		defer cancel()
		return m.o.Store.Create(ctx, t.snapshot())
	})
	if err != nil {
		m.forget(t)
		t.settle(err)
		return err
	}
	t.limit()
	t.settle(nil)
	m.arm()
	return nil
}

// returned answers a call whose handler has returned before it became a task. One that
// must be a task becomes one that has ended already.
func (m *Manager) returned(t *task) (any, error) {
	t.settle(server.ErrReturned)
	result, err := t.work.Result()
	if t.o.Support != Always || t.work.WantsInput() || t.work.Requested() != nil {
		return result, err
	}
	raw, fault := t.work.Encode()
	if fault != nil {
		return result, err
	}
	r := t.snapshot().Clone()
	r.Status, r.Result, r.Params = Completed, raw, nil
	r.Created = time.Now()
	r.Updated = r.Created
	ctx, cancel := m.storeContext()
	defer cancel()
	if err := m.o.Store.Create(ctx, r); err != nil {
		return nil, m.refused(err)
	}
	m.purgeLater(r)
	return r.seed(), nil
}

// refused is the error for a call that could not become a task.
func (m *Manager) refused(err error) error {
	var cancelled *cancellation.Error
	switch {
	case errors.As(err, &cancelled):
		return err
	case errors.Is(err, ErrFull), errors.Is(err, errTooMany):
		return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "there are too many tasks"}
	case errors.Is(err, server.ErrDraining):
		return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "the server is shutting down"}
	}
	m.log().Error("a task could not be stored", "error", err)
	return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "the task could not be stored"}
}

// limit stops the task when its time to live is over.
func (t *task) limit() {
	ttl := t.o.TTL
	if ttl <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.expiry = time.AfterFunc(time.Until(t.record.Expires()), func() {
		t.stop(cancellation.Timeout, "the time to live of "+ttl.String()+" is over")
	})
}

// principal is who a request comes from, as far as the transport knows.
func principal(req *servercontext.Request) string {
	if info := req.TokenInfo(); info != nil {
		return info.UserID
	}
	return ""
}

// firstRound is params without what a retry adds.
func firstRound(params []byte) []byte {
	b := []byte{'{'}
	for name, value := range jsonrpc.Members(params) {
		if name == "inputResponses" || name == "requestState" || name == "task" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(b, name)
		b = append(b, ':')
		b = append(b, value...)
	}
	return append(b, '}')
}
