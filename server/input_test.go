package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addReturning adds a tool of the returning style: it asks in.N rounds, for a name and
// the roots at once, and keeps what it was given in its state.
func (f *fixture) addReturning() {
	f.tool("returning", func(_ context.Context, req *servercontext.Request, in tagged) (any, error) {
		var seen []string
		if req.RequestState() != "" {
			assert.NoError(f.t, json.Unmarshal([]byte(req.RequestState()), &seen))
		}
		if r, ok := req.InputResponses()["name"].(*mcp.ElicitResult); ok {
			seen = append(seen, fmt.Sprint(r.Content["name"]))
		}
		f.add("returning", fmt.Sprint(len(req.InputResponses())), nil)
		if len(seen) >= in.N {
			return fmt.Sprint(seen), nil
		}
		state, err := json.Marshal(seen)
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"name": nameForm, "roots": &mcp.ListRootsParams{}},
			RequestState:  string(state),
		}, err
	})
}

func TestReturning_HandshakeAsksAndCallsAgain(t *testing.T) {
	for _, version := range []string{server.Version20250618, server.Version20251125} {
		inBubbleWith(t, nil, peerOptions{Version: version, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
			f.addReturning()
			p.Call(1, "returning", tagged{N: 2})
			for round := 1; round <= 2; round++ {
				roots := p.Asked("roots/list", round)
				p.Respond(p.Asked("elicitation/create", round), named(fmt.Sprint(round)))
				p.Pending(1)
				p.Respond(roots, M{"roots": []any{}})
			}
			require.Equal(t, "[1 2]", p.Text(1))
			require.Equal(t, []string{"0", "2", "2"}, f.Events("returning"))
			asked := p.Asked("elicitation/create", 1)
			if version == server.Version20250618 {
				require.Nil(t, asked.Param("mode"), "modes came with 2025-11-25")
			} else {
				require.Equal(t, "form", asked.Param("mode"))
			}
		})
	}
}

func TestReturning_StatelessIsRetried(t *testing.T) {
	for _, caps := range []M{allCaps, {"elicitation": M{}, "roots": M{}}} {
		for scope := range statelessScopes {
			inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Scope: scope == "http", Caps: caps}, func(t *testing.T, f *fixture, p *peer) {
				f.addReturning()
				args := tagged{N: 3}
				p.Call(0, "returning", args)
				for id := range 3 {
					m := p.Answer(id)
					state, requests := m.State(t)
					require.NotContains(t, state, "[", "what the handler keeps cannot be read")
					require.Len(t, requests, 2)
					require.Equal(t, `{}`, string(requests["roots"].Params))
					p.Retry(id+1, m, callParams("returning", args), M{
						"name": named(fmt.Sprint(id)), "roots": M{"roots": []any{}}, "unknown": M{"x": 1}, "odd": 5,
					})
				}
				require.Equal(t, "[0 1 2]", p.Text(3))
				p.settle()
				require.False(t, p.ss.Busy(), "nothing is kept at the server")
				require.Zero(t, f.Stats().Parked)
			})
		}
	}
}

// A server that shares its keys can serve the retry, and keys can be rotated.
func TestReturning_OverServers(t *testing.T) {
	key := func(b byte) []byte { k := make([]byte, 32); k[0] = b; return k }
	first := func(t *testing.T, keys ...[]byte) (*message, M) {
		f := newFixture(t, &server.Options{StateKeys: keys})
		f.addReturning()
		p := newPeer(t, f.Server, statelessScopes["http"])
		p.Call(1, "returning", tagged{N: 1})
		m := p.Answer(1)
		return m, m.all(t, named("x"))
	}
	retry := func(t *testing.T, m *message, answers M, keys ...[]byte) *message {
		f := newFixture(t, &server.Options{StateKeys: keys})
		f.addReturning()
		p := newPeer(t, f.Server, statelessScopes["http"])
		p.Retry(2, m, callParams("returning", tagged{N: 1}), answers)
		return p.Answer(2)
	}
	m, answers := first(t, key(1))
	require.Equal(t, "[x]", retry(t, m, answers, key(1)).Text())
	require.Equal(t, "[x]", retry(t, m, answers, key(2), key(1)).Text(), "the old key still opens")
	require.EqualValues(t, sdkrpc.CodeInvalidParams, retry(t, m, answers, key(2)).Code())
	require.EqualValues(t, sdkrpc.CodeInvalidParams, retry(t, m, answers).Code(), "a key of its own")
	_, err := server.TryNew(&mcp.Implementation{Name: "x", Version: "1"}, &server.Options{StateKeys: [][]byte{make([]byte, 16)}})
	require.ErrorContains(t, err, "16 bytes")
}

func TestReturning_StateExpires(t *testing.T) {
	inBubbleWith(t, &server.Options{StateLifetime: time.Minute}, statelessScopes["http"], func(t *testing.T, f *fixture, p *peer) {
		f.addReturning()
		for i, wait := range []time.Duration{59 * time.Second, time.Minute} {
			p.Call(i*2, "returning", tagged{N: 1})
			m := p.Answer(i * 2)
			time.Sleep(wait)
			p.Retry(i*2+1, m, callParams("returning", tagged{N: 1}), m.all(t, named("x")))
			if i == 0 {
				require.Equal(t, "[x]", p.Text(1))
			} else {
				require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(3).Code())
			}
		}
	})
}

// A state may come back to another process, or to one whose clock was set meanwhile: what counts is the
// system's clock there. (Each bubble's clock begins anew, in 2000.)
func TestReturning_TheClockJumps(t *testing.T) {
	key := make([]byte, 32)
	o := &server.Options{StateKeys: [][]byte{key}, StateLifetime: time.Minute}
	at := func(since time.Duration, do func(p *peer)) {
		inBubbleWith(t, o, statelessScopes["http"], func(t *testing.T, f *fixture, p *peer) {
			f.addReturning()
			time.Sleep(since)
			do(p)
		})
	}
	var m *message
	var answers M
	at(time.Hour, func(p *peer) {
		p.Call(1, "returning", tagged{N: 1})
		m = p.Answer(1)
		answers = m.all(t, named("x"))
	})
	for since, good := range map[time.Duration]bool{
		0:                          true, // set back: it lives for longer
		time.Hour:                  true,
		time.Hour + 59*time.Second: true,
		time.Hour + time.Minute:    false,
		24 * time.Hour:             false, // set ahead: it ends early, and the client begins anew
	} {
		at(since, func(p *peer) {
			p.Retry(2, m, callParams("returning", tagged{N: 1}), answers)
			if good {
				require.Equal(t, "[x]", p.Text(2), since)
			} else {
				require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(2).Code(), since)
			}
		})
	}
}

// A state without requests means: come back later. The client of the handshake era
// cannot, so the server does it for it.
func TestReturning_LoadShedding(t *testing.T) {
	busy := func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
		if req.RequestState() == "busy" {
			return "done", nil
		}
		return &mcp.CallToolResult{RequestState: "busy"}, nil
	}
	inBubbleWith(t, nil, statelessScopes["http"], func(t *testing.T, f *fixture, p *peer) {
		f.tool("busy", busy)
		p.Call(1, "busy", nil)
		m := p.Answer(1)
		_, requests := m.State(t)
		require.Empty(t, requests)
		require.NotContains(t, m.Raw, "inputRequests")
		p.Retry(2, m, callParams("busy", nil), nil)
		require.Equal(t, "done", p.Text(2))
	})
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("busy", busy)
		start := time.Now()
		p.Call(1, "busy", nil)
		require.Equal(t, "done", p.Text(1))
		require.Equal(t, 100*time.Millisecond, time.Since(start))
	})
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("always", func(context.Context, *servercontext.Request, tagged) (any, error) {
			f.add("always", "called", nil)
			return &mcp.CallToolResult{RequestState: "busy"}, nil
		})
		p.Call(1, "always", nil)
		m := p.Answer(1)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "10 times")
		require.Len(t, f.Events("always"), 10)
		p.Call(2, "always", nil)
		p.settle()
		p.Cancel(2, "while it waits to be called again")
		p.Silent(2)
		require.Len(t, f.Events("always"), 11)
	})
}

// A cancel between rounds, or while the client is being asked, ends it.
func TestReturning_Cancelled(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.addReturning()
		p.Call(1, "returning", tagged{N: 1})
		p.Asked("elicitation/create", 1)
		p.Respond(p.Asked("roots/list", 1), M{"roots": []any{}})
		p.settle()
		p.Cancel(1, "stop")
		p.Silent(1)
		require.Equal(t, []string{"0"}, f.Events("returning"), "it is not called again")
		require.Len(t, p.Sent("notifications/cancelled"), 1, "only what is open is retracted")
	})
}

// The first failure ends the wait and retracts the rest.
func TestReturning_OneQuestionFails(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.addReturning()
		p.Call(1, "returning", tagged{N: 1})
		form := p.Asked("elicitation/create", 1)
		p.RespondError(p.Asked("roots/list", 1), -1, "no roots today")
		m := p.Answer(1)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "no roots today")
		retracted := p.Sent("notifications/cancelled")
		require.Len(t, retracted, 1)
		require.Equal(t, string(form.ID), encode(t, retracted[0].Param("requestId")))
	})
}

// All that the client cannot do is named at once, before anything is sent.
func TestCase54_AllMissingCapabilitiesAreNamed(t *testing.T) {
	ask := func(context.Context, *servercontext.Request, tagged) (any, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
			"a": form, "b": &mcp.ListRootsParams{}, "c": &mcp.CreateMessageParams{}, "d": &mcp.CreateMessageParams{},
		}}, nil
	}
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Caps: M{"roots": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", ask)
		p.Call(1, "ask", nil)
		m := p.Answer(1)
		require.EqualValues(t, mcp.CodeMissingRequiredClientCapabilities, m.Code(), m.Raw)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{"form":{}},"sampling":{}}}`, string(m.Error.Data))
	})
	inBubbleWith(t, nil, peerOptions{Caps: M{"roots": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", ask)
		p.Call(1, "ask", nil)
		m := p.Answer(1)
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, m.Code(), "the code is of the stateless era only")
		require.Contains(t, m.Error.Message, "elicitation.form, sampling")
		require.Empty(t, p.Sent("roots/list"))
	})
}

func TestReturning_NothingAskedFor(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("odd", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}}, nil
		})
		p.Call(1, "odd", nil)
		require.True(t, p.Answer(1).IsError())
	})
}

// One odd entry among the responses does not cost the others.
func TestCase55_OddInputResponses(t *testing.T) {
	inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		var got mcp.InputResponseMap
		f.tool("look", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			if got = req.InputResponses(); got == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": nameForm}, RequestState: "s"}, nil
			}
			return "done", nil
		})
		p.Call(1, "look", nil)
		p.Retry(2, p.Answer(1), callParams("look", nil), M{
			"name": named("x"), "unknown": M{"shape": M{}}, "null": nil, "number": 5, "array": []int{1}, "roots": M{"roots": []any{}}, "sampling": sampled,
		})
		require.Equal(t, "done", p.Text(2))
		require.IsType(t, &mcp.ElicitResult{}, got["name"])
		require.IsType(t, &mcp.ListRootsResult{}, got["roots"])
		require.NotContains(t, got, "null")
		require.NotContains(t, got, "number")
		require.NotContains(t, got, "array")
	})
}

// What a revision does not have is not sent, whatever its client declares.
func TestNested_OnlyWhatTheRevisionHas(t *testing.T) {
	for _, version := range server.Versions()[1:] {
		for kind, first := range map[string]string{
			"elicitation_form": server.Version20250618, "elicitation_url": server.Version20251125, "sampling_tools": server.Version20251125,
			"sampling": server.Version20241105, "roots": server.Version20241105, "ping": server.Version20241105,
		} {
			nested := nestedCalls[kind]
			inBubbleWith(t, nil, peerOptions{Version: version, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("ask", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					return nil, nested.ask(ctx, req)
				})
				p.Call(1, "ask", nil)
				p.settle()
				if version >= first {
					p.Respond(p.Asked(nested.method, 1), nested.answer)
					require.False(t, p.Answer(1).IsError(), "%s in %s: %s", kind, version, p.Answer(1).Raw)
					return
				}
				require.Empty(t, p.Sent(nested.method), "%s in %s", kind, version)
				require.True(t, p.Answer(1).IsError())
				require.Contains(t, p.Answer(1).Raw, version)
			})
		}
	}
}
