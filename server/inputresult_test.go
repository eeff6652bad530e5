package server_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A result that asks for input has neither the members of the result that it is in place of,
// not even as null, nor caching hints.
func TestReturning_ResultsThatAskHoldNothingElse(t *testing.T) {
	s := plain(t, &server.Options{CacheHints: map[string]server.CacheHint{"resources/read": {Public: true}}})
	ask := mcp.InputRequestMap{"q": form}
	s.MustAddRawTool(&mcp.Tool{Name: "a", InputSchema: M{"type": "object"}}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: ask, RequestState: "kept"}, nil
	})
	s.MustAddPrompt(&mcp.Prompt{Name: "a"}, func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{InputRequests: ask, RequestState: "kept"}, nil
	})
	s.MustAddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{InputRequests: ask, RequestState: "kept"}, nil
	})
	p := newPeer(t, s, peerOptions{Version: server.Version20260728, Caps: allCaps})
	for method, params := range map[string]M{
		"tools/call": {"name": "a"}, "prompts/get": {"name": "a"}, "resources/read": {"uri": "test://a"},
	} {
		got := p.Get(method, params)
		assert.Equal(t, "input_required", got["resultType"], method)
		assert.Equal(t, []string{"_meta", "inputRequests", "requestState", "resultType"}, slices.Sorted(maps.Keys(got)), method)
	}
}

// A server without a handshake tells a client that tries one what it serves.
func TestInitialize_IsToldWhichRevisionsThereAre(t *testing.T) {
	s := plain(t, &server.Options{Versions: []string{server.Version20260728}})
	p := newPeer(t, s, peerOptions{Version: server.Version20260728, Raw: true})
	p.Raw("1", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	m := p.Answer(1)
	require.NotNil(t, m.Error)
	assert.Equal(t, -32022, m.Error.Code)
	assert.JSONEq(t, `{"supported":["2026-07-28"],"requested":"2025-11-25"}`, string(m.Error.Data))
}
