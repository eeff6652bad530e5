package server

import (
	"context"
	"encoding/json"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// initialize serves the handshake on the reading goroutine, since all that
// follows depends on it. It is not registered: nothing can cancel it.
//
// Specification: basic/lifecycle (2025-11-25); basic/utilities/cancellation: the
// initialize request must not be cancelled.
func (ss *Session) initialize(c *Call) {
	c.left = true // it was never in the session's calls
	result, err := c.invoke()
	if err == nil {
		if e := ss.settle(c); e != nil {
			result, err = nil, e
		}
	}
	c.source.Finish()
	c.answer(result, err)
	if err != nil {
		c.logFailure(err)
	}
}

// settle notes what the handshake agreed on. It is called before the answer is
// written, so that no later message can come too early.
func (ss *Session) settle(c *Call) error {
	info, _ := jsonrpc.Get(c.params.all, "clientInfo")
	capabilities, _ := jsonrpc.Get(c.params.all, "capabilities")
	client, err := ss.server.clients.describe(info, capabilities)
	if err != nil {
		return invalidParams("%v", err)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case ss.closed != nil:
		return errSessionEnded
	case ss.rev != nil: // by another request, at the same time
		return errInitialized
	}
	ss.rev = c.rev
	ss.client = client
	ss.phase = phaseInitialized
	return nil
}

var (
	errInitialized  = &sdkrpc.Error{Code: sdkrpc.CodeInvalidRequest, Message: "the session is initialized already"}
	errSessionEnded = &sdkrpc.Error{Code: sdkrpc.CodeInvalidRequest, Message: "the session has ended"}
)

func (ss *Session) clientInfo() *servercontext.Client {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.client
}

func (s *Server) handleInitialize(ctx context.Context, req *servercontext.Request) (any, error) {
	params := req.Params()
	version, ok := jsonrpc.Get(params, "protocolVersion")
	if _, isText := jsonrpc.Unquote(version); !ok || !isText {
		return nil, invalidParams("params.protocolVersion is required and must be a string")
	}
	if info, ok := jsonrpc.Get(params, "clientInfo"); ok && info[0] != '{' {
		return nil, invalidParams("params.clientInfo must be an object")
	}
	if capabilities, ok := jsonrpc.Get(params, "capabilities"); ok && capabilities[0] != '{' {
		return nil, invalidParams("params.capabilities must be an object")
	}
	c := callFrom(ctx)
	return &mcp.InitializeResult{
		ProtocolVersion: c.rev.version,
		Capabilities:    s.capabilities(c.reg, c.rev),
		Instructions:    s.options.Instructions,
		ServerInfo:      c.rev.implementation(s.implementation),
	}, nil
}

func (s *Server) handleDiscover(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	return c.reg.pages.result(pageKey{method: methodDiscover, rev: c.rev}, func() any {
		return &mcp.DiscoverResult{
			SupportedVersions: s.versions(),
			Capabilities:      s.capabilities(c.reg, c.rev),
			Instructions:      s.options.Instructions,
			Cacheable:         s.hint(methodDiscover, false),
		}
	}), nil
}

func handlePing(context.Context, *servercontext.Request) (any, error) { return struct{}{}, nil }

// handleInitialized serves notifications/initialized: from now on the client may be
// told of changes, and is pinged if the operator wants that.
func handleInitialized(ctx context.Context, _ *servercontext.Request) (any, error) {
	ss := callFrom(ctx).session
	ss.armAnnouncements()
	ss.startKeepAlive()
	return nil, nil
}

func handleSetLevel(ctx context.Context, req *servercontext.Request) (any, error) {
	raw, _ := jsonrpc.Get(req.Params(), "level")
	var level mcp.LoggingLevel
	if err := json.Unmarshal(raw, &level); err != nil || servercontext.Severity(level) == 0 {
		return nil, invalidParams("params.level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	callFrom(ctx).session.setLevel(level)
	return struct{}{}, nil
}
