package server_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// statelessScopes are the places in which a handler may be parked: a stream with
// ids, and requests over HTTP without.
var statelessScopes = map[string]peerOptions{
	"stream": {Version: server.Version20260728, Caps: allCaps},
	"http":   {Version: server.Version20260728, Caps: allCaps, Scope: true},
}

// eachParked runs a test with a tool named ask, which elicits in.N (at least 1) times in
// turn and returns what it was given, joined.
func eachParked(t *testing.T, o *server.Options, test func(t *testing.T, f *fixture, p *peer)) {
	t.Helper()
	for name, po := range statelessScopes {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, o, po, func(t *testing.T, f *fixture, p *peer) {
				f.addAsk()
				test(t, f, p)
			})
		})
	}
}

func (f *fixture) addAsk() {
	f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
		f.add("ask", "started", nil)
		text := ""
		for range max(in.N, 1) {
			r, err := req.Elicit(ctx, nameForm)
			f.add("ask", "asked", err)
			if err != nil {
				return nil, err
			}
			text += fmt.Sprint(r.Content["name"])
		}
		if in.MS > 0 {
			if err := f.wait(ctx, tagged{Tag: "ask", MS: in.MS}); err != nil {
				return nil, err
			}
		}
		return text, nil
	})
}

var nameForm = &mcp.ElicitParams{Message: "who?", RequestedSchema: M{"type": "object", "properties": M{"name": M{"type": "string"}}}}

func named(name string) M { return M{"action": "accept", "content": M{"name": name}} }

// Retry sends a request again under a new id, with the state and answers to all that
// was asked for. params are changed in place.
func (p *peer) Retry(id any, of *message, params M, answers M) *reply {
	p.t.Helper()
	state, _ := of.State(p.t)
	params["requestState"] = state
	if answers != nil {
		params["inputResponses"] = answers
	}
	return p.Request(id, "tools/call", params)
}

// all answers all that a message asks for alike.
func (m *message) all(t testing.TB, answer any) M {
	t.Helper()
	_, requests := m.State(t)
	answers := M{}
	for key := range requests {
		answers[key] = answer
	}
	return answers
}

func TestInvariant_P1_AHandlerRunsOnce(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		const rounds = 20
		p.Call(0, "ask", tagged{N: rounds})
		for id := range rounds {
			m := p.Answer(id)
			p.Retry(id+1, m, callParams("ask", tagged{N: rounds}), m.all(t, named(fmt.Sprint(id%10))))
		}
		require.Equal(t, "01234567890123456789", p.Text(rounds))
		require.Equal(t, "started", f.Events("ask")[0])
		require.Len(t, f.Events("ask"), 1+rounds, "it was started once")
	})
}

// Progress, logs and the id are those of the request that attends; cancelling it
// cancels the operation, while a late cancel of the first request touches nothing.
func TestInvariant_P2_OneRequestAttends(t *testing.T) {
	inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.tool("watch", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			f.add(req.ID(), "id", req.Progress(ctx, 1, 0, ""))
			req.Log("error", "hello")
			if _, err := req.Elicit(ctx, nameForm); err != nil {
				return nil, err
			}
			f.add(req.ID(), "id", req.Progress(ctx, 2, 0, ""))
			req.Log("error", "hello")
			err := f.wait(ctx, tagged{Tag: "w"})
			assert.NoError(t, req.Progress(context.Background(), 3, 0, ""), "dropped")
			return nil, err
		})
		p.Call(1, "watch", nil, M{"progressToken": "a", mcp.MetaKeyLogLevel: "error"})
		first := p.Answer(1)
		params := callParams("watch", nil, M{"progressToken": "b"}) // and no logs any more
		p.Retry(2, first, params, first.all(t, named("x")))
		p.settle()
		require.Equal(t, []string{"id"}, f.Events("1"))
		require.Equal(t, []string{"id"}, f.Events("2"))
		p.Cancel(1, "a late cancel of the first round's id")
		p.Pending(2)
		p.Cancel(2, "stop")
		require.Equal(t, event{"w", "observed", "peer", "stop"}, f.Await("w", "observed"))
		f.Done(2)
		p.Silent(2)
		progress := p.Sent(progressMethod)
		require.Len(t, progress, 2)
		require.Equal(t, []any{"a", "1"}, []any{progress[0].Param("progressToken"), progress[0].On})
		require.Equal(t, []any{"b", "2"}, []any{progress[1].Param("progressToken"), progress[1].On})
		logs := p.Sent("notifications/message")
		require.Len(t, logs, 1)
		require.Equal(t, "1", logs[0].On)
	})
}

// When a cancel has been read, the handler's token has fired: it cannot begin a commit any more. That
// another goroutine attends the operation makes no difference.
func TestInvariant_P2_ACancelReachesTheHandlerAtOnce(t *testing.T) {
	inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		tokens := make(chan *cancellation.Token, 1)
		f.tool("hold", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			tokens <- req.Token()
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		for id := range 200 {
			p.Call(id, "hold", nil)
			token := <-tokens
			p.Cancel(id, "stop")
			require.True(t, token.Cancelled(), "request %d", id)
			p.settle()
		}
	})
}

// A cancel that races with the parking of its request ends the handler, whichever is first.
func TestInvariant_P2_CancelRacesWithParking(t *testing.T) {
	inBubbleWith(t, &server.Options{ParkTimeout: time.Hour}, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.addAsk()
		for id := range 2000 {
			p.Call(id, "ask", nil)
			time.Sleep(time.Millisecond) // the questions are put to the client at this very instant
			for range id % 50 {
				runtime.Gosched()
			}
			p.Cancel(id, "race")
			p.settle()
			require.Zero(t, f.Stats().Parked, "the handler was not told of the cancel of request %d", id)
		}
		require.NoError(t, p.ss.Wait(t.Context()))
	})
}

func TestInvariant_P3_AParkedOperationEnds(t *testing.T) {
	ends := map[string]struct {
		origin string
		end    func(t *testing.T, f *fixture, p *peer)
	}{
		"by the time limit": {"timeout", func(t *testing.T, f *fixture, p *peer) { time.Sleep(10*time.Minute + time.Second) }},
		"with the server":   {"shutdown", func(t *testing.T, f *fixture, p *peer) { require.NoError(t, f.Drain(t.Context())) }},
		"by a cancel": {"peer", func(t *testing.T, f *fixture, p *peer) {
			p.Cancel(1, "stop")
		}},
		"with its session": {"session_end", func(t *testing.T, f *fixture, p *peer) {
			p.ss.Close(cancellation.SessionEnd, "bye")
		}},
		"with a drain of its session": {"shutdown", func(t *testing.T, f *fixture, p *peer) {
			require.NoError(t, p.ss.Drain(t.Context(), time.Hour, "drained"))
		}},
	}
	for name, tt := range ends {
		for scope, po := range statelessScopes {
			if po.Scope && (name == "by a cancel" || name == "with its session" || name == "with a drain of its session") {
				continue // it has no ids and is never closed
			}
			t.Run(name+"/"+scope, func(t *testing.T) {
				inBubbleWith(t, nil, po, func(t *testing.T, f *fixture, p *peer) {
					f.addAsk()
					p.Call(1, "ask", nil)
					first := p.Answer(1)
					p.settle()
					tt.end(t, f, p)
					require.Equal(t, tt.origin, f.Await("ask", "asked").Origin)
					p.settle()
					require.Zero(t, f.Stats().Parked)
					require.False(t, p.ss.Busy())
					p.Retry(2, first, callParams("ask", nil), first.all(t, named("x")))
					require.NotZero(t, p.Answer(2).Code(), "there is nothing left to go on with")
				})
			})
		}
	}
}

// A handler that ignores the end of its parking is reported like any other.
func TestInvariant_P3_AStubbornParkedHandlerIsReported(t *testing.T) {
	inBubbleWith(t, &server.Options{Grace: time.Second}, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.tool("stubborn", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_, err := req.Elicit(ctx, nameForm)
			time.Sleep(time.Minute)
			return nil, err
		})
		p.Call(1, "stubborn", nil)
		p.Answer(1)
		p.settle()
		cancelled := time.Now()
		p.Cancel(1, "stop")
		time.Sleep(time.Second + time.Millisecond)
		p.settle()
		ignoring := f.Ignoring()
		require.Len(t, ignoring, 1)
		require.Equal(t, cancellation.Peer, ignoring[0].Origin)
		require.Equal(t, cancelled, ignoring[0].Requested)
		require.Contains(t, ignoring[0].Stack, "StubbornParkedHandlerIsReported")
		require.EqualValues(t, 1, f.Stats().Unresponsive)
		require.NoError(t, p.ss.Wait(t.Context()))
	})
}

func TestInvariant_P4_OnlyTheRightRetryResumes(t *testing.T) {
	type change func(p *peer, params M)
	wrong := map[string]change{
		"other arguments": func(_ *peer, params M) { params["arguments"] = M{"tag": "b", "n": 1} },
		"no arguments":    func(_ *peer, params M) { delete(params, "arguments") },
		"other tool":      func(_ *peer, params M) { params["name"] = "echo" },
		"more parameters": func(_ *peer, params M) { params["acme"] = 1 },
		"tampered state":  func(_ *peer, params M) { params["requestState"] = flip(params["requestState"].(string), 20) },
		"cut state":       func(_ *peer, params M) { params["requestState"] = params["requestState"].(string)[:40] },
		"empty state":     func(_ *peer, params M) { params["requestState"] = "" },
		"other alphabet":  func(_ *peer, params M) { params["requestState"] = params["requestState"].(string) + "=" },
		"made up state":   func(_ *peer, params M) { params["requestState"] = "eyJvIjoiIn0" },
		"no string":       func(_ *peer, params M) { params["requestState"] = 7 },
		"null":            func(_ *peer, params M) { params["requestState"] = nil },
		"bad responses":   func(_ *peer, params M) { params["inputResponses"] = []int{1} },
		"null responses":  func(_ *peer, params M) { params["inputResponses"] = nil },
		"other principal": func(p *peer, _ M) { p.extra = as("eve", p.extra) },
		"no principal":    func(p *peer, _ M) { p.extra = as("", p.extra) },
	}
	for name, change := range wrong {
		t.Run(name, func(t *testing.T) {
			eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
				own := as("ann", p.extra)
				p.extra = own
				right := M{"name": "ask", "arguments": M{"tag": "a", "n": 1}}
				p.Request(1, "tools/call", right)
				first := p.Answer(1)
				state, _ := first.State(t)
				params := M{
					"name": "ask", "arguments": M{"n": 1, "tag": "a"}, // the order of keys does not matter
					"requestState": state, "inputResponses": first.all(t, named("x")),
				}
				change(p, params)
				p.Request(2, "tools/call", params)
				m := p.Answer(2)
				require.EqualValues(t, sdkrpc.CodeInvalidParams, m.Code(), m.Raw)
				require.NotContains(t, m.Raw, "ann")
				p.extra = own
				p.Retry(3, first, right, first.all(t, named("right")))
				require.Equal(t, "right", p.Text(3))
			})
		})
	}
}

func flip(s string, at int) string {
	b := []byte(s)
	if b[at] == 'A' {
		b[at] = 'B'
	} else {
		b[at] = 'A'
	}
	return string(b)
}

// A state is good for one retry.
func TestInvariant_P4_AStateResumesOnce(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		params := func() M { return callParams("ask", tagged{N: 2}) }
		p.Request(1, "tools/call", params())
		first := p.Answer(1)
		p.Retry(2, first, params(), first.all(t, named("a")))
		second := p.Answer(2)
		p.Retry(3, first, params(), first.all(t, named("replayed")))
		require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(3).Code())
		p.Retry(4, second, params(), second.all(t, named("b")))
		require.Equal(t, "ab", p.Text(4))
		p.Retry(5, second, params(), second.all(t, named("replayed")))
		require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(5).Code())
	})
}

// Of two retries at once one resumes, the other is refused.
func TestInvariant_P4_TwoRetriesAtOnce(t *testing.T) {
	for name, po := range statelessScopes {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.addAsk()
			p := newPeer(t, f.Server, po)
			for i := range 100 {
				p.Call(i*3, "ask", nil)
				first := p.Answer(i * 3)
				p.Retry(i*3+1, first, callParams("ask", nil), first.all(t, named("x")))
				p.Retry(i*3+2, first, callParams("ask", nil), first.all(t, named("x")))
				a, b := p.Answer(i*3+1), p.Answer(i*3+2)
				require.True(t, (a.Code() == 0) != (b.Code() == 0), "%s\n%s", a.Raw, b.Raw)
			}
		})
	}
}

// The handler ends while nobody attends: what became of it is told to the retry.
func TestInvariant_P5_TheOutcomeWaitsForTheRetry(t *testing.T) {
	for _, what := range []string{"value", "error", "panic"} {
		t.Run(what, func(t *testing.T) {
			eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
				f.tool("impatient", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
					soon, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, err := req.Elicit(soon, nameForm)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					switch in.Tag {
					case "error":
						return nil, errOwn
					case "panic":
						panic(handlerSecret)
					}
					return "without an answer", nil
				})
				p.Call(1, "impatient", tagged{Tag: what})
				first := p.Answer(1)
				time.Sleep(2 * time.Second)
				p.settle()
				require.False(t, p.ss.Busy())
				require.Equal(t, 1, f.Stats().Parked, "the outcome is kept")
				p.Retry(2, first, callParams("impatient", tagged{Tag: what}), first.all(t, named("late")))
				m := p.Answer(2)
				switch what {
				case "value":
					require.Equal(t, "without an answer", m.Text())
				case "error":
					require.True(t, m.IsError())
					require.Equal(t, errOwn.Error(), m.Text())
				case "panic":
					require.EqualValues(t, sdkrpc.CodeInternalError, m.Code())
					require.NotContains(t, m.Raw, handlerSecret)
				}
				require.Zero(t, f.Stats().Parked)
			})
		})
	}
}

// An outcome that nobody comes for is forgotten in time.
func TestInvariant_P5_TheOutcomeExpires(t *testing.T) {
	eachParked(t, &server.Options{ParkTimeout: 3 * time.Second}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("impatient", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = req.Elicit(soon, nameForm)
			return "x", nil
		})
		p.Call(1, "impatient", nil)
		first := p.Answer(1)
		time.Sleep(5 * time.Second)
		require.Zero(t, f.Stats().Parked)
		p.Retry(2, first, callParams("impatient", nil), nil)
		require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(2).Code())
	})
}
