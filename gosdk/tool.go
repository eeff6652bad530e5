package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	segment "github.com/segmentio/encoding/json"
)

// ToolAdder is what tools can be added to: a *server.Server, or a [Server].
type ToolAdder interface {
	AddRawTool(t *mcp.Tool, handler server.RawToolHandler, options ...*server.ToolOptions) error
}

// AddTool adds a tool whose handler was written for mcp.AddTool. Schemas that t
// does not have are inferred as the official SDK infers them. options may give the tool
// limits of its own.
//
// It returns a *server.RegistrationError where mcp.AddTool panics, and when the
// name is not 1 to 128 of A-Z, a-z, 0-9, _, - and ., or t or h is nil. A tool of the
// same name is replaced.
func AddTool[In, Out any](s ToolAdder, t *mcp.Tool, h mcp.ToolHandlerFor[In, Out], options ...*server.ToolOptions) error {
	if t == nil || h == nil {
		return registrationError(t, errors.New("the tool or its handler is nil"))
	}
	definition := *t
	if err := inferInput[In](&definition); err != nil {
		return registrationError(t, fmt.Errorf("input schema: %w", err))
	}
	output, err := newOutput[Out](&definition)
	if err != nil {
		return registrationError(t, fmt.Errorf("output schema: %w", err))
	}
	return s.AddRawTool(&definition, func(ctx context.Context, req *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		call, err := callOf[mcp.CallToolParamsRaw](ctx, scope, req)
		if err != nil {
			return nil, err
		}
		var in In
		if _, err := segment.Parse(arguments, &in, segment.DontMatchCaseInsensitiveStructFields); err != nil {
			return nil, fmt.Errorf("invalid arguments: %w", err)
		}
		result, out, err := h(ctx, call, in)
		if err != nil {
			return nil, typedToolError(err)
		}
		return output.fill(result, out)
	}, options...)
}

// MustAddTool is AddTool that panics where that returns an error, as mcp.AddTool does.
func MustAddTool[In, Out any](s ToolAdder, t *mcp.Tool, h mcp.ToolHandlerFor[In, Out], options ...*server.ToolOptions) {
	if err := AddTool(s, t, h, options...); err != nil {
		panic(err)
	}
}

// AddRawTool adds a tool whose handler was written for mcp.Server.AddTool. t needs an
// input schema, with which arguments are validated before the handler gets them as
// they were sent; options may give the tool limits of its own. See [AddTool] for the errors.
func AddRawTool(s ToolAdder, t *mcp.Tool, h mcp.ToolHandler, options ...*server.ToolOptions) error {
	if t == nil || h == nil {
		return registrationError(t, errors.New("the tool or its handler is nil"))
	}
	return s.AddRawTool(t, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		call, err := callOf[mcp.CallToolParamsRaw](ctx, scope, req)
		if err != nil {
			return nil, err
		}
		result, err := h(ctx, call)
		return result, protocolError(req, err)
	}, options...)
}

func registrationError(t *mcp.Tool, err error) error {
	e := &server.RegistrationError{Kind: "tool", Err: err}
	if t != nil {
		e.Name = t.Name
	}
	return e
}

// output makes results of what a typed handler returns.
type output[Out any] struct {
	zero     any       // instead of a nil Out, whose schema is that of what it points to; nil: none
	defaults *defaults // of the tool's own output schema; nil: none
}

// fill completes result with out, as the official SDK does: structured content,
// and a copy as text unless there is other content that says it.
func (o *output[Out]) fill(result *mcp.CallToolResult, out Out) (*mcp.CallToolResult, error) {
	if result == nil {
		result = &mcp.CallToolResult{}
	}
	var value any = out
	if o.zero != nil && reflect.ValueOf(&out).Elem().IsZero() {
		value = o.zero
	}
	if value == nil || result.InputRequests != nil {
		return result, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the tool's result cannot be encoded: %w", err)
	}
	if raw, err = o.defaults.apply(raw); err != nil {
		return nil, err
	}
	result.StructuredContent = json.RawMessage(raw)
	if result.Content == nil || raw[0] != '{' {
		result.Content = append(result.Content, &mcp.TextContent{Text: string(raw)})
	}
	return result, nil
}
