package main

import (
	"context"
	"encoding/json"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Input schemas that are listed as they stand here.
const (
	schemaOf2020 = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

	schemaWithHeader = `{
  "type": "object",
  "properties": {
    "region": {"type": "string", "description": "repeated in the header Mcp-Param-Region", "x-mcp-header": "Region"},
    "level": {"type": "integer", "description": "repeated in no header"}
  }
}`
)

// addSchemas adds the tools whose input schemas are the point.
func (f *fixture) addSchemas() {
	f.server.MustAddRawTool(&mcp.Tool{
		Name:        "json_schema_2020_12_tool",
		Description: "Has an input schema with keywords of JSON Schema 2020-12, and repeats its arguments.",
		InputSchema: json.RawMessage(schemaOf2020),
	}, func(_ context.Context, _ *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{text("called with " + string(arguments))}}, nil
	})
	f.server.MustAddRawTool(&mcp.Tool{
		Name:        "test_x_mcp_header",
		Description: "Has an argument that an HTTP header repeats.",
		InputSchema: json.RawMessage(schemaWithHeader),
	}, func(_ context.Context, _ *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		var in struct {
			Region string `json:"region"`
		}
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{text("region=" + in.Region)}}, nil
	})
}
