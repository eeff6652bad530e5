package tasks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// taskParam is the member of params that names the task.
const taskParam = "taskId"

func (m *Manager) methods() []server.ExtensionMethod {
	return []server.ExtensionMethod{
		{Name: "tasks/get", NameParam: taskParam, Handler: m.serveGet},
		{Name: "tasks/update", NameParam: taskParam, Handler: m.serveUpdate},
		{Name: "tasks/cancel", NameParam: taskParam, Handler: m.serveCancel},
	}
}

// serveGet serves tasks/get.
func (m *Manager) serveGet(ctx context.Context, req *servercontext.Request) (any, error) {
	_, r, err := m.asked(ctx, req)
	if err != nil {
		return nil, err
	}
	return r.detailed(), nil
}

// serveUpdate serves tasks/update. Answers to questions that are not open are ignored.
func (m *Manager) serveUpdate(ctx context.Context, req *servercontext.Request) (any, error) {
	raw, ok := jsonrpc.Get(req.Params(), "inputResponses")
	if !ok || len(raw) == 0 || raw[0] != '{' {
		return nil, invalidParams("params.inputResponses is required and must be an object")
	}
	responses := map[string]json.RawMessage{}
	for key, value := range jsonrpc.Members(raw) {
		responses[key] = value
	}
	t, r, err := m.asked(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case t != nil && t.answer(responses):
	case !r.Status.Ended():
		return nil, m.post(ctx, Signal{Task: r.ID, Responses: responses})
	}
	return struct{}{}, nil
}

// serveCancel serves tasks/cancel: one more cancel of the peer's. It acknowledges the
// wish; whether the work has stopped is for tasks/get to say.
func (m *Manager) serveCancel(ctx context.Context, req *servercontext.Request) (any, error) {
	t, r, err := m.asked(ctx, req)
	if err != nil {
		return nil, err
	}
	return struct{}{}, m.cancel(ctx, r.ID, t, r, cancellation.Peer, "tasks/cancel")
}

// cancel stops t, or the task that r says of that another process runs, if t is nil.
func (m *Manager) cancel(ctx context.Context, id string, t *task, r *Record, origin cancellation.Origin, reason string) error {
	if t != nil && t.stop(origin, reason) || t == nil && r.Status.Ended() {
		return nil
	}
	return m.post(ctx, Signal{Task: id, Stop: &Stop{Origin: origin.String(), Reason: reason}})
}

// post leaves a signal for the process that runs the task. One that has ended
// meanwhile needs none.
func (m *Manager) post(ctx context.Context, s Signal) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.StoreTimeout)
	defer cancel()
	err := m.o.Store.Post(ctx, s)
	switch {
	case err == nil, errors.Is(err, ErrEnded):
		return nil
	case errors.Is(err, ErrNotFound):
		return errUnknown
	}
	return m.broken(ctx, err)
}

// errUnknown is the same for tasks that there never were, that were forgotten, and that are
// somebody else's.
var errUnknown = &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: "there is no such task, or no longer"}

// asked finds the task that a request is for: its record, and the task itself when this
// process runs it.
func (m *Manager) asked(ctx context.Context, req *servercontext.Request) (*task, *Record, error) {
	raw, _ := jsonrpc.Get(req.Params(), taskParam)
	id, ok := jsonrpc.Unquote(raw)
	if !ok {
		return nil, nil, invalidParams("params.taskId is required and must be a string")
	}
	return m.find(ctx, req, id)
}

func (m *Manager) find(ctx context.Context, req *servercontext.Request, id string) (*task, *Record, error) {
	t := m.running(id)
	var r *Record
	if t != nil {
		r = t.snapshot()
	} else {
		ctx, cancel := context.WithTimeout(ctx, m.o.StoreTimeout)
		defer cancel()
		var err error
		r, err = m.o.Store.Load(ctx, id)
		if errors.Is(err, ErrNotFound) {
			return nil, nil, errUnknown
		}
		if err != nil {
			return nil, nil, m.broken(ctx, err)
		}
	}
	if r.Principal != principal(req) {
		return nil, nil, errUnknown
	}
	return t, r, nil
}

// broken is what clients are told when the store fails; operators get the reason.
func (m *Manager) broken(ctx context.Context, err error) error {
	if cancelled := cancellation.Checkpoint(ctx); cancelled != nil {
		return cancelled
	}
	m.log().Error("the store of tasks failed", "error", err)
	return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "the task could not be read"}
}

func invalidParams(text string) error {
	return &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: text}
}
