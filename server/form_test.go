package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Titled choices reach clients of the first revision with forms the way it has them, in the order
// that the form has; several choices do not exist there, which is said at once.
func TestForms_OfTheirFirstRevision(t *testing.T) {
	const titled = `{"type":"object","properties":{"z":{"type":"string"},` +
		`"a":{"type":"string","title":"A","oneOf":[{"const":"x","title":"An \u0078"},{"const":"y","title":"A y"}]}},"required":["a"]}`
	for _, c := range []struct {
		name, schema string
		sent         string // "" when nothing may be
	}{
		{"titled", titled, `{"type":"object","properties":{"z":{"type":"string"},` +
			`"a":{"type":"string","title":"A","enum":["x","y"],"enumNames":["An x","A y"]}},"required":["a"]}`},
		{"without choices", `{"type":"object","properties":{"n":{"type":"string","oneOf":[{"minLength":1}]}}}`,
			`{"type":"object","properties":{"n":{"type":"string","oneOf":[{"minLength":1}]}}}`},
		{"multiple", `{"type":"object","properties":{"m":{"type":"array","items":{"type":"string","enum":["x"]}}}}`, ""},
		{"no fields", `{"type":"object"}`, `{"type":"object"}`},
	} {
		for version, sent := range map[string]string{server.Version20250618: c.sent, server.Version20251125: c.schema} {
			t.Run(c.name+" in "+version, func(t *testing.T) {
				f := newFixture(t, nil)
				ended := make(chan error, 1)
				server.MustAddTool(f.Server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
					_, err := req.Elicit(ctx, &mcp.ElicitParams{Message: "which?", RequestedSchema: json.RawMessage(c.schema)})
					ended <- err
					return "", err
				})
				p := newPeer(t, f.Server, peerOptions{Version: version, Caps: allCaps})
				p.Call(1, "ask", nil)
				if sent == "" {
					require.ErrorIs(t, <-ended, servercontext.ErrNotSupported)
					return
				}
				q := p.Asked("elicitation/create", 1)
				var params struct{ RequestedSchema json.RawMessage }
				require.NoError(t, json.Unmarshal(q.Params, &params))
				require.Equal(t, sent, string(params.RequestedSchema))
				p.Respond(q, M{"action": "decline"})
				require.NoError(t, <-ended)
			})
		}
	}
}
