package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
