package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handlerSecret must never be seen on the wire.
const handlerSecret = "secret of the handler"

var origins = []cancellation.Origin{
	cancellation.Peer, cancellation.Disconnect, cancellation.SessionEnd,
	cancellation.Timeout, cancellation.Shutdown, cancellation.Parent,
}

// What reaches the wire is decided by the token alone: every origin of a cancel,
// and none, against everything that a handler can return.
func TestWireRule(t *testing.T) {
	returns := map[string]func(context.Context) error{
		"value":          func(context.Context) error { return nil },
		"own error":      func(context.Context) error { return errOwn },
		"own token":      cancellation.Checkpoint,
		"foreign cancel": func(context.Context) error { return &cancellation.Error{Origin: cancellation.Peer, Reason: "not mine"} },
		"context error":  func(context.Context) error { return context.Canceled },
		"protocol error": func(context.Context) error { return &sdkrpc.Error{Code: -31999, Message: "teapot"} },
		"panic":          func(context.Context) error { panic(handlerSecret) },
	}
	for _, era := range []string{server.Version20251125, server.Version20260728} {
		for _, method := range []string{"tools/call", "acme/act"} {
			for what, returned := range returns {
				name := era + "/" + method + "/" + what
				if what != "own token" { // it has no error then
					t.Run(name+"/none", func(t *testing.T) { testWireRule(t, era, method, nil, what, returned) })
				}
				for _, o := range origins {
					t.Run(name+"/"+o.String(), func(t *testing.T) {
						testWireRule(t, era, method, &cancellation.Error{Origin: o, Reason: "because"}, what, returned)
					})
				}
			}
		}
	}
}

func testWireRule(t *testing.T, era, method string, cancel *cancellation.Error, what string, returned func(context.Context) error) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var call *server.Call
		p := newPeer(t, f.Server, peerOptions{Version: era, Start: func(c *server.Call) {
			call = c
			go c.Run()
		}})
		act := func(ctx context.Context) error {
			if cancel != nil {
				<-ctx.Done()
			}
			return returned(ctx)
		}
		f.tool("act", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			return "done", act(ctx)
		})
		server.MustAddMethod(f.Server, "acme/act", func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (M, error) {
			return M{"text": "done"}, act(ctx)
		})
		var params M
		if method == "tools/call" {
			params = M{"name": "act"}
		}
		p.Request(1, method, params)
		p.settle() // the handler has started
		if cancel != nil {
			require.True(t, call.Cancel(cancel.Origin, cancel.Reason))
			require.False(t, call.Cancel(cancellation.Peer, "again"), "the first cancel decides")
		}
		d := f.Done(1)
		require.Equal(t, cancel != nil, d.Cancelled)
		if cancel != nil {
			require.Equal(t, cancel.Origin, d.Origin)
			require.Equal(t, "because", d.Reason)
		}
		silent := cancel != nil && !cancel.Origin.AnswerOwed()
		require.Equal(t, !silent, d.Answered)
		if silent {
			p.Silent(1)
			return
		}
		m := p.Answer(1)
		assert.NotContains(t, m.Raw, handlerSecret)
		checkWireRule(t, m, method, cancel, what)
	})
}

func checkWireRule(t *testing.T, m *message, method string, cancel *cancellation.Error, what string) {
	t.Helper()
	switch {
	case what == "value":
		require.False(t, m.IsError(), m.Raw)
		require.Contains(t, m.Raw, `"text":"done"`)
	case cancel != nil && method == "tools/call":
		require.Nil(t, m.Error, m.Raw)
		require.True(t, m.IsError(), m.Raw)
		require.Equal(t, cancel.Error(), m.Text())
	case cancel != nil:
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
		require.JSONEq(t, `{"origin":"`+cancel.Origin.String()+`"}`, string(m.Error.Data))
	case what == "panic":
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
		require.Equal(t, "internal error", m.Error.Message)
	case what == "protocol error":
		require.Equal(t, -31999, m.Code(), m.Raw)
		require.Equal(t, "teapot", m.Error.Message)
	case method == "tools/call":
		require.Nil(t, m.Error, m.Raw)
		require.True(t, m.IsError(), m.Raw)
		require.NotEmpty(t, m.Text())
	default:
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
		require.NotEmpty(t, m.Error.Message)
	}
}
