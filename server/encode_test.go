package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a handler returns, the answer is one valid JSON-RPC message.
func TestEncode_WhatCannotBeEncodedIsAnInternalError(t *testing.T) {
	for name, result := range map[string]*mcp.CallToolResult{
		"structured channel":      {StructuredContent: make(chan int)},
		"structured that panics":  {StructuredContent: panicker{}},
		"structured broken":       {StructuredContent: json.RawMessage(`{"a":`)},
		"structured trailing":     {StructuredContent: json.RawMessage(`{} {}`)},
		"structured newline":      {StructuredContent: json.RawMessage("{\"a\":\n")},
		"nil content":             {Content: []mcp.Content{nil}},
		"nil text":                {Content: []mcp.Content{(*mcp.TextContent)(nil)}},
		"nil image":               {Content: []mcp.Content{(*mcp.ImageContent)(nil)}},
		"nil audio":               {Content: []mcp.Content{(*mcp.AudioContent)(nil)}},
		"nil link":                {Content: []mcp.Content{(*mcp.ResourceLink)(nil)}},
		"nil embedded":            {Content: []mcp.Content{(*mcp.EmbeddedResource)(nil)}},
		"embedded nothing":        {Content: []mcp.Content{&mcp.EmbeddedResource{}}},
		"content meta that fails": {Content: []mcp.Content{&mcp.TextContent{Meta: mcp.Meta{"x": panicker{}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range server.Versions() {
				t.Run(version, func(t *testing.T) {
					inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
						f.Server.MustAddRawTool(&mcp.Tool{Name: "bad", InputSchema: json.RawMessage(`{"type":"object"}`)},
							func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
								return result, nil
							})
						p.Call(1, "bad", nil)
						m := p.Answer(1)
						if m.Error == nil {
							// Older revisions have neither _meta on content nor structured content.
							assert.NotContains(t, []string{server.Version20260728, server.Version20251125, server.Version20250618}, version, m.Raw)
							return
						}
						require.EqualValues(t, sdkrpc.CodeInternalError, m.Code())
						require.Equal(t, "internal error", m.Error.Message)
						require.NotEmpty(t, f.logs.Find("result cannot be encoded"))
					})
				})
			}
		})
	}
}

type panicker struct{}

func (panicker) MarshalJSON() ([]byte, error) { panic(handlerSecret) }

func TestEncode_NilResultsOfMiddleware(t *testing.T) {
	for name, result := range map[string]any{
		"tools":   (*mcp.ListToolsResult)(nil),
		"prompts": (*mcp.ListPromptsResult)(nil),
		"call":    (*mcp.CallToolResult)(nil),
		"get":     (*mcp.GetPromptResult)(nil),
		"read":    (*mcp.ReadResourceResult)(nil),
		"tool":    &mcp.ListToolsResult{Tools: []*mcp.Tool{nil}},
		"text":    "no object",
		"slice":   []int{1},
		"channel": make(chan int),
		"raw":     json.RawMessage(`{"a":`),
		"func":    func() {},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				f.Server.Use(func(next server.Handler) server.Handler {
					return func(context.Context, *servercontext.Request) (any, error) { return result, nil }
				})
				p.Request(1, "tools/list", nil)
				require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(1).Code())
			})
		})
	}
}
