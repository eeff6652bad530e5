package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What middleware passes on with WithParams is what every built-in method serves.
func TestMiddlewareChangesParams(t *testing.T) {
	s := server.New(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	s.MustAddRawTool(&mcp.Tool{Name: "tool", InputSchema: M{"type": "object"}},
		func(_ context.Context, req *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(arguments)}}}, nil
		})
	s.MustAddPrompt(&mcp.Prompt{Name: "prompt", Arguments: []*mcp.PromptArgument{{Name: "a"}}},
		func(_ context.Context, _ *servercontext.Request, arguments map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: arguments["a"]}, nil
		})
	s.SetCompletion(func(_ context.Context, _ *servercontext.Request, in server.CompleteIn) (*mcp.CompletionResultDetails, error) {
		return &mcp.CompletionResultDetails{Values: []string{in.Argument + "=" + in.Value}}, nil
	})
	s.MustAddResource(&mcp.Resource{Name: "resource", URI: "test://resource"},
		func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: in.URI, Text: "found"}}}, nil
		})
	cases := []struct{ method, params, want string }{
		{"tools/call", `{"name":"tool","arguments":{"b":2}}`, `"text":"{\"b\":2}"`},
		{"prompts/get", `{"name":"prompt","arguments":{"a":"changed"}}`, `"description":"changed"`},
		{"resources/read", `{"uri":"test://resource"}`, `"text":"found"`},
		{"resources/subscribe", `{"uri":"test://resource"}`, `{}`},
		{"resources/unsubscribe", `{"uri":"test://resource"}`, `{}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"prompt"},"argument":{"name":"a","value":"v"}}`, `"a=v"`},
		{"tools/list", `{}`, `"name":"tool"`},
		{"prompts/list", `{}`, `"name":"prompt"`},
		{"resources/list", `{}`, `"name":"resource"`},
		{"resources/templates/list", `{}`, `"resourceTemplates":[]`},
	}
	passed := map[string]json.RawMessage{}
	for _, c := range cases {
		passed[c.method] = json.RawMessage(c.params)
	}
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if p, ok := passed[req.Method()]; ok {
				req = req.WithParams(p)
			}
			return next(ctx, req)
		}
	})
	p := newPeer(t, s, peerOptions{})
	for _, c := range cases {
		id := `"` + c.method + `"`
		p.Raw(id, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+c.method+`","params":{"name":"sent","uri":"test://sent","cursor":"sent"}}`)
		m := p.Answer(c.method)
		require.Nil(t, m.Error, "%s: %s", c.method, m.Raw)
		assert.Contains(t, string(m.Result), c.want, c.method)
	}
}

func TestWithParamsLeavesTheRequestAlone(t *testing.T) {
	r := servercontext.New(servercontext.Options{ID: "7", Params: json.RawMessage(`{"_meta":{"a":1}}`), Meta: json.RawMessage(`{"a":1}`)})
	w := r.WithParams(json.RawMessage(`{"x":2,"_meta":{"a":2}}`))
	assert.Equal(t, mcp.Meta{"a": float64(2)}, w.Meta())
	assert.JSONEq(t, `{"x":2,"_meta":{"a":2}}`, string(w.Params()))
	assert.Equal(t, "7", w.ID())
	assert.Equal(t, mcp.Meta{"a": float64(1)}, r.Meta())
	assert.Nil(t, r.WithParams(json.RawMessage(`{}`)).Meta())
}
