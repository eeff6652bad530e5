package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestInput_AllMissingCapabilitiesAreNamed(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Caps: M{"roots": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"a": form, "b": &mcp.ListRootsParams{}, "c": &mcp.CreateMessageParams{},
			}}, nil
		})
		p.Call(1, "ask", nil)
		m := p.Answer(1)
		require.EqualValues(t, mcp.CodeMissingRequiredClientCapabilities, m.Code(), m.Raw)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{"form":{}},"sampling":{}}}`, string(m.Error.Data))
	})
}
