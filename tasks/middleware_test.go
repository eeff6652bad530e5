package tasks_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Middleware that was added before sees the request, later one the work; values in
// the context reach the handler, whoever has put them there.
func TestMiddleware(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		type key string
		seen := make(chan string, 2)
		note := func(name string) server.Middleware {
			return func(next server.Handler) server.Handler {
				return func(ctx context.Context, req *servercontext.Request) (any, error) {
					if req.Method() != "tools/call" {
						return next(ctx, req)
					}
					result, err := next(context.WithValue(ctx, key(name), name), req)
					_, isResult := result.(*mcp.CallToolResult)
					if isResult {
						seen <- name + " saw the result"
					} else {
						seen <- name + " saw the task"
					}
					return result, err
				}
			}
		}
		s := server.New(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		s.Use(note("outer"))
		m, err := tasks.Enable(s, nil)
		require.NoError(t, err)
		defer m.Close()
		s.Use(note("inner"))
		r := &rig{t: t, server: s, manager: m}
		r.add("slow", possible, func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			time.Sleep(time.Second)
			return text("%v %v", ctx.Value(key("outer")), ctx.Value(key("inner"))), nil
		})
		c := r.client()
		id := c.begin(t, "slow", nil)
		time.Sleep(time.Second)
		settle()
		assert.Equal(t, "outer inner", c.get(t, id).Result.Content[0].Text)
		assert.Equal(t, "outer saw the task", <-seen)
		assert.Equal(t, "inner saw the result", <-seen)
		_, err = tasks.Enable(s, nil)
		require.ErrorContains(t, err, "there already")
	})
}

// A task holds its tool's place, not the server's: others must be able to ask for it.
func TestTaskHoldsItsToolsSlot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil, &server.Options{MaxConcurrent: 1})
		o := tasks.Tool(possible)
		o.MaxConcurrent = 1
		require.NoError(t, server.AddTool(r.server, &mcp.Tool{Name: "one", InputSchema: M{"type": "object"}}, lasting(time.Minute), o))
		c := r.client()
		first := c.begin(t, "one", nil)
		second := c.startTool("one", nil)
		time.Sleep(time.Second)
		settle()
		select {
		case <-second.answered:
			require.Fail(t, "two calls run where one may")
		default:
		}
		c.cancel(t, first)
		settle()
		assert.Equal(t, "cancelled", c.get(t, first).Status)
		id := second.wait().state(t).TaskID
		require.NotEmpty(t, id)
		c.cancel(t, id)
		settle()
	})
}

// The extension is no part of the handshake era.
func TestHandshakeEra(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("possible", possible, lasting(time.Second))
		r.add("always", always, lasting(time.Second))
		ss := r.server.Open(t.Context(), server.SessionOptions{})
		defer ss.Close(cancellation.Disconnect, "the test is over")
		request := func(method, params string) *message {
			e := &exchange{answered: make(chan struct{})}
			ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`), e, nil, nil)
			return e.wait()
		}
		initialized := request("initialize", `{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":{"extensions":{"`+tasks.ID+`":{}}}}`)
		assert.NotContains(t, string(initialized.Result), "tasks")
		assert.Contains(t, string(request("tools/call", `{"name":"possible","arguments":{}}`).Result), "done")
		assert.Equal(t, -32600, request("tools/call", `{"name":"always","arguments":{}}`).Error.Code)
		assert.Equal(t, -32601, request("tasks/get", `{"taskId":"x"}`).Error.Code)
	})
}
