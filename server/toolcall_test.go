package server_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/heedmcp/heed/server"
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

// Clients written in Go send null for arguments that are a nil map.
func TestTool_NullArgumentsAreNone(t *testing.T) {
	f := newFixture(t, nil)
	server.MustAddTool(f.Server, &mcp.Tool{Name: "none"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "fine", nil
	})
	server.MustAddPrompt(f.Server, &mcp.Prompt{Name: "none"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "fine", nil
	})
	p := newPeer(t, f.Server, peerOptions{})
	for id, method := range []string{"tools/call", "prompts/get"} {
		p.Raw(strconv.Itoa(id), `{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":"`+method+`","params":{"name":"none","arguments":null}}`)
		m := p.Answer(id)
		require.Nil(t, m.Error, "%s: %s", method, m.Raw)
		require.Contains(t, string(m.Result), "fine")
	}
}
