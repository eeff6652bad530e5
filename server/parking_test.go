package server_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParking_TheBoundHolds(t *testing.T) {
	inBubbleWith(t, &server.Options{MaxParked: 2}, peerOptions{Version: server.Version20260728, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			_, err := req.Elicit(ctx, form)
			return nil, err
		})
		for id := range 10 {
			p.Call(id, "ask", nil)
		}
		refused := 0
		for id := range 10 {
			if m := p.Answer(id); m.IsError() {
				require.Contains(t, m.Text(), "too many")
				refused++
			}
		}
		require.Equal(t, 8, refused)
		require.Equal(t, 2, f.Stats().Parked)
	})
}

func TestParked_GoesOnWithTheRetry(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "ask", nil)
		first := p.Answer(1)
		state, requests := first.State(t)
		require.NotEmpty(t, state)
		require.Len(t, requests, 1)
		for _, r := range requests {
			require.Equal(t, "elicitation/create", r.Method)
			require.JSONEq(t, `{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`, string(r.Params))
		}
		require.Equal(t, 1, f.Stats().Parked)
		require.Zero(t, f.Stats().InFlight)
		time.Sleep(time.Minute)
		p.Retry(2, first, callParams("ask", nil), first.all(t, named("ann")))
		require.Equal(t, "ann", p.Text(2))
		require.Zero(t, f.Stats().Parked)
		require.NoError(t, p.ss.Wait(t.Context()))
	})
}

// What was not answered is asked again, under the same key, with another state.
func TestParked_MissingAnswersAreAskedAgain(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "ask", nil)
		m := p.Answer(1)
		for id, answers := range []M{nil, {}, {"unknown": named("x")}, {"input_1": nil}, {"input_1": "text"}, {"input_1": 5}} {
			before, requests := m.State(t)
			p.Retry(id+2, m, callParams("ask", nil), answers)
			m = p.Answer(id + 2)
			after, again := m.State(t)
			require.Equal(t, requests, again)
			require.NotEqual(t, before, after)
		}
		p.Retry(100, m, callParams("ask", nil), m.all(t, named("x")))
		require.Equal(t, "x", p.Text(100))
	})
}

// What is asked at once is asked in one round.
func TestParked_ConcurrentQuestions(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		f.tool("many", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := req.Elicit(ctx, nameForm)
					f.add("many", "asked", err)
				})
			}
			all.Go(func() {
				_, err := req.ListRoots(ctx)
				f.add("many", "asked", err)
			})
			all.Wait()
			return "done", nil
		})
		p.Call(1, "many", nil)
		m := p.Answer(1)
		_, requests := m.State(t)
		require.Len(t, requests, 4)
		some := M{}
		for key, r := range requests {
			if r.Method == "roots/list" {
				some[key] = M{"roots": []any{}}
			}
		}
		p.Retry(2, m, callParams("many", nil), some)
		m = p.Answer(2)
		_, requests = m.State(t)
		require.Len(t, requests, 3)
		require.Equal(t, []string{"asked"}, f.Events("many"), "what was answered goes on")
		p.Retry(3, m, callParams("many", nil), m.all(t, named("x")))
		require.Equal(t, "done", p.Text(3))
	})
}

// A retry whose handler ignores its token: the stream is silent at once, and the
// handler reported.
func TestParked_HandlerIgnoresItsToken(t *testing.T) {
	eachParked(t, &server.Options{Grace: time.Second}, func(t *testing.T, f *fixture, p *peer) {
		var call *server.Call
		p.start = func(c *server.Call) { call = c; go c.Run() }
		f.tool("stubborn", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_, err := req.Elicit(ctx, nameForm)
			time.Sleep(10 * time.Second)
			return "done", err
		})
		p.Call(1, "stubborn", nil)
		first := p.Answer(1)
		p.Retry(2, first, callParams("stubborn", nil), first.all(t, named("x")))
		p.settle()
		require.True(t, call.Cancel(cancellation.Disconnect, "closed"))
		p.Silent(2)
		require.Equal(t, 1, f.Stats().Lingering)
		time.Sleep(2 * time.Second)
		require.Len(t, f.Ignoring(), 1)
		require.Contains(t, f.Ignoring()[0].Stack, "HandlerIgnoresItsToken")
		d := f.Done(2)
		require.Equal(t, cancellation.Disconnect, d.Origin)
		require.Equal(t, 10*time.Second, d.Returned.Sub(d.Requested))
		require.Zero(t, f.Stats().Lingering)
	})
}

// A limit fires on the request that attends, and the answer names it.
func TestParked_LimitOfTheRetry(t *testing.T) {
	eachParked(t, &server.Options{Timeout: 100 * time.Millisecond}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "ask", tagged{MS: 1000})
		first := p.Answer(1)
		time.Sleep(time.Second) // being parked does not count
		p.Retry(2, first, callParams("ask", tagged{MS: 1000}), first.all(t, named("x")))
		m := p.Answer(2)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "timeout")
		require.Equal(t, "timeout", f.Await("ask", "observed").Origin)
	})
}

// A client without any of these capabilities is told which is missing.
func TestParked_CapabilityMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		caps M
		ask  func(context.Context, *servercontext.Request) error
		want string
	}{
		"form": {M{"sampling": M{}}, func(ctx context.Context, req *servercontext.Request) error {
			_, err := req.Elicit(ctx, form)
			return err
		}, `{"elicitation":{"form":{}}}`},
		"url, has form": {M{"elicitation": M{}}, func(ctx context.Context, req *servercontext.Request) error {
			_, err := req.Elicit(ctx, &mcp.ElicitParams{URL: "https://example.com"})
			return err
		}, `{"elicitation":{"url":{}}}`},
		"form, has url": {M{"elicitation": M{"url": M{}}}, func(ctx context.Context, req *servercontext.Request) error {
			_, err := req.Elicit(ctx, form)
			return err
		}, `{"elicitation":{"form":{}}}`},
		"sampling with tools": {M{"sampling": M{}}, func(ctx context.Context, req *servercontext.Request) error {
			_, err := req.CreateMessageWithTools(ctx, &mcp.CreateMessageWithToolsParams{})
			return err
		}, `{"sampling":{"tools":{}}}`},
		"roots": {M{}, func(ctx context.Context, req *servercontext.Request) error {
			_, err := req.ListRoots(ctx)
			return err
		}, `{"roots":{}}`},
		"several": {M{"sampling": M{}}, func(_ context.Context, req *servercontext.Request) error {
			return req.RequireClientCapability("roots", "sampling", "elicitation.url", "elicitation.form", "extensions.com.example/x")
		}, `{"roots":{},"elicitation":{"url":{},"form":{}},"extensions":{"com.example/x":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Caps: tt.caps}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("need", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					return nil, tt.ask(ctx, req)
				})
				p.Call(1, "need", nil)
				m := p.Answer(1)
				require.EqualValues(t, mcp.CodeMissingRequiredClientCapabilities, m.Code(), m.Raw)
				require.JSONEq(t, `{"requiredCapabilities":`+tt.want+`}`, string(m.Error.Data))
			})
		})
	}
}

// The stateless era has no requests from the server.
func TestStateless_NoRequestsToTheClient(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		f.tool("call", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			assert.ErrorIs(t, req.Ping(ctx), servercontext.ErrNotSupported)
			assert.ErrorIs(t, req.Call(ctx, "acme/x", nil, nil), servercontext.ErrNotSupported)
			return nil, nil
		})
		server.MustAddMethod(f.Server, "acme/ask", func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (M, error) {
			_, err := req.Elicit(ctx, form)
			return nil, err
		})
		p.Call(1, "call", nil)
		p.Text(1)
		p.Request(2, "acme/ask", nil)
		require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(2).Code(), "its results cannot ask for input")
		for _, m := range p.Lines() {
			require.Empty(t, m.Method)
		}
	})
}

// A retry may come over another stream; what was parked there is then found there.
func TestParked_RetryOverAnotherStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.addAsk()
		a, b := newPeer(t, f.Server, statelessScopes["stream"]), newPeer(t, f.Server, statelessScopes["stream"])
		args := tagged{N: 3}
		a.Call(1, "ask", args)
		first := a.Answer(1)
		b.Retry(7, first, callParams("ask", args), first.all(t, named("a")))
		second := b.Answer(7)
		a.Cancel(1, "of the first round, on the first stream")
		b.Retry(8, second, callParams("ask", args), second.all(t, named("b")))
		third := b.Answer(8)
		b.Cancel(7, "of the second round")
		b.settle()
		require.Equal(t, 1, f.Stats().Parked)
		b.Cancel(8, "of the third")
		b.settle()
		require.Zero(t, f.Stats().Parked)
		require.False(t, a.ss.Busy())
		b.Retry(9, third, callParams("ask", args), nil)
		require.EqualValues(t, sdkrpc.CodeInvalidParams, b.Answer(9).Code())
	})
}
