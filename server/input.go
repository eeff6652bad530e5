package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Input from the client, in both eras and both styles.
//
// A handler may block in Elicit and its like, or return InputRequests and be
// called again with the answers. The handshake era has requests from the server to
// the client; the stateless era has none, so there the request itself is answered
// with input_required and retried by the client. That makes four cases:
//
//	            handshake                      stateless
//	blocking    a question (question.go)       the handler is parked (operation.go)
//	returning   questions, then called again   input_required, then called by the retry
//
// Specification: basic/patterns/mrtr (2026-07-28).

// maxRounds bounds how often a handler of the returning style is called for one
// handshake-era request.
const maxRounds = 10

// inputRequired is the result that asks for input in the stateless era.
type inputRequired struct {
	requests map[string]inputRequest
	state    string // sealed; "" for none
	meta     mcp.Meta
}

// inputRequest is one question in it.
type inputRequest struct {
	method string
	params json.RawMessage
}

// retry is what a request brings when it answers an inputRequired.
type retry struct {
	responses map[string]json.RawMessage // by key; nil without any
	state     string                     // what the handler had returned as its state
}

// serve runs the handler of a request, in whatever way the request needs.
func (c *Call) serve() (any, error) {
	switch {
	case !c.method.input:
		return c.invoke()
	case !c.rev.stateless:
		return c.serveRounds()
	}
	parked, err := c.openRetry()
	if err != nil {
		return nil, invalidParams("%v", err)
	}
	if parked != nil {
		return c.requireInput(c.server.resume(c, parked))
	}
	if !c.mayAsk() {
		return c.requireInput(c.invoke())
	}
	return c.requireInput(c.startOperation())
}

// openRetry reads what a retry brings. It returns the sealed state when that
// belongs to a parked operation.
func (c *Call) openRetry() (*sealed, error) {
	if raw, ok := jsonrpc.Get(c.params.all, "inputResponses"); ok {
		if raw[0] != '{' {
			return nil, errors.New("params.inputResponses must be an object")
		}
		c.retry = &retry{responses: map[string]json.RawMessage{}}
		for key, value := range jsonrpc.Members(raw) {
			c.retry.responses[key] = value
		}
	}
	raw, ok := jsonrpc.Get(c.params.all, "requestState")
	if !ok {
		return nil, nil
	}
	text, ok := jsonrpc.Unquote(raw)
	if !ok {
		return nil, errors.New("params.requestState must be a string")
	}
	state, err := c.server.sealer.open(text, c.principal(), c.digest, time.Now())
	if err != nil {
		return nil, err
	}
	if state.Operation != "" {
		return state, nil
	}
	if c.retry == nil {
		c.retry = &retry{}
	}
	c.retry.state = state.State
	return nil, nil
}

// principal is who the request comes from, as far as the transport knows.
func (c *Call) principal() string {
	if info := c.request.TokenInfo(); info != nil {
		return info.UserID
	}
	return ""
}

// mayAsk tells whether the client could be asked anything. Most clients declare
// no such capability in most requests; their handlers need no goroutine of their own.
func (c *Call) mayAsk() bool {
	capabilities, _ := jsonrpc.Get(c.params.meta, mcp.MetaKeyClientCapabilities)
	for name := range jsonrpc.Members(capabilities) {
		switch name {
		case "elicitation", "sampling", "roots":
			return true
		}
	}
	return false
}

// wanted returns what a handler's result asks for; ok is false when it asks for nothing.
func wanted(result any) (requests mcp.InputRequestMap, state string, meta mcp.Meta, ok bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r != nil {
			requests, state, meta = r.InputRequests, r.RequestState, r.Meta
		}
	case *mcp.GetPromptResult:
		if r != nil {
			requests, state, meta = r.InputRequests, r.RequestState, r.Meta
		}
	case *mcp.ReadResourceResult:
		if r != nil {
			requests, state, meta = r.InputRequests, r.RequestState, r.Meta
		}
	}
	return requests, state, meta, requests != nil || state != ""
}

// requireInput turns a result that asks for input into what goes to the client.
func (c *Call) requireInput(result any, err error) (any, error) {
	requests, state, meta, ok := wanted(result)
	if err != nil || !ok {
		return result, err
	}
	asked, err := c.inputRequests(requests)
	if err != nil {
		return nil, err
	}
	required := &inputRequired{requests: asked, meta: meta}
	if state != "" {
		required.state, err = c.server.sealer.seal(sealed{
			State: state, Principal: c.principal(), Request: c.digest(),
			Expires: time.Now().Add(c.server.options.StateLifetime).Unix(),
		})
		if err != nil {
			return nil, err
		}
	}
	if len(asked) == 0 && state == "" {
		return nil, errors.New("the result asks for input without any request or state")
	}
	return required, nil
}

// inputRequests checks that the client can be asked all this, before anything is sent.
func (c *Call) inputRequests(requests mcp.InputRequestMap) (map[string]inputRequest, error) {
	asked := make(map[string]inputRequest, len(requests))
	var needed []string // all that is missing is told at once
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		method, capability, params, err := c.rev.inputRequest(requests[key])
		if err != nil {
			return nil, fmt.Errorf("input request %q: %w", key, err)
		}
		needed = append(needed, capability)
		asked[key] = inputRequest{method: method, params: params}
	}
	if err := c.request.RequireClientCapability(slices.Compact(slices.Sorted(slices.Values(needed)))...); err != nil {
		return nil, err
	}
	return asked, nil
}

// inputRequest tells how an input request is called, what it needs, and how this
// revision writes its params.
func (r *revision) inputRequest(request mcp.InputRequest) (method, capability string, params json.RawMessage, err error) {
	var p any = request
	switch v := request.(type) {
	case *mcp.ElicitParams:
		e := *v
		if e.Mode == "" {
			e.Mode = "form"
			if e.URL != "" {
				e.Mode = "url"
			}
		}
		method, capability, p = "elicitation/create", "elicitation."+e.Mode, &e
	case *mcp.CreateMessageParams:
		method, capability = "sampling/createMessage", "sampling"
	case *mcp.CreateMessageWithToolsParams:
		method, capability = "sampling/createMessage", "sampling.tools"
	case *mcp.ListRootsParams:
		method, capability = "roots/list", "roots"
	default:
		return "", "", nil, fmt.Errorf("a %T cannot be asked for", request)
	}
	if err = r.supports(p); err != nil {
		return "", "", nil, err
	}
	params, err = encodeParams(r.inputParams(p))
	if err == nil && params == nil {
		err = fmt.Errorf("it is a nil %T", request)
	}
	return method, capability, params, err
}

// appendInputRequired appends a result that asks for input. It carries no
// caching hints.
func (r *revision) appendInputRequired(b []byte, c *Call, v *inputRequired) ([]byte, error) {
	o := r.appendHead(b, c, resultInputRequired, v.meta)
	if len(v.requests) > 0 {
		o.key("inputRequests")
		inner := &object{b: append(o.b, '{')}
		for _, key := range slices.Sorted(maps.Keys(v.requests)) {
			request := v.requests[key]
			if inner.begun {
				inner.b = append(inner.b, ',')
			}
			inner.begun = true
			inner.b = jsonrpc.AppendString(inner.b, key)
			inner.b = append(inner.b, `:{"method":`...)
			inner.b = jsonrpc.AppendString(inner.b, request.method)
			inner.b = append(inner.b, `,"params":`...)
			inner.b = append(inner.b, request.params...)
			inner.b = append(inner.b, '}')
		}
		o.b = inner.end()
	}
	o.text("requestState", v.state)
	return o.end(), nil
}

// serveRounds serves a handshake-era request. As long as the handler returns
// input requests, the client is asked and the handler is called again.
func (c *Call) serveRounds() (any, error) {
	for round := 1; ; round++ {
		result, err := c.invoke()
		requests, state, _, ok := wanted(result)
		if err != nil || !ok {
			return result, err
		}
		if round == maxRounds {
			return nil, fmt.Errorf("the handler asked for input %d times", maxRounds)
		}
		responses, err := c.askAll(requests)
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

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return cancellation.Checkpoint(ctx)
	}
}

// askAll puts all questions to the client at once and waits for all answers. The
// first failure ends the wait.
func (c *Call) askAll(requests mcp.InputRequestMap) (map[string]json.RawMessage, error) {
	asked, err := c.inputRequests(requests)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(c.source.Context())
	defer cancel(nil)
	var mu sync.Mutex // guards responses
	responses := make(map[string]json.RawMessage, len(asked))
	var wait sync.WaitGroup
	for key, request := range asked {
		wait.Go(func() {
			raw, err := c.ask(ctx, request.method, request.params)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			responses[key] = raw
			mu.Unlock()
		})
	}
	wait.Wait()
	if len(responses) < len(asked) {
		return nil, context.Cause(ctx)
	}
	return responses, nil
}

// answered is what the client has answered so far.
func (c *Call) answered() retry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retry == nil {
		return retry{}
	}
	return *c.retry
}

var errNoInput = fmt.Errorf("%w: only tools/call, prompts/get and resources/read can ask for input", servercontext.ErrNotSupported)
