package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// around makes a middleware of one function.
func around(f func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error)) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return f(ctx, method, req, next)
		}
	}
}

// echoServer has a tool, official or native, that returns its arguments.
func echoServer(t testing.TB) *gosdk.Server {
	s := newServer(t)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: M{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
	s.MustAddRawTool(&mcp.Tool{Name: "native", InputSchema: M{"type": "object"}},
		func(_ context.Context, _ *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(arguments)}}}, nil
		})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errSecret
	})
	return s
}

var errSecret = errors.New("the secret is 42")

func TestMiddlewareSeesEveryMethod(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			s := echoServer(t)
			s.AddPrompt(&mcp.Prompt{Name: "p"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: req.Params.Name}, nil
			})
			s.AddResource(&mcp.Resource{Name: "r", URI: "test://r", MIMEType: "text/x"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: req.Params.URI}}}, nil
			})
			var mu sync.Mutex
			seen := map[string]string{}
			s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				mu.Lock()
				defer mu.Unlock()
				seen[method] = fmt.Sprintf("%T %T", req.GetParams(), result)
				assert.NotNil(t, req.GetExtra(), method)
				assert.NotNil(t, req.GetSession(), method)
				_ = req.GetSession().ID()
				return result, err
			}))
			cs := connect(t, s.Server, version, nil)
			for name := range map[string]int{"echo": 1, "native": 2} {
				r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: M{"a": 1}})
				require.NoError(t, err)
				assert.JSONEq(t, `{"a":1}`, text(t, r))
			}
			_, err := cs.ListTools(t.Context(), nil)
			require.NoError(t, err)
			_, err = cs.ListPrompts(t.Context(), nil)
			require.NoError(t, err)
			_, err = cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
			require.NoError(t, err)
			_, err = cs.ListResources(t.Context(), nil)
			require.NoError(t, err)
			_, err = cs.ListResourceTemplates(t.Context(), nil)
			require.NoError(t, err)
			read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://r"})
			require.NoError(t, err)
			assert.Equal(t, &mcp.ResourceContents{URI: "test://r", MIMEType: "text/x", Text: "test://r"}, read.Contents[0])
			want := map[string]string{
				"tools/call":               "*mcp.CallToolParamsRaw *mcp.CallToolResult",
				"tools/list":               "*mcp.ListToolsParams *mcp.ListToolsResult",
				"prompts/list":             "*mcp.ListPromptsParams *mcp.ListPromptsResult",
				"prompts/get":              "*mcp.GetPromptParams *mcp.GetPromptResult",
				"resources/list":           "*mcp.ListResourcesParams *mcp.ListResourcesResult",
				"resources/templates/list": "*mcp.ListResourceTemplatesParams *mcp.ListResourceTemplatesResult",
				"resources/read":           "*mcp.ReadResourceParams *mcp.ReadResourceResult",
			}
			if version == server.Version20260728 {
				want["server/discover"] = "*mcp.DiscoverParams *mcp.DiscoverResult"
			} else {
				require.NoError(t, cs.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}))
				require.NoError(t, cs.Ping(t.Context(), nil))
				want["initialize"] = "*mcp.InitializeParams *mcp.InitializeResult"
				want["notifications/initialized"] = "*mcp.InitializedParams <nil>"
				want["logging/setLevel"] = "*mcp.SetLoggingLevelParams *gosdk.CustomResult"
				want["ping"] = "*mcp.PingParams *gosdk.CustomResult"
			}
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, want, seen)
		})
	}
}

func TestMiddlewareOrder(t *testing.T) {
	var order []string
	note := func(name string) mcp.Middleware {
		return around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			if method == "ping" {
				order = append(order, name)
			}
			return next(ctx, method, req)
		})
	}
	s := newServer(t)
	s.AddReceivingMiddleware(note("c"), note("d"))
	s.AddReceivingMiddleware(note("a"), note("b")) // around the former, as in the official SDK
	gosdk.Use(s, note("e"), note("f"))
	gosdk.Use(s.Server, note("g"))
	newPeer(t, s.Server, server.Version20251125, M{}).request("1", "ping", M{}).result()
	assert.Equal(t, strings.Split("abcdefg", ""), order)
}

func TestInvariant_M1_MiddlewareIsSetUpOnce(t *testing.T) {
	s := newServer(t)
	var setups, calls atomic.Int32
	gosdk.Use(s, func(next mcp.MethodHandler) mcp.MethodHandler {
		setups.Add(1)
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			calls.Add(1)
			return next(ctx, method, req)
		}
	})
	for i := range 5 {
		gosdk.MustAddTool(s, &mcp.Tool{Name: fmt.Sprint("t", i)}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
	}
	newPeer(t, s.Server, server.Version20251125, M{}).request("1", "ping", M{}).result()
	assert.EqualValues(t, 1, setups.Load())
	assert.GreaterOrEqual(t, calls.Load(), int32(2))
}

type userKey struct{}

// Middleware that identifies callers, refuses some, and tells handlers who it was.
func TestAuthMiddleware(t *testing.T) {
	s := newServer(t)
	s.AddTool(&mcp.Tool{Name: "me", InputSchema: M{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user, _ := ctx.Value(userKey{}).(string)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: user + " " + req.Extra.TokenInfo.UserID + " " + req.Extra.Header.Get("X-User")}}}, nil
	})
	server.MustAddMethod(s.Server, "acme/secret", func(context.Context, *servercontext.Request, struct{}) (M, error) { return M{"open": true}, nil })
	s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if method == "initialize" || strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		info := req.GetExtra().TokenInfo
		switch {
		case info == nil:
			return nil, errors.New("unauthorized")
		case info.UserID == "banned":
			return nil, &sdkrpc.Error{Code: -32099, Message: "banned"}
		}
		return next(context.WithValue(ctx, userKey{}, "user"), method, req)
	}))
	p := newPeer(t, s.Server, server.Version20251125, M{})
	for _, method := range []string{"tools/call", "tools/list", "acme/secret"} {
		answer := p.request("1", method, M{"name": "me"}).end()
		assert.Contains(t, answer, `"code":-32603`, method)
		assert.Contains(t, answer, "unauthorized", method)
	}
	p.extra = &server.Extra{TokenInfo: &auth.TokenInfo{UserID: "banned"}}
	assert.Contains(t, p.call("1", "me", M{}, nil).end(), `"code":-32099`)
	p.extra = &server.Extra{TokenInfo: &auth.TokenInfo{UserID: "ann"}, Header: map[string][]string{"X-User": {"h"}}}
	assert.Contains(t, p.call("1", "me", M{}, nil).end(), "user ann h")
	assert.Contains(t, p.request("1", "acme/secret", M{}).end(), `"open":true`)
}

func TestMiddlewareChangesToolArguments(t *testing.T) {
	s := echoServer(t)
	s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			if call.Params.Name == "renamed" { // a copy, with other params
				params := *call.Params
				params.Name = "native"
				req = &mcp.CallToolRequest{Session: call.Session, Params: &params, Extra: call.Extra}
			} else { // in place
				call.Params.Arguments = json.RawMessage(`{"changed":true}`)
			}
		}
		return next(ctx, method, req)
	}))
	p := newPeer(t, s.Server, server.Version20251125, M{})
	for _, tool := range []string{"echo", "native"} {
		assert.Contains(t, p.call("1", tool, M{"sent": 1}, nil).end(), `{\"changed\":true}`, tool)
	}
	assert.Contains(t, p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"renamed","arguments":{"n":9007199254740993.0}}}`).end(), `{\"n\":9007199254740993.0}`)
}

func TestInvariant_M2_HandlersGetTheRequestThatWasPassedOn(t *testing.T) {
	s := newServer(t)
	var passed, got mcp.Request
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: M{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got = req
		return nil, nil
	})
	gosdk.Use(s, around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			c := *call
			passed = &c
			req = passed
		}
		return next(ctx, method, req)
	}))
	newPeer(t, s.Server, server.Version20251125, M{}).call("1", "t", M{}, nil).result()
	require.NotNil(t, passed)
	assert.Same(t, passed, got)
}

func TestMiddlewareChangesResults(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			s := echoServer(t)
			s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				switch r := result.(type) {
				case *mcp.CallToolResult:
					if e := r.GetError(); e != nil {
						assert.ErrorIs(t, e, errSecret)
						r.Content = []mcp.Content{&mcp.TextContent{Text: "redacted"}}
					} else {
						return &mcp.CallToolResult{Content: append(r.Content, &mcp.TextContent{Text: "signed"})}, nil
					}
				case *mcp.ListToolsResult:
					for _, tool := range r.Tools {
						tool.Description = "seen by " + method
					}
					r.Tools = r.Tools[1:]
				}
				return result, err
			}))
			cs := connect(t, s.Server, version, nil)
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
			require.NoError(t, err)
			require.Len(t, r.Content, 2)
			assert.Equal(t, "signed", r.Content[1].(*mcp.TextContent).Text)
			r, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
			require.NoError(t, err)
			assert.True(t, r.IsError)
			assert.Equal(t, "redacted", text(t, r))
			for range 2 { // what the server shares between requests was not touched
				l, err := cs.ListTools(t.Context(), nil)
				require.NoError(t, err)
				require.Len(t, l.Tools, 2)
				assert.Equal(t, "seen by tools/list", l.Tools[0].Description)
			}
		})
	}
}

func TestInvariant_M3_WhatIsLeftAlonePassesOnAsItIs(t *testing.T) {
	observed := make(chan error, 1)
	s := gosdk.NewServer(implementation(), nil, &server.Options{
		ErrorText: func(error) string { return "sorry" },
		Observer: &server.Observer{RequestDone: func(d server.RequestDone) {
			if d.Method == "tools/call" {
				observed <- d.Err
			}
		}},
	})
	var params []string
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) { return next(ctx, req) }
	})
	gosdk.Use(s, around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if r, ok := result.(*mcp.CallToolResult); ok && r.IsError {
			assert.Equal(t, errSecret.Error(), text(t, r), "middleware sees the whole error")
		}
		return result, err
	}))
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if req.Method() == "tools/call" {
				params = append(params, string(req.Params()))
			}
			return next(ctx, req)
		}
	})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errSecret
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	sent := `{"name":"fail", "unknown" : [1.0,9007199254740993],"_meta":{"progressToken":9007199254740993}}`
	answer := p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + sent + `}`).end()
	assert.Contains(t, answer, `"text":"sorry"`, "the operator's wording holds")
	assert.Contains(t, answer, `"isError":true`)
	assert.Equal(t, []string{sent}, params)
	require.ErrorIs(t, receive(t, observed), errSecret)
}

// Members that the official types do not know survive a change of those that they do.
func TestChangedParamsKeepWhatIsUnknown(t *testing.T) {
	s := newServer(t)
	got := make(chan string, 1)
	gosdk.Use(s, around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			call.Params.Name = "other<&>"
			call.Params.Meta["added"] = "x"
		}
		return next(ctx, method, req)
	}))
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if req.Method() == "tools/call" {
				got <- string(req.Params())
				return &mcp.CallToolResult{}, nil
			}
			return next(ctx, req)
		}
	})
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: M{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	p := newPeer(t, s.Server, server.Version20251125, M{})
	p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"task":{"ttl":1.50},"name":"t","arguments":{"n":9007199254740993},"_meta":{"k":"v"}}}`).result()
	assert.Equal(t, `{"task":{"ttl":1.50},"name":"other<&>","arguments":{"n":9007199254740993},"_meta":{"added":"x","k":"v"}}`, receive(t, got))
}
