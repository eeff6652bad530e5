package servercontext

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods a server may send to its client.
const (
	methodElicit        = "elicitation/create"
	methodCreateMessage = "sampling/createMessage"
	methodListRoots     = "roots/list"
	methodPing          = "ping"
)

// Elicit asks the client's user for input: a form (RequestedSchema) or, when
// URL is set, a page to visit. It blocks until the user has accepted, declined
// or cancelled the dialogue, which is a result and no error.
//
// It works in every revision that has elicitation. Returned when: params is nil; the client did not
// declare the capability or the mode ([Request.RequireClientCapability]); the
// request was cancelled (its [cancellation.Error], at once, whatever ctx is);
// ctx ended; the server's limit for calls to the client expired; the
// client answered with an error; the accepted content does not fit the schema.
//
// Specification: client/elicitation.
func (r *Request) Elicit(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if params == nil {
		return nil, errNoParams(methodElicit)
	}
	p := *params
	if p.Mode == "" {
		p.Mode = "form"
		if p.URL != "" {
			p.Mode = "url"
		}
	}
	if err := r.RequireClientCapability("elicitation." + p.Mode); err != nil {
		return nil, err
	}
	form, err := compileForm(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	res, err := ask[mcp.ElicitResult](ctx, r, methodElicit, &p)
	if err != nil {
		return nil, err
	}
	switch res.Action {
	case "accept", "decline", "cancel":
		return res, fill(form, res)
	}
	return nil, fmt.Errorf("%s: the client answered with an unknown action", methodElicit)
}

// CreateMessage asks the client to sample its language model. It blocks and
// fails as [Request.Elicit] does. From 2025-11-25 on a client may write its content as an
// array; one with several blocks is an error here, and is what [Request.CreateMessageWithTools] returns.
//
// Specification: client/sampling. The feature is deprecated from 2026-07-28 on.
func (r *Request) CreateMessage(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if params == nil {
		return nil, errNoParams(methodCreateMessage)
	}
	if err := r.RequireClientCapability("sampling"); err != nil {
		return nil, err
	}
	p := *params
	if p.Messages == nil {
		p.Messages = []*mcp.SamplingMessage{}
	}
	raw, err := r.options().Host.Input(ctx, methodCreateMessage, &p)
	if err != nil {
		return nil, err
	}
	return decodeSample(raw)
}

// CreateMessageWithTools is CreateMessage with tools that the model may ask to
// use; the client must have declared sampling.tools.
//
// Specification: client/sampling (2025-11-25).
func (r *Request) CreateMessageWithTools(ctx context.Context, params *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
	if params == nil {
		return nil, errNoParams(methodCreateMessage)
	}
	if err := r.RequireClientCapability("sampling.tools"); err != nil {
		return nil, err
	}
	p := *params
	if p.Messages == nil {
		p.Messages = []*mcp.SamplingMessageV2{}
	}
	return ask[mcp.CreateMessageWithToolsResult](ctx, r, methodCreateMessage, &p)
}

// ListRoots asks the client for its roots. It blocks and fails as
// [Request.Elicit] does.
//
// Specification: client/roots. The feature is deprecated from 2026-07-28 on.
func (r *Request) ListRoots(ctx context.Context) (*mcp.ListRootsResult, error) {
	if err := r.RequireClientCapability("roots"); err != nil {
		return nil, err
	}
	return ask[mcp.ListRootsResult](ctx, r, methodListRoots, struct{}{})
}

// errNoParams is returned to a handler that asks for something without saying what.
func errNoParams(method string) error { return fmt.Errorf("%s: params must not be nil", method) }

func ask[R any](ctx context.Context, r *Request, method string, params any) (*R, error) {
	raw, err := r.options().Host.Input(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return decodeResult[R](method, raw)
}

func decodeResult[R any](method string, raw json.RawMessage) (*R, error) {
	res := new(R)
	if err := json.Unmarshal(raw, res); err != nil {
		return nil, malformed(method, raw)
	}
	return res, nil
}

// decodeSample decodes the result of a sampling without tools. The official type has one
// block of content, the wire may have it in an array.
func decodeSample(raw json.RawMessage) (*mcp.CreateMessageResult, error) {
	content, _ := jsonrpc.Get(raw, "content")
	if len(content) == 0 || content[0] != '[' {
		return decodeResult[mcp.CreateMessageResult](methodCreateMessage, raw)
	}
	many, err := decodeResult[mcp.CreateMessageWithToolsResult](methodCreateMessage, raw)
	if err != nil {
		return nil, err
	}
	if n := len(many.Content); n != 1 {
		return nil, fmt.Errorf("%s: the client answered with %d blocks of content instead of one", methodCreateMessage, n)
	}
	switch many.Content[0].(type) {
	case *mcp.TextContent, *mcp.ImageContent, *mcp.AudioContent:
	default:
		return nil, fmt.Errorf("%s: the client wants to use a tool, of which it was given none", methodCreateMessage)
	}
	return &mcp.CreateMessageResult{
		Meta: many.Meta, Content: many.Content[0], Model: many.Model, Role: many.Role, StopReason: many.StopReason,
	}, nil
}

// malformed is the error for a result that cannot be decoded. It shows some of that, and not
// what the decoder says: the names of its types are nobody's business.
func malformed(method string, raw json.RawMessage) error {
	return fmt.Errorf("%s: the client's result is malformed: %q", method, raw[:min(len(raw), 200)])
}

// Ping asks the client for a sign of life and waits for it. It returns
// [ErrNotSupported] in the stateless era, which has no ping.
//
// Specification: basic/utilities/ping (2025-11-25).
func (r *Request) Ping(ctx context.Context) error {
	_, err := r.options().Host.Call(ctx, methodPing, struct{}{})
	return err
}

// Call sends a request of any method to the client and decodes its result into
// result, which may be nil. It returns [ErrNotSupported] in the stateless
// era, where servers send no requests.
func (r *Request) Call(ctx context.Context, method string, params, result any) error {
	raw, err := r.options().Host.Call(ctx, method, params)
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return malformed(method, raw)
	}
	return nil
}

// Notify sends a notification that belongs to this request. It is dropped
// without an error once the request was cancelled or has ended. Returned
// when: params cannot be encoded, the peer is gone.
func (r *Request) Notify(method string, params any) error {
	return r.options().Host.Notify(method, params)
}

// InputResponses are the answers that a retry of this request brought for the
// input requests of the round before; entries of an unknown shape are left
// out. Handlers in the explicit style return InputRequests in their result and
// are called again with these.
//
// Specification: basic/patterns/mrtr (2026-07-28).
func (r *Request) InputResponses() mcp.InputResponseMap {
	raw := r.options().Host.InputResponses()
	if len(raw) == 0 {
		return nil
	}
	m := make(mcp.InputResponseMap, len(raw))
	for key, value := range raw {
		// The official map type fails as a whole on one entry it does not know.
		var one mcp.InputResponseMap
		entry, err := json.Marshal(map[string]json.RawMessage{key: value})
		if err == nil && json.Unmarshal(entry, &one) == nil && one[key] != nil {
			m[key] = one[key]
		}
	}
	return m
}

// RequestState is the state that the handler put into the result of the round
// before, verified to be unchanged; "" in the first round.
//
// Specification: basic/patterns/mrtr (2026-07-28).
func (r *Request) RequestState() string { return r.options().Host.RequestState() }
