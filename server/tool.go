package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/heedmcp/heed/internal/schema"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ToolOptions are limits and habits of one tool. The zero value has none of its own.
type ToolOptions struct {
	// Timeout limits each call, instead of [Options.Timeout]; 0: that one holds;
	// negative: no limit but the hard maximum.
	Timeout time.Duration
	// MaxTimeout is the hard maximum, instead of [Options.MaxTimeout]; 0: that one holds.
	MaxTimeout time.Duration
	// ResetOnProgress starts the limit anew with each progress report.
	ResetOnProgress bool
	// MaxConcurrent bounds the calls of this tool that run at once; further ones
	// wait, and can be cancelled while they do. 0: no bound.
	MaxConcurrent int
	// NoText leaves out the text copy of a structured result, to save tokens.
	NoText bool
	// Extensions are what extensions should know of the tool, by their ids.
	Extensions map[string]any
}

// ToolHandler is the handler of a typed tool. In is a struct (or map) that the
// arguments are decoded into; Out becomes the result:
//
//   - *mcp.CallToolResult is sent as it is,
//   - a string, a mcp.Content or a []mcp.Content is the content,
//   - anything else is the structured content, with a copy as JSON text.
//
// An error becomes a result with isError, which the model gets to see, except
// for a *jsonrpc.Error of the official SDK, which becomes a protocol error.
type ToolHandler[In, Out any] func(ctx context.Context, req *servercontext.Request, in In) (Out, error)

// RawToolHandler is the handler of a tool that takes its arguments as they
// were sent, after validation against the tool's schema. They must not be changed.
type RawToolHandler func(ctx context.Context, req *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error)

// tool is a registered tool. It never changes, but for its slots.
type tool struct {
	definition *mcp.Tool // a copy; schemas are json.RawMessage
	options    ToolOptions
	input      *schema.Schema
	output     *schema.Schema // nil: not validated
	call       RawToolHandler // validated arguments in
	headers    []ParamHeader
	slots      slots
}

// AddTool registers a tool whose arguments and result are Go types. The tool's
// input and output schemas are inferred from In and Out unless t has its own;
// arguments are validated, and defaults applied, before the handler runs, and
// structured results are validated before they are sent. A tool of the same
// name is replaced.
//
// It is an error when the name is not 1 to 128 of A-Z, a-z, 0-9, _, - and ., when In
// is no object, when a schema cannot be inferred or compiled, or when the
// handler is nil. t is copied.
//
// Specification: server/tools.
func AddTool[In, Out any](s *Server, t *mcp.Tool, handler ToolHandler[In, Out], options ...*ToolOptions) error {
	if t == nil {
		return &RegistrationError{Kind: "tool", Err: errors.New("the tool is nil")}
	}
	fail := func(err error) error { return &RegistrationError{Kind: "tool", Name: t.Name, Err: err} }
	if handler == nil {
		return fail(errors.New("the handler is nil"))
	}
	definition := *t
	if definition.InputSchema == nil {
		inferred, err := schemaFor[In]()
		if err != nil {
			return fail(fmt.Errorf("input: %w", err))
		}
		definition.InputSchema = json.RawMessage(`{"type":"object"}`)
		if inferred != nil {
			definition.InputSchema = inferred
		}
	}
	shape := shapeOf[Out]()
	if definition.OutputSchema == nil && shape == shapeStructured {
		inferred, err := outputSchemaFor[Out]()
		if err != nil {
			return fail(fmt.Errorf("output: %w", err))
		}
		if inferred != nil {
			definition.OutputSchema = inferred
		}
	}
	var o ToolOptions
	if len(options) > 0 && options[0] != nil {
		o = *options[0]
	}
	_, rawIn := any(new(In)).(*json.RawMessage)
	call := func(ctx context.Context, req *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		var in In
		if rawIn {
			*any(&in).(*json.RawMessage) = arguments
		} else if err := schema.Decode(arguments, &in); err != nil {
			return nil, fmt.Errorf("invalid arguments: %w", err)
		}
		out, err := handler(ctx, req, in)
		if err != nil {
			return nil, err
		}
		return toolResult(shape, out, o.NoText)
	}
	return s.addTool(&definition, call, o)
}

// MustAddTool is AddTool for tools that are known to be good; it panics where
// AddTool returns an error.
func MustAddTool[In, Out any](s *Server, t *mcp.Tool, handler ToolHandler[In, Out], options ...*ToolOptions) {
	if err := AddTool(s, t, handler, options...); err != nil {
		panic(err)
	}
}

// AddRawTool registers a tool that takes its arguments raw. t needs an input
// schema: anything that encodes to a JSON Schema with "type":"object". It is listed byte for byte
// as given, unknown keywords included, and enforced. See [AddTool] for the errors.
func (s *Server) AddRawTool(t *mcp.Tool, handler RawToolHandler, options ...*ToolOptions) error {
	switch {
	case t == nil:
		return &RegistrationError{Kind: "tool", Err: errors.New("the tool is nil")}
	case handler == nil:
		return &RegistrationError{Kind: "tool", Name: t.Name, Err: errors.New("the handler is nil")}
	case t.InputSchema == nil:
		return &RegistrationError{Kind: "tool", Name: t.Name, Err: errors.New("a raw tool needs an input schema")}
	}
	var o ToolOptions
	if len(options) > 0 && options[0] != nil {
		o = *options[0]
	}
	definition := *t
	return s.addTool(&definition, handler, o)
}

// MustAddRawTool is AddRawTool that panics where that returns an error.
func (s *Server) MustAddRawTool(t *mcp.Tool, handler RawToolHandler, options ...*ToolOptions) {
	if err := s.AddRawTool(t, handler, options...); err != nil {
		panic(err)
	}
}

// RemoveTools takes tools away. Calls that are running go on. Unknown names are
// ignored.
func (s *Server) RemoveTools(names ...string) {
	s.register(func(r *registry) {
		for _, name := range names {
			delete(r.tools, name)
		}
	})
	s.publish(event{kind: eventToolsChanged})
}

func (s *Server) addTool(definition *mcp.Tool, call RawToolHandler, o ToolOptions) error {
	fail := func(err error) error {
		return &RegistrationError{Kind: "tool", Name: definition.Name, Err: err}
	}
	if err := checkToolName(definition.Name); err != nil {
		return fail(err)
	}
	t := &tool{definition: definition, options: o, call: call}
	t.slots.init(o.MaxConcurrent)
	var err error
	if t.input, err = compileSchema(&definition.InputSchema); err != nil {
		return fail(fmt.Errorf("input schema: %w", err))
	}
	if !t.input.IsObject() {
		return fail(errors.New(`input schema: the root must have "type":"object"`))
	}
	headers, err := t.input.Headers()
	if err != nil {
		return fail(fmt.Errorf("input schema: %w", err))
	}
	for _, h := range headers {
		t.headers = append(t.headers, ParamHeader(h))
	}
	if definition.OutputSchema != nil {
		if t.output, err = compileSchema(&definition.OutputSchema); err != nil {
			return fail(fmt.Errorf("output schema: %w", err))
		}
	}
	if _, err := appendJSON(nil, definition); err != nil {
		return fail(err)
	}
	if err := s.checkItem(definition.Icons, definition.Meta); err != nil {
		return fail(err)
	}
	s.register(func(r *registry) {
		r.tools[definition.Name] = t
		r.had |= hasTools
	})
	s.publish(event{kind: eventToolsChanged})
	return nil
}

// compileSchema compiles what a user gave as a schema and replaces it by its raw text.
// One that was inferred is compiled already.
func compileSchema(given *any) (*schema.Schema, error) {
	if inferred, ok := (*given).(*schema.Schema); ok {
		*given = inferred.Raw()
		return inferred, nil
	}
	raw, err := appendJSON(nil, *given)
	if err != nil {
		return nil, err
	}
	compiled, err := schema.Compile(raw, nil)
	if err != nil {
		return nil, err
	}
	*given = compiled.Raw()
	return compiled, nil
}

// schemaFor infers a schema, nil for types that take any JSON.
func schemaFor[T any]() (*schema.Schema, error) {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return nil, nil
	}
	return schema.Infer(t)
}

// outputSchemaFor is schemaFor for what a handler returns: there nil slices and
// maps are written as null.
func outputSchemaFor[T any]() (*schema.Schema, error) {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return nil, nil
	}
	return schema.InferOutput(t)
}

const maxToolName = 128

// checkToolName enforces what the specification recommends, since clients
// reject other names.
//
// Specification: server/tools (2025-11-25), tool names.
func checkToolName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if len(name) > maxToolName {
		return fmt.Errorf("the name is longer than %d characters", maxToolName)
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return fmt.Errorf("the name has the character %q; allowed are A-Z, a-z, 0-9, ., _ and -", r)
		}
	}
	return nil
}
