package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	R1  A call on a session reaches the client as a message of that session's
//	    request, or not at all.
//	R2  A call on the session of a cancelled request returns the cancellation at
//	    once, whatever context it was given.
//	R3  A progress token reaches the client exactly as the client sent it.

// ErrNoRequest is returned by a session's calls to the client when no request
// is running that they could belong to.
var ErrNoRequest = errors.New("gosdk: the session's request has ended; a client can only be called while one of its requests is served")

// route is the sending middleware of the official runtime: it takes the
// messages of all virtual sessions and has the request they belong to send them.
func (r *runtime) route(ctx context.Context, method string, call mcp.Request) (mcp.Result, error) {
	ss, ok := call.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, errUnrouted
	}
	if s := scopeOf(ctx, ss); s != nil && s.sending != nil {
		return s.sending.current()(ctx, method, call)
	}
	return r.send(ctx, method, call)
}

// send is route behind the sending middleware of a [Server].
func (r *runtime) send(ctx context.Context, method string, call mcp.Request) (mcp.Result, error) {
	ss, ok := call.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, errUnrouted
	}
	var req *servercontext.Request
	if s := scopeOf(ctx, ss); s != nil {
		req = s.request
	}
	if strings.HasPrefix(method, "notifications/") {
		if req == nil {
			return nil, nil
		}
		return nil, notify(ctx, req, method, call.GetParams())
	}
	if req == nil {
		return nil, fmt.Errorf("%s: %w", method, ErrNoRequest)
	}
	if method == "ping" {
		if err := req.Ping(ctx); err != nil {
			return nil, sessionError(req, err)
		}
		return r.pong(ctx, ss)
	}
	result, err := ask(ctx, req, method, call.GetParams())
	if err != nil {
		return nil, sessionError(req, err)
	}
	return result, nil
}

// pong is the official SDK's own empty result, which ServerSession.Ping insists on
// and which cannot be made outside of that SDK: its answer to a ping.
func (r *runtime) pong(ctx context.Context, ss *mcp.ServerSession) (mcp.Result, error) {
	return r.receive(ctx, "ping", &mcp.ServerRequest[*mcp.PingParams]{Session: ss})
}

// notify sends a notification as part of req.
func notify(ctx context.Context, req *servercontext.Request, method string, params mcp.Params) error {
	if req.Cancelled() {
		return req.Token().Err()
	}
	switch p := params.(type) {
	case *mcp.ProgressNotificationParams:
		if !ownToken(req, p.ProgressToken) {
			return cancellation.Checkpoint(ctx)
		}
		return req.Progress(ctx, p.Progress, p.Total, p.Message)
	case *mcp.LoggingMessageParams:
		if !req.LogEnabled(p.Level) {
			return nil
		}
		return req.Notify(method, p)
	case *mcp.ElicitationCompleteParams:
		if req.ProtocolVersion() != virtualVersion {
			return nil // only 2025-11-25 has it
		}
		return req.Notify(method, p)
	case nil:
		return req.Notify(method, nil)
	default:
		return req.Notify(method, p)
	}
}

// ownToken tells whether a progress token is the request's. Handlers have it from
// the decoded params, where a large number is not exact, so the decoded ones are
// compared, and the exact one is sent (R3).
func ownToken(req *servercontext.Request, token any) bool {
	own := req.Meta()["progressToken"]
	if own == nil || token == nil {
		return false
	}
	a, err := json.Marshal(own)
	if err != nil {
		return false
	}
	b, err := json.Marshal(token)
	return err == nil && string(a) == string(b)
}

// ask calls the client as part of req.
func ask(ctx context.Context, req *servercontext.Request, method string, params mcp.Params) (mcp.Result, error) {
	switch p := params.(type) {
	case *mcp.ElicitParams:
		return orNil(req.Elicit(ctx, p))
	case *mcp.CreateMessageParams:
		return createMessage(ctx, req, p)
	case *mcp.CreateMessageWithToolsParams:
		if plain := withoutTools(req, p); plain != nil {
			return createMessage(ctx, req, plain)
		}
		return orNil(req.CreateMessageWithTools(ctx, p))
	}
	if method == "roots/list" {
		return orNil(req.ListRoots(ctx))
	}
	return nil, fmt.Errorf("%s: %w", method, servercontext.ErrNotSupported)
}

// orNil keeps a nil pointer from becoming a result that is not nil.
func orNil[R any, P interface {
	*R
	mcp.Result
}](result P, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

func createMessage(ctx context.Context, req *servercontext.Request, p *mcp.CreateMessageParams) (mcp.Result, error) {
	one, err := req.CreateMessage(ctx, p)
	if err != nil {
		return nil, err
	}
	result := &mcp.CreateMessageWithToolsResult{Meta: one.Meta, Model: one.Model, Role: one.Role, StopReason: one.StopReason}
	if one.Content != nil {
		result.Content = []mcp.Content{one.Content}
	}
	return result, nil
}

// withoutTools returns p as a plain sampling request, for clients that know only those;
// nil when the client knows more, or when p needs more.
func withoutTools(req *servercontext.Request, p *mcp.CreateMessageWithToolsParams) *mcp.CreateMessageParams {
	if len(p.Tools) > 0 || p.ToolChoice != nil || req.HasClientCapability("sampling.tools") {
		return nil
	}
	messages := make([]*mcp.SamplingMessage, 0, len(p.Messages))
	for _, m := range p.Messages {
		if m == nil || len(m.Content) != 1 {
			return nil
		}
		messages = append(messages, &mcp.SamplingMessage{Content: m.Content[0], Role: m.Role})
	}
	return &mcp.CreateMessageParams{
		Meta: p.Meta, IncludeContext: p.IncludeContext, MaxTokens: p.MaxTokens, Messages: messages,
		Metadata: p.Metadata, ModelPreferences: p.ModelPreferences, StopSequences: p.StopSequences,
		SystemPrompt: p.SystemPrompt, Temperature: p.Temperature,
	}
}

// sessionError gives an error the form that official code expects. In a client's error
// errors.As finds a *jsonrpc.Error. What the server itself refuses is none in the handshake era,
// so that a tool that returns it makes a tool error; in the stateless era the client
// is to learn which capability it should have declared.
func sessionError(req *servercontext.Request, err error) error {
	var peer *server.PeerError
	var rpc *sdkrpc.Error
	switch {
	case errors.As(err, &peer):
		return &clientError{peer}
	case errors.As(err, &rpc) && !req.Stateless():
		return &plainError{err}
	}
	return err
}
