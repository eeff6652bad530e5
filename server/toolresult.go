package server

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shape is what kind of result a typed tool's Out makes.
type shape uint8

const (
	shapeResult     shape = iota // *mcp.CallToolResult
	shapeText                    // string
	shapeContent                 // mcp.Content
	shapeContents                // []mcp.Content
	shapeStructured              // anything else
)

func shapeOf[Out any]() shape {
	t := reflect.TypeFor[Out]()
	switch {
	case t == reflect.TypeFor[*mcp.CallToolResult]():
		return shapeResult
	case t.Kind() == reflect.String:
		return shapeText
	case t.Implements(reflect.TypeFor[mcp.Content]()) && isContent(t):
		return shapeContent
	case t == reflect.TypeFor[[]mcp.Content]():
		return shapeContents
	}
	return shapeStructured
}

// isContent tells content blocks from other types that happen to have a MarshalJSON.
func isContent(t reflect.Type) bool {
	if t == reflect.TypeFor[mcp.Content]() {
		return true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == reflect.TypeFor[mcp.TextContent]().PkgPath()
}

// toolResult makes the result of what a typed handler returned.
func toolResult(s shape, out any, noText bool) (*mcp.CallToolResult, error) {
	switch s {
	case shapeResult:
		if r, _ := out.(*mcp.CallToolResult); r != nil {
			return r, nil
		}
		return &mcp.CallToolResult{}, nil
	case shapeText:
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: reflect.ValueOf(out).String()}}}, nil
	case shapeContent:
		if out == nil || reflect.ValueOf(out).Kind() == reflect.Pointer && reflect.ValueOf(out).IsNil() {
			return &mcp.CallToolResult{}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{out.(mcp.Content)}}, nil
	case shapeContents:
		return &mcp.CallToolResult{Content: out.([]mcp.Content)}, nil
	}
	raw, err := appendJSON(nil, out)
	if err != nil {
		return nil, err
	}
	r := &mcp.CallToolResult{StructuredContent: json.RawMessage(raw)}
	if !noText {
		r.Content = []mcp.Content{&mcp.TextContent{Text: string(raw)}}
	}
	return r, nil
}

// appendCallToolResult appends the result of a tool.
//
// Specification: server/tools.
func (r *revision) appendCallToolResult(b []byte, c *Call, v *mcp.CallToolResult) ([]byte, error) {
	o := r.appendHead(b, c, resultComplete, v.Meta)
	o.key("content")
	var err error
	if o.b, err = r.appendContents(o.b, v.Content); err != nil {
		return b, err
	}
	if v.StructuredContent != nil && r.structured {
		if err := r.appendStructured(&o, v.StructuredContent); err != nil {
			return b, err
		}
	}
	if v.IsError {
		o.key("isError")
		o.b = append(o.b, "true"...)
	}
	return o.end(), nil
}

// appendStructured appends structured content. Revisions that know only objects
// get other values wrapped in one, as their output schema says (wrapSchema).
func (r *revision) appendStructured(o *object, v any) (err error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		if raw, err = appendJSON(nil, v); err != nil {
			return err
		}
	} else if fault := jsonrpc.Valid(raw, jsonrpc.Limits{Depth: math.MaxInt}); len(raw) > 0 && fault != nil {
		return fmt.Errorf("structured content: %w", fault)
	}
	if len(raw) == 0 || string(raw) == "null" && !r.anySchemaRoot {
		return nil
	}
	o.key("structuredContent")
	if raw[0] == '{' || r.anySchemaRoot {
		o.b = jsonrpc.AppendCompact(o.b, raw)
		return nil
	}
	o.b = append(o.b, `{"result":`...)
	o.b = jsonrpc.AppendCompact(o.b, raw)
	o.b = append(o.b, '}')
	return nil
}

// wrapSchema is the output schema of a tool whose results are no objects, for
// revisions that know only objects.
func wrapSchema(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"result":%s},"required":["result"]}`, raw))
}
