package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegistrationErrors(t *testing.T) {
	s := newServer(t)
	typed := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	raw := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil }
	read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil }
	object := M{"type": "object"}
	for name, err := range map[string]error{
		"nil tool":    gosdk.AddTool[struct{}, any](s, nil, typed),
		"nil handler": gosdk.AddTool[struct{}, any](s, &mcp.Tool{Name: "t"}, nil),
		"bad name":    gosdk.AddTool(s, &mcp.Tool{Name: "a b"}, typed),
		"no object": gosdk.AddTool(s, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, int) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		}),
		"no schema in": gosdk.AddTool(s, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{ F func() }) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		}),
		"no schema out": gosdk.AddTool(s, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, chan int, error) {
			return nil, nil, nil
		}),
		"bad schema":       gosdk.AddTool(s, &mcp.Tool{Name: "t", OutputSchema: make(chan int)}, typed),
		"raw nil":          gosdk.AddRawTool(s, nil, raw),
		"raw nil handler":  gosdk.AddRawTool(s, &mcp.Tool{Name: "t", InputSchema: object}, nil),
		"raw no schema":    gosdk.AddRawTool(s, &mcp.Tool{Name: "t"}, raw),
		"prompt handler":   gosdk.AddPrompt(s.Server, &mcp.Prompt{Name: "p"}, nil),
		"resource handler": gosdk.AddResource(s.Server, &mcp.Resource{Name: "r", URI: "test://r"}, nil),
		"resource URI":     gosdk.AddResource(s.Server, &mcp.Resource{Name: "r", URI: "relative"}, read),
		"template handler": gosdk.AddResourceTemplate(s.Server, &mcp.ResourceTemplate{Name: "r", URITemplate: "test://{x}"}, nil),
		"template syntax":  gosdk.AddResourceTemplate(s.Server, &mcp.ResourceTemplate{Name: "r", URITemplate: "test://{x"}, read),
	} {
		var e *server.RegistrationError
		require.ErrorAs(t, err, &e, name)
		assert.NotContains(t, err.Error(), "%!", name)
	}
	assert.Panics(t, func() { gosdk.MustAddTool(s, &mcp.Tool{Name: ""}, typed) })
	assert.Panics(t, func() { s.AddTool(&mcp.Tool{Name: "t"}, raw) })
	assert.Panics(t, func() { s.AddResource(nil, read) })
}

func TestRawToolErrorsAreProtocolErrors(t *testing.T) {
	s := newServer(t)
	coded := &sdkrpc.Error{Code: -32042, Message: "go there", Data: json.RawMessage(`{"elicitations":[]}`)}
	errs := map[string]error{
		"plain": errors.New("plain"), "coded": coded, "wrapped": fmt.Errorf("see: %w", coded),
		"foreign": &cancellation.Error{Origin: cancellation.Peer, Reason: "another's"},
	}
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: M{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Err string }
		_ = json.Unmarshal(req.Params.Arguments, &in)
		return nil, errs[in.Err]
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	for name, want := range map[string]string{
		"plain":   `{"code":-32603,"message":"plain"}`,
		"coded":   `{"code":-32042,"message":"go there","data":{"elicitations":[]}}`,
		"wrapped": `{"code":-32042,"message":"see: go there","data":{"elicitations":[]}}`,
		"foreign": `{"code":-32603,"message":"cancelled by peer: \"another's\""}`,
	} {
		var m struct{ Error json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(p.call("1", "t", M{"Err": name}, nil).end()), &m))
		assert.JSONEq(t, want, string(m.Error), name)
	}
	assert.Equal(t, []any{}, p.call("1", "t", M{}, nil).result()["content"], "no result and no error is an empty result")
}

func TestRawToolsGetTheArgumentsAsSent(t *testing.T) {
	s := newServer(t)
	got := make(chan string, 1)
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: M{"type": "object", "properties": M{"d": M{"type": "integer", "default": 5}}}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got <- string(req.Params.Arguments)
			return nil, nil
		})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	for _, sent := range []string{`{ "x":1.50 }`, `{}`} {
		p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + sent + `}}`).result()
		assert.Equal(t, sent, receive(t, got))
	}
	p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`).result()
	assert.Empty(t, receive(t, got))
	assert.Equal(t, true, p.call("1", "t", M{"d": "no number"}, nil).result()["isError"])
	assert.Empty(t, got)
}

// Names match case-sensitively, as everywhere: no other reader of the message sees
// another value.
func TestParamsMatchCaseSensitively(t *testing.T) {
	s := newServer(t)
	got := make(chan *mcp.CallToolParamsRaw, 1)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "t"}, func(_ context.Context, req *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		got <- req.Params
		return nil, in, nil
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	r := p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","Name":"x","ARGUMENTS":{"evil":1},"arguments":{"a":1,"A":2}}}`).result()
	seen := receive(t, got)
	assert.Equal(t, "t", seen.Name)
	assert.JSONEq(t, `{"a":1,"A":2}`, string(seen.Arguments))
	assert.Equal(t, M{"a": 1., "A": 2.}, r["structuredContent"])
}

// A timeout is answered, unlike a cancel, and names itself.
func TestToolTimeoutIsAnswered(t *testing.T) {
	s := newServer(t)
	require.NoError(t, gosdk.AddTool(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}, &server.ToolOptions{Timeout: 1}))
	r := newPeer(t, s.Server, server.Version20251125, M{}).call("1", "slow", M{}, nil).result()
	assert.Equal(t, true, r["isError"])
	assert.Contains(t, fmt.Sprint(r["content"]), "timeout")
}

func TestInvariant_G1_OneRequestOneSession(t *testing.T) {
	s := newServer(t)
	var mu sync.Mutex
	sessions, extras := map[*mcp.ServerSession]int{}, map[*mcp.RequestExtra]int{}
	note := func(req mcp.Request) {
		mu.Lock()
		defer mu.Unlock()
		sessions[req.GetSession().(*mcp.ServerSession)]++
		extras[req.GetExtra()]++
	}
	look := around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if method == "tools/call" {
			note(req)
		}
		return next(ctx, method, req)
	})
	s.AddReceivingMiddleware(look)
	gosdk.Use(s, look, look)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "t"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		note(req)
		return nil, nil, nil
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	p.call("1", "t", M{}, nil).result()
	p.call("2", "t", M{}, nil).result()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, sessions, 2, "each request has its own")
	require.Len(t, extras, 2)
	for _, n := range sessions {
		assert.Equal(t, 4, n)
	}
}

// Many clients of the stateless era leave nothing behind that grows.
func TestManyClientsInTheStatelessEra(t *testing.T) {
	s := newServer(t)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "who"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Session.InitializeParams().ClientInfo.Name}}}, nil, nil
	})
	p := newPeer(t, s.Server, server.Version20260728, nil)
	for i := range 600 {
		name := fmt.Sprint("client ", i%590)
		answer := p.call("1", "who", M{}, M{mcp.MetaKeyClientInfo: M{"name": name, "version": "1"}}).end()
		require.Contains(t, answer, `"text":"`+name+`"`)
	}
	scopes, prototypes := gosdk.Kept()
	assert.Zero(t, scopes)
	assert.LessOrEqual(t, prototypes, 256)
}

// What is kept of them is small, however much they say about themselves.
func TestClientsThatSayALotInTheStatelessEra(t *testing.T) {
	s := newServer(t)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "who"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Session.InitializeParams().ClientInfo.Name}}}, nil, nil
	})
	p := newPeer(t, s.Server, server.Version20260728, nil)
	_, before := gosdk.Kept()
	for i := range 3 {
		for _, meta := range []M{
			{mcp.MetaKeyClientInfo: M{"name": fmt.Sprint("client ", i), "version": "1", "title": strings.Repeat("x", 1<<20)}},
			{mcp.MetaKeyClientInfo: M{"name": fmt.Sprint("client ", i), "version": "1"}, mcp.MetaKeyClientCapabilities: M{"experimental": M{"x": strings.Repeat("x", 1<<20)}}},
		} {
			require.Contains(t, p.call("1", "who", M{}, meta).end(), fmt.Sprintf(`"text":"client %d"`, i))
		}
	}
	_, after := gosdk.Kept()
	assert.Equal(t, before, after)
}
