package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Small scenarios from the field, each for a stream of either era. Those about
// progress, limits, nested calls and the like stand beside the tests of those.

func TestCase01_CancelledCallIsNeverAnswered(t *testing.T) {
	for _, tool := range []string{"cancel_wait", "cancel_value", "cancel_error", "cancel_foreign", "cancel_panic"} {
		t.Run(tool, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				p.Call(1, tool, tagged{Tag: "a"})
				f.Await("a", "started")
				p.Cancel(1, "r")
				f.Await("a", "observed")
				f.Done(1)
				p.Silent(1)
				p.Call(2, "echo", M{"text": "still here"})
				require.Equal(t, "still here", p.Text(2))
			})
		})
	}
}

func TestCase10_NumbersAndStringsAreDifferentIDs(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(7, "cancel_wait", tagged{Tag: "number"})
		p.Call("7", "cancel_wait", tagged{Tag: "string"})
		f.Await("number", "started")
		f.Await("string", "started")
		p.Cancel("7", "r")
		p.Silent("7")
		p.Pending(7)
		p.Cancel(7, "r")
		p.Silent(7)
	})
}

// Whatever the params of a cancel are, there is no answer and no harm.
func TestCase11_OddCancels(t *testing.T) {
	line := func(params string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`
	}
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		ids := map[string]json.RawMessage{"one": json.RawMessage(`1`), "three": json.RawMessage(`3`), "big": json.RawMessage(`9007199254740992`), "true": json.RawMessage(`"true"`)}
		for tag, id := range ids {
			p.Call(id, "cancel_wait", tagged{Tag: tag})
			f.Await(tag, "started")
		}
		before := len(p.Lines())
		for _, params := range []string{
			`{"requestId":3.7}`, `{"requestId":3.0}`, `{"requestId":3e0}`, `{"requestId":9007199254740993}`, `{"requestId":true}`, `{"requestId":null}`,
			`{"requestId":{}}`, `{"requestId":[1]}`, `{}`, `[]`, `"x"`, `null`, `[1]`, `{"requestID":1}`, `{"RequestId":1}`, `{"id":1}`, `{"requestId":" 1"}`,
			`{"requestId":"1"}`, `{"requestId":-0}`, `{"requestId":01}`,
		} {
			p.Raw("", line(params))
		}
		p.Raw("", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		for _, id := range ids {
			p.Pending(id)
		}
		p.settle()
		for _, m := range p.Lines()[before:] {
			// A line that is no JSON at all is answered as that.
			require.EqualValues(t, sdkrpc.CodeParseError, m.Code(), m.Raw)
		}
		require.Empty(t, f.logs.Above(slog.LevelInfo))
		p.Raw("", line(`{"requestId":9007199254740992,"reason":7}`))
		require.Equal(t, event{"big", "observed", "peer", ""}, f.Await("big", "observed"))
		p.Raw("", line(`{"requestId":1,"reason":null,"more":[1]}`))
		require.Equal(t, event{"one", "observed", "peer", ""}, f.Await("one", "observed"))
		p.Cancel(3, "")
		p.Cancel("true", "")
		p.Silent(ids["big"])
	})
}

func TestCase13_AnIDMayBeReused(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		for i := range 50 {
			tag := fmt.Sprint(i)
			p.Call(1, "cancel_wait", tagged{Tag: tag})
			f.Await(tag, "started")
			p.Cancel(1, "r")
			f.Await(tag, "observed")
			p.Silent(1)
			p.Call(1, "echo", M{"text": tag})
			require.Equal(t, tag, p.Text(1))
		}
	})
}

func TestCase14_ADuplicateIsRefused(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_wait", tagged{Tag: "a"})
		f.Await("a", "started")
		m := p.dup(1, "echo")
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, m.Code())
		require.Equal(t, "1", string(m.ID))
		p.Pending(1)
		p.Cancel(1, "still cancellable")
		require.Equal(t, "still cancellable", f.Await("a", "observed").Reason)
		p.Silent(1)
	})
}

func TestCase16_TwoSessions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for _, version := range []string{server.Version20251125, server.Version20260728} {
			a, b := newPeer(t, f.Server, peerOptions{Version: version}), newPeer(t, f.Server, peerOptions{Version: version})
			a.Call(1, "cancel_wait", tagged{Tag: "a" + version})
			b.Call(1, "cancel_wait", tagged{Tag: "b" + version, MS: 1000})
			a.settle()
			a.Cancel(1, "r")
			a.Silent(1)
			require.Equal(t, "done", b.Text(1))
		}
	})
}

// A cancel between the reading of a request and its handler's first line takes effect.
func TestCase18_CancelBeforeTheHandlerStarts(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		var call *server.Call
		p.start = func(c *server.Call) { call = c }
		p.Call(1, "cancel_wait", tagged{Tag: "a"})
		p.Cancel(1, "r")
		p.Silent(1)
		call.Run()
		require.Empty(t, f.Events("a"), "it never started")
		require.Equal(t, "r", f.Done(1).Reason)
		require.Zero(t, f.Stats().Lingering)
	})
}

func TestCase20_NestedElicitation(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_, err := req.Elicit(ctx, form)
			f.add("ask", "freed", err)
			return "done", nil
		})
		r := p.Call(1, "ask", nil)
		q := p.Asked("elicitation/create", 1)
		r.onSend = func([]byte) { assert.False(t, r.silenced(), "the client hears of it before the stream ends") }
		p.Cancel(1, "user pressed stop")
		require.Equal(t, "user pressed stop", f.Await("ask", "freed").Reason)
		p.Silent(1)
		cancelled := p.Sent("notifications/cancelled")
		require.Len(t, cancelled, 1)
		require.Equal(t, string(q.ID), encode(t, cancelled[0].Param("requestId")))
		require.Equal(t, "user pressed stop", cancelled[0].Param("reason"))
	})
}

// A late answer to a nested call is dropped, and reading goes on.
func TestCase22_LateNestedAnswer(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			return nil, req.Ping(ctx)
		})
		p.Call(1, "ask", nil)
		first := p.Asked("ping", 1)
		p.Cancel(1, "r")
		p.Silent(1)
		p.Call(2, "ask", nil)
		second := p.Asked("ping", 2)
		require.NotEqual(t, first.ID, second.ID)
		p.Respond(first, M{})
		p.Pending(2)
		p.Respond(second, M{})
		p.Text(2)
	})
}

// An unrelated context does not keep a nested call alive.
func TestCase25_BackgroundContext(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_, err := req.ListRoots(context.Background())
			f.add("ask", "freed", err)
			return nil, err
		})
		p.Call(1, "ask", nil)
		p.Asked("roots/list", 1)
		p.Cancel(1, "r")
		require.Equal(t, "r", f.Await("ask", "freed").Reason)
		p.Silent(1)
	})
}

func TestCase28_AlreadyCancelledParent(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		resume := make(chan struct{})
		f.tool("ask", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			<-resume
			_, err := req.Elicit(context.Background(), form)
			f.add("ask", "freed", err)
			return nil, err
		})
		p.Call(1, "ask", nil)
		p.settle()
		p.Cancel(1, "r")
		close(resume)
		require.Equal(t, "r", f.Await("ask", "freed").Reason)
		p.settle()
		require.Empty(t, p.Sent("elicitation/create"))
		p.Silent(1)
	})
}
