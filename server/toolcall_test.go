package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A handler may return the same result to everybody.
func TestTool_SharedResult(t *testing.T) {
	f := newFixture(t, nil)
	type out struct {
		N int `json:"n"`
	}
	shared := &mcp.CallToolResult{StructuredContent: out{N: 1}}
	f.Server.MustAddRawTool(&mcp.Tool{
		Name: "shared", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
	}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
		return shared, nil
	})
	p := newPeer(t, f.Server, peerOptions{})
	for id := range 50 {
		p.Call(id, "shared", nil)
	}
	for id := range 50 {
		require.Equal(t, M{"n": 1.0}, p.Result(id)["structuredContent"])
	}
	require.Equal(t, out{N: 1}, shared.StructuredContent, "it is the handler's")
}
