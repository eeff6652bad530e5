package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calledTool is the tool that a tools/call names, nil when there is no such tool.
func calledTool(c *Call) *tool {
	name, ok := jsonrpc.Unquote(c.params.name)
	if !ok {
		return nil
	}
	return c.reg.tools[name]
}

// CalledTool is the tool that a tools/call is for and what its registration says to
// the extension with that id, for middleware. The tool is nil when ctx belongs to
// another request, or when there is no such tool for its client. It must not be changed.
func CalledTool(ctx context.Context, req *servercontext.Request, extension string) (t *mcp.Tool, said any) {
	c := callFrom(ctx)
	if c == nil || c.method.name != methodCallTool {
		return nil, nil
	}
	name, _ := jsonrpc.Unquote(c.paramsOf(req).name)
	if found := c.findTool(ctx, name); found != nil {
		return found.definition, found.options.Extensions[extension]
	}
	return nil, nil
}

// RegisteredTool is the tool of that name and what its registration says to the
// extension with that id; nil when there is none. It must not be changed.
func (s *Server) RegisteredTool(name, extension string) (t *mcp.Tool, said any) {
	if found := s.current().tools[name]; found != nil {
		return found.definition, found.options.Extensions[extension]
	}
	return nil, nil
}

// handleCallTool serves tools/call.
//
// Specification: server/tools, calling tools.
func handleCallTool(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	params := c.paramsOf(req)
	name, ok := jsonrpc.Unquote(params.name)
	if !ok {
		return nil, invalidParams("params.name is required and must be a string")
	}
	t := c.findTool(ctx, name)
	if t == nil {
		return nil, invalidParams("unknown tool %q", bounded(name))
	}
	arguments := json.RawMessage(params.arguments)
	if len(arguments) == 0 || string(arguments) == "null" { // what Go clients make of a nil map
		arguments = json.RawMessage("{}")
	} else if arguments[0] != '{' {
		return nil, invalidParams("params.arguments must be an object")
	}
	arguments, err := t.input.Prepare(arguments)
	if err != nil {
		// A result, not a protocol error, so that the model can mend its call (SEP-1303).
		return nil, fmt.Errorf("invalid arguments: %w", err)
	}
	result, err := t.call(ctx, req, arguments)
	if err != nil {
		return nil, err
	}
	if result == nil {
		result = &mcp.CallToolResult{}
	}
	if result, err = t.checkOutput(result); err != nil {
		c.log().Error("tool result does not fit its output schema", "error", err)
		return nil, fmt.Errorf("the tool's result does not fit its output schema: %w", err)
	}
	return result, nil
}

// checkOutput validates structured content. A result that reports an error
// needs none. It returns the result with its structured content encoded: in a
// copy, since handlers may give the same one to several requests.
func (t *tool) checkOutput(r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if t.output == nil || r.IsError || len(r.InputRequests) > 0 || r.RequestState != "" {
		return r, nil
	}
	if r.StructuredContent == nil {
		return nil, fmt.Errorf("structured content is missing")
	}
	raw, ok := r.StructuredContent.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = appendJSON(nil, r.StructuredContent); err != nil {
			return nil, err
		}
		encoded := *r
		encoded.StructuredContent = raw
		r = &encoded
	}
	return r, t.output.Validate(raw)
}

// projectTool leaves out of a tool what the revision does not have.
func (r *revision) projectTool(t *mcp.Tool) *mcp.Tool {
	p := *t
	if !r.urlElicitation {
		p.Icons = nil
	}
	if !r.structured {
		p.Title, p.OutputSchema, p.Meta = "", nil, nil
	}
	if !r.toolAnnotations {
		p.Annotations = nil
	}
	if raw, ok := p.OutputSchema.(json.RawMessage); ok && !r.anySchemaRoot && !rootIsObject(raw) {
		p.OutputSchema = wrapSchema(raw)
	}
	return &p
}

func rootIsObject(raw json.RawMessage) bool {
	t, _ := jsonrpc.Get(raw, "type")
	return string(t) == `"object"`
}
