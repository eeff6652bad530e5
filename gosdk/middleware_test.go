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

	"github.com/heedmcp/heed/cancellation"
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

func TestMiddlewareThatBreaksTheRules(t *testing.T) {
	for name, c := range map[string]struct {
		middleware func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error)
		want       string
	}{
		"no result": {func(context.Context, string, mcp.Request, mcp.MethodHandler) (mcp.Result, error) { return nil, nil }, "neither a result nor an error"},
		"another method": {func(ctx context.Context, _ string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			return next(ctx, "tools/list", req)
		}, "must not turn"},
		"another request": {func(ctx context.Context, m string, _ mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			return next(ctx, m, &mcp.ListToolsRequest{})
		}, "passed on a"},
		"no params": {func(ctx context.Context, m string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			return next(ctx, m, &mcp.CallToolRequest{Session: req.GetSession().(*mcp.ServerSession)})
		}, "passed on a"},
		"no context": {func(_ context.Context, m string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			return next(context.Background(), m, req)
		}, "must pass on its context"},
		"panic": {func(context.Context, string, mcp.Request, mcp.MethodHandler) (mcp.Result, error) { panic("oops") }, "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := echoServer(t)
			s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
				if method != "tools/call" {
					return next(ctx, method, req)
				}
				return c.middleware(ctx, method, req, next)
			}))
			p := newPeer(t, s.Server, server.Version20251125, M{})
			answer := p.call("1", "echo", M{}, nil).end()
			assert.Contains(t, answer, `"code":-32603`)
			assert.Contains(t, answer, c.want)
			p.request("2", "ping", M{}).result()
		})
	}
}

func TestMiddlewareOfACancelledRequest(t *testing.T) {
	s := newServer(t)
	waiting, seen := make(chan struct{}), make(chan error, 1)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		close(waiting)
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	})
	s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if r, ok := result.(*mcp.CallToolResult); ok {
			seen <- r.GetError()
		}
		return result, err
	}))
	p := newPeer(t, s.Server, server.Version20251125, M{})
	st := p.call("1", "wait", M{}, nil)
	receive(t, waiting)
	p.cancel("1", "stop")
	require.ErrorIs(t, receive(t, seen), cancellation.ErrCancelled)
	assert.Empty(t, st.end())
}

// Custom methods pass through as CustomParams and CustomResult.
func TestMiddlewareAroundCustomMethods(t *testing.T) {
	s := newServer(t)
	server.MustAddMethod(s.Server, "acme/add", func(_ context.Context, _ *servercontext.Request, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (M, error) {
		return M{"sum": in.A + in.B}, nil
	})
	type params struct {
		mcp.ParamsBase
		Text string `json:"text"`
	}
	type result struct {
		mcp.ResultBase
		Text string `json:"text"`
	}
	require.NoError(t, gosdk.AddReceivingCustomMethod(s, "acme/shout", func(_ context.Context, ss *mcp.ServerSession, p *params) (*result, error) {
		return &result{Text: strings.ToUpper(p.Text) + " " + ss.InitializeParams().ClientInfo.Name}, nil
	}))
	require.Error(t, gosdk.AddReceivingCustomMethod(s, "tools/call", func(context.Context, *mcp.ServerSession, *params) (*result, error) { return nil, nil }))
	s.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		p, ok := req.GetParams().(*gosdk.CustomParams)
		if !ok {
			return next(ctx, method, req)
		}
		if method == "acme/add" {
			p.Raw = json.RawMessage(strings.ReplaceAll(string(p.Raw), "1", "10"))
		}
		r, err := next(ctx, method, req)
		if c, ok := r.(*gosdk.CustomResult); ok {
			c.Meta = mcp.Meta{"signed": true}
		}
		return r, err
	}))
	p := newPeer(t, s.Server, server.Version20251125, M{})
	assert.Equal(t, M{"sum": 12., "_meta": M{"signed": true}}, p.request("1", "acme/add", M{"a": 1, "b": 2, "_meta": M{"x": "y"}}).result())
	assert.Equal(t, M{"text": "HI peer"}, p.request("1", "acme/shout", M{"text": "hi"}).result())
}

func TestSendingMiddleware(t *testing.T) {
	s := newServer(t)
	var mu sync.Mutex
	var sent []string
	note := func(name string) mcp.Middleware {
		return around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
			mu.Lock()
			sent = append(sent, name+" "+method)
			mu.Unlock()
			return next(ctx, method, req)
		})
	}
	s.AddSendingMiddleware(note("b"), note("c"))
	s.AddSendingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.LoggingMessageParams); ok {
			p.Data = "redacted"
		}
		return note("a")(next)(ctx, method, req)
	}))
	gosdk.MustAddTool(s, &mcp.Tool{Name: "t"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := req.Session.Log(context.Background(), &mcp.LoggingMessageParams{Level: "error", Data: "secret"}); err != nil {
			return nil, nil, err
		}
		return nil, nil, req.Session.Ping(context.Background(), nil)
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	p.request("9", "logging/setLevel", M{"level": "debug"}).result()
	st := p.call("1", "t", M{}, nil)
	line := st.line()
	assert.Contains(t, line, "redacted")
	assert.NotContains(t, line, "secret")
	id, _ := question(t, st.line())
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
	assert.NotContains(t, st.result(), "isError")
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []string{
		"a notifications/message", "b notifications/message", "c notifications/message", "a ping", "b ping", "c ping",
	}, sent)
}
