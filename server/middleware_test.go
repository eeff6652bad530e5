package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// trace is middleware that notes where it was passed.
func (f *fixture) trace(name string) server.Middleware {
	return func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			f.add("trace", name+" > "+req.Method(), nil)
			result, err := next(ctx, req)
			f.add("trace", fmt.Sprintf("%s < %s %T %v", name, req.Method(), result, err), nil)
			return result, err
		}
	}
}

func TestUse_TheFirstIsTheOutermost(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(f.trace("a"), f.trace("b"))
		f.Server.Use(f.trace("c"))
		p.Call(1, "echo", nil)
		p.Text(1)
		require.Equal(t, []string{
			"a > tools/call", "b > tools/call", "c > tools/call",
			"c < tools/call *mcp.CallToolResult <nil>", "b < tools/call *mcp.CallToolResult <nil>", "a < tools/call *mcp.CallToolResult <nil>",
		}, f.Events("trace"))
	})
}

// It is around every method: requests and notifications, built-in and custom,
// whether they succeed or fail.
func TestUse_SeesEverything(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(f.trace("m"))
		server.MustAddMethod(f.Server, "acme/x", func(context.Context, *servercontext.Request, json.RawMessage) (M, error) { return nil, errOwn })
		server.MustAddMethod(f.Server, "notifications/acme", func(context.Context, *servercontext.Request, json.RawMessage) (any, error) { return nil, nil })
		p.Initialize(server.Version20251125)
		p.Request(1, "acme/x", nil)
		p.Answer(1)
		p.Notify("notifications/acme", nil)
		p.settle()
		p.Request(2, "tools/list", nil)
		p.Answer(2)
		p.Call(3, "no such tool", nil)
		p.Answer(3)
		p.Request(4, "no/such/method", nil)
		p.Answer(4)
		seen := strings.Join(f.Events("trace"), "\n")
		for _, want := range []string{
			"m < initialize *mcp.InitializeResult <nil>", "m > notifications/initialized", "m < acme/x <nil>", "m > notifications/acme",
			"m < tools/list *mcp.ListToolsResult <nil>", "m > tools/call",
		} {
			if want == "m < acme/x <nil>" {
				want = "m < acme/x server_test.M" // the handler's own type, with its error
				require.Contains(t, seen, errOwn.Error())
				continue
			}
			require.Contains(t, seen, want)
		}
		require.NotContains(t, seen, "no/such/method", "there is nothing to wrap")
	})
}

// It may answer by itself, replace results and errors, and change the context.
func TestUse_Changes(t *testing.T) {
	type key struct{}
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				switch result, err := next(context.WithValue(ctx, key{}, "from outside"), req); {
				case err != nil && err.Error() == errOwn.Error():
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "replaced"}}}, nil
				case req.Method() == "tools/list":
					list := *result.(*mcp.ListToolsResult)
					list.Tools = nil
					return &list, err
				default:
					return result, err
				}
			}
		})
		f.tool("value", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			return ctx.Value(key{}), nil
		})
		p.Call(1, "value", nil)
		require.Equal(t, "from outside", p.Text(1))
		p.Call(2, "cancel_error", tagged{MS: 1})
		require.Equal(t, "replaced", p.Text(2))
		for range 2 { // the cached list is not the copy
			p.Request(3, "tools/list", nil)
			require.Empty(t, p.Result(3)["tools"])
		}
		f.Server.Use(func(server.Handler) server.Handler {
			return func(context.Context, *servercontext.Request) (any, error) {
				return nil, &sdkrpc.Error{Code: -31000, Message: "no entry"}
			}
		})
		p.Call(4, "echo", nil)
		require.Equal(t, -31000, p.Answer(4).Code())
	})
}

// It sees the token, and a context that it cuts off loses nothing of the cancel.
func TestUse_SeesTheCancel(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				result, err := next(context.WithoutCancel(ctx), req)
				f.add("outer", "saw", cancellation.Checkpoint(ctx))
				return result, err
			}
		})
		f.tool("token", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			<-req.Token().Done()
			f.add("inner", "saw", cancellation.FromContext(ctx).Err())
			return nil, nil
		})
		p.Call(1, "token", nil)
		p.settle()
		p.Cancel(1, "stop")
		require.Equal(t, "stop", f.Await("inner", "saw").Reason)
		require.Equal(t, "stop", f.Await("outer", "saw").Reason)
		p.Silent(1)
	})
}

func TestUse_NilMiddleware(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		require.NotPanics(t, func() { f.Server.Use(nil, nil) })
		f.Server.Use(func(server.Handler) server.Handler { return nil })
		p.Call(1, "echo", M{"text": "a"})
		require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(1).Code(), "a handler that is nil is a panic, and contained")
	})
}

// Registration and use at the same time.
func TestUse_WhileRequestsRun(t *testing.T) {
	f := newFixture(t, nil)
	p := newPeer(t, f.Server, peerOptions{})
	var changes sync.WaitGroup
	for i := range 4 {
		changes.Go(func() {
			for n := range 20 {
				f.Server.Use(func(next server.Handler) server.Handler { return next })
				name := fmt.Sprintf("t%d_%d", i, n)
				f.tool(name, func(context.Context, *servercontext.Request, tagged) (any, error) { return name, nil })
				f.Server.RemoveTools(name, "unknown")
				server.MustAddMethod(f.Server, "acme/"+name, slow)
			}
		})
	}
	for id := range 100 {
		p.Request(id, "tools/list", nil)
		p.Call(1000+id, "echo", M{"text": "x"})
	}
	changes.Wait()
	for id := range 100 {
		require.Nil(t, p.Answer(id).Error)
		require.Equal(t, "x", p.Text(1000+id))
	}
}

// A call goes on though its tool was removed, and the tool is gone for later ones.
func TestRemoveTools(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_wait", tagged{Tag: "a", MS: 1000})
		f.Await("a", "started")
		f.Server.RemoveTools("cancel_wait")
		p.Call(2, "cancel_wait", nil)
		require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(2).Code())
		require.Equal(t, "done", p.Text(1))
		p.Request(3, "tools/list", nil)
		require.NotContains(t, p.Answer(3).Raw, "cancel_wait")
		f.Server.RemoveTools("echo", "cancel_value", "cancel_error", "cancel_foreign", "cancel_panic", "cancel_ignore")
		p.Request(4, "tools/list", nil)
		require.Empty(t, p.Result(4)["tools"], "an empty list, and no error: the capability was advertised")
	})
}

// A cancel does not pass middleware: nothing may hold it up.
func TestUse_CancelsGoPast(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				f.add("passed", req.Method(), nil)
				if req.Method() != "tools/call" {
					<-ctx.Done() // whatever passes is held up
				}
				return next(ctx, req)
			}
		})
		p.Call(1, "cancel_wait", tagged{Tag: "w"})
		f.Await("w", "started")
		p.Notify("notifications/no/such", nil)
		p.Request(2, "no/such", nil)
		require.NotZero(t, p.Answer(2).Code())
		p.Cancel(1, "stop")
		require.Equal(t, "stop", f.Await("w", "observed").Reason)
		p.Silent(1)
		require.Equal(t, []string{"tools/call"}, f.Events("passed"))
	})
}
