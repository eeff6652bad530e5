package server

import (
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What an error becomes on the wire. The peer gets what the protocol allows,
// operators get the whole story (log.go).

var errDraining = &sdkrpc.Error{
	Code:    sdkrpc.CodeInternalError,
	Message: "the server is shutting down",
	Data:    json.RawMessage(`{"origin":"shutdown"}`),
}

var errInternal = &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "internal error"}

// protocolError is the JSON-RPC error that err becomes.
func (c *Call) protocolError(err error) *sdkrpc.Error {
	var panicked *panicError
	var cancelled *cancellation.Error
	var rpc *sdkrpc.Error
	switch {
	case errors.As(err, &panicked):
		return errInternal
	case errors.As(err, &rpc):
		if len(rpc.Data) > 0 && jsonrpc.Valid(rpc.Data, jsonrpc.Limits{}) != nil {
			// Sent as it is, the answer would be no JSON and could end the session.
			c.log().Error("the data of an error is not valid JSON", "error", rpc.Message, "data", bounded(string(rpc.Data)))
			rpc = &sdkrpc.Error{Code: rpc.Code, Message: rpc.Message}
		}
		return c.rev.projectError(rpc)
	case errors.As(err, &cancelled) && cancelled == c.source.Requested():
		data, _ := json.Marshal(map[string]string{"origin": cancelled.Origin.String()})
		return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: cancelled.Error(), Data: data}
	}
	return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: c.errorText(err)}
}

// toolError is the tool result that err becomes, so that a model can see what
// went wrong; nil when it is to be a protocol error.
//
// Specification: server/tools, error handling.
func (c *Call) toolError(err error) *mcp.CallToolResult {
	var panicked *panicError
	var rpc *sdkrpc.Error
	if errors.As(err, &panicked) || errors.As(err, &rpc) {
		return nil
	}
	text := ""
	if cancelled := c.source.Requested(); cancelled != nil && errors.Is(err, error(cancelled)) {
		text = cancelled.Error()
	} else {
		text = c.errorText(err)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// errorText is the operator's choice of what to tell; a choice that panics tells
// nothing.
func (c *Call) errorText(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			c.log().Error("ErrorText panicked", "panic", p)
			text = errInternal.Message
		}
	}()
	return c.server.options.ErrorText(err)
}

// projectError keeps codes away from revisions that do not have them.
func (r *revision) projectError(e *sdkrpc.Error) *sdkrpc.Error {
	code := e.Code
	switch code {
	case 0:
		// Not a code: JSON-RPC has it for nothing, transports take it for success.
		code = sdkrpc.CodeInternalError
	case mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion:
		if !r.stateless {
			code = sdkrpc.CodeInvalidRequest
		}
	case mcp.CodeURLElicitationRequired:
		if !r.urlElicitation || r.stateless {
			code = sdkrpc.CodeInvalidRequest
		}
	case codeResourceNotFound:
		code = int64(r.notFound)
	}
	if code == e.Code {
		return e
	}
	projected := *e
	projected.Code = code
	return &projected
}

// log is the operator's logger with what identifies the request.
func (c *Call) log() *slog.Logger {
	l := c.server.options.Logger.With("method", c.method.name, "id", bounded(c.id.String()))
	if name := c.name(); name != "" {
		l = l.With("name", bounded(name))
	}
	if id := c.session.ID(); id != "" {
		l = l.With("session", id)
	}
	return l
}

func (c *Call) hookPanicked(value any, stack []byte) {
	c.log().Error("cancellation hook panicked", "panic", value, "stack", string(stack))
}
