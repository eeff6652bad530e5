package server_test

import (
	"context"
	"encoding/json"
	"errors"
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

// nestedCalls are all ways to ask the client in the handshake era.
var nestedCalls = map[string]struct {
	method string
	ask    func(context.Context, *servercontext.Request) error
	answer any
}{
	"elicitation_form": {"elicitation/create", func(ctx context.Context, req *servercontext.Request) error {
		_, err := req.Elicit(ctx, form)
		return err
	}, accepted},
	"elicitation_url": {"elicitation/create", func(ctx context.Context, req *servercontext.Request) error {
		_, err := req.Elicit(ctx, &mcp.ElicitParams{Message: "pay", URL: "https://example.com/pay", ElicitationID: "e1"})
		return err
	}, M{"action": "accept"}},
	"sampling": {"sampling/createMessage", func(ctx context.Context, req *servercontext.Request) error {
		_, err := req.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 10})
		return err
	}, sampled},
	"sampling_tools": {"sampling/createMessage", func(ctx context.Context, req *servercontext.Request) error {
		_, err := req.CreateMessageWithTools(ctx, &mcp.CreateMessageWithToolsParams{MaxTokens: 10})
		return err
	}, sampled},
	"roots": {"roots/list", func(ctx context.Context, req *servercontext.Request) error {
		_, err := req.ListRoots(ctx)
		return err
	}, M{"roots": []any{}}},
	"ping": {"ping", func(ctx context.Context, req *servercontext.Request) error { return req.Ping(ctx) }, M{}},
	"call": {"acme/ask", func(ctx context.Context, req *servercontext.Request) error {
		return req.Call(ctx, "acme/ask", M{"a": 1}, nil)
	}, M{}},
}

// eachNested runs a test for every kind of nested call, made by a tool named ask. The
// handler's error goes to the events under "ask".
func eachNested(t *testing.T, o *server.Options, po peerOptions, test func(t *testing.T, f *fixture, p *peer, method string, answer any)) {
	t.Helper()
	if po.Caps == nil {
		po.Caps = allCaps
	}
	for kind, nested := range nestedCalls {
		t.Run(kind, func(t *testing.T) {
			inBubbleWith(t, o, po, func(t *testing.T, f *fixture, p *peer) {
				f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
					if in.Tag == "background" {
						ctx = context.Background()
					}
					if in.MS > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Duration(in.MS)*time.Millisecond)
						defer cancel()
					}
					err := nested.ask(ctx, req)
					f.add("ask", "asked", err)
					return "done", err
				})
				test(t, f, p, nested.method, nested.answer)
			})
		})
	}
}

func TestNested_AnsweredOnTheParentsStream(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
		p.Call(1, "ask", nil)
		q := p.Asked(method, 1)
		require.Equal(t, "1", q.On, "it belongs to its request's stream")
		p.Pending(1)
		p.Respond(q, answer)
		require.Equal(t, "done", p.Text(1))
		require.Empty(t, p.Sent("notifications/cancelled"))
	})
}

func TestInvariant_Q1_AQuestionOfACancelledRequestIsNotWritten(t *testing.T) {
	for _, tag := range []string{"", "background"} {
		eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
			f.Server.Use(func(next server.Handler) server.Handler {
				return func(ctx context.Context, req *servercontext.Request) (any, error) {
					p.Cancel(1, "before the question")
					return next(ctx, req)
				}
			})
			p.Call(1, "ask", tagged{Tag: tag})
			f.Done(1)
			require.Empty(t, p.Sent(method))
			require.Empty(t, p.Sent("notifications/cancelled"))
			require.Equal(t, event{"ask", "asked", "peer", "before the question"}, f.Await("ask", "asked"))
			p.Silent(1)
		})
	}
}

// The client hears that its answer is not needed any more, with the reason, and only
// then the stream ends; the handler is freed at once.
func TestInvariant_Q2_ACancelRetractsTheQuestion(t *testing.T) {
	for _, tag := range []string{"", "background"} {
		eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
			r := p.Call(1, "ask", tagged{Tag: tag})
			q := p.Asked(method, 1)
			r.onSend = func(msg []byte) {
				assert.Contains(t, string(msg), "notifications/cancelled")
				assert.False(t, r.silenced(), "the stream has ended before")
			}
			start := time.Now()
			p.Cancel(1, "user pressed stop")
			require.Equal(t, event{"ask", "asked", "peer", "user pressed stop"}, f.Await("ask", "asked"))
			require.Zero(t, time.Since(start), "at once")
			p.Silent(1)
			retracted := p.Sent("notifications/cancelled")
			require.Len(t, retracted, 1)
			require.Equal(t, "1", retracted[0].On)
			require.Equal(t, string(q.ID), encode(t, retracted[0].Param("requestId")))
			require.Equal(t, "user pressed stop", retracted[0].Param("reason"))
			p.Respond(q, answer) // too late
			p.Call(2, "echo", M{"text": "alive"})
			require.Equal(t, "alive", p.Text(2))
		})
	}
}

func TestInvariant_Q2_ALimitRetractsTheQuestion(t *testing.T) {
	eachNested(t, &server.Options{ClientTimeout: time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
		p.Call(1, "ask", nil)
		q := p.Asked(method, 1)
		require.True(t, p.Answer(1).IsError())
		require.Equal(t, time.Second, p.Answer(1).At.Sub(q.At))
		require.Contains(t, p.Answer(1).Text(), "did not answer within 1s")
		retracted := p.Sent("notifications/cancelled")
		require.Len(t, retracted, 1)
		require.Equal(t, string(q.ID), encode(t, retracted[0].Param("requestId")))
		p.Respond(q, answer)
		p.settle()
		require.False(t, f.Done(1).Cancelled, "the request itself was not cancelled")
	})
}

func TestInvariant_Q2_TheCallersContextRetractsTheQuestion(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		p.Call(1, "ask", tagged{MS: 30})
		q := p.Asked(method, 1)
		m := p.Answer(1)
		require.Equal(t, 30*time.Millisecond, m.At.Sub(q.At))
		require.Contains(t, m.Text(), "deadline exceeded")
		require.Len(t, p.Sent("notifications/cancelled"), 1)
	})
}

// The first answer counts, a second one is dropped.
func TestInvariant_Q3_OneAnswer(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
		p.Call(1, "ask", nil)
		q := p.Asked(method, 1)
		p.Respond(q, answer)
		p.RespondError(q, -1, "second")
		require.Equal(t, "done", p.Text(1))
	})
}

// Another session cannot answer, nor does a different kind of id.
func TestInvariant_Q4_AnswersOfOthersDoNotCount(t *testing.T) {
	eachNested(t, nil, peerOptions{ID: "a"}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
		other := newPeer(t, f.Server, peerOptions{ID: "b", Caps: allCaps})
		p.Call(1, "ask", nil)
		q := p.Asked(method, 1)
		other.Respond(q, answer)
		newPeer(t, f.Server, peerOptions{Version: server.Version20260728, Scope: true}).Respond(q, answer)
		p.Raw("", `{"jsonrpc":"2.0","id":"`+string(q.ID)+`","result":{}}`)
		p.Pending(1)
		p.Respond(q, answer)
		require.Equal(t, "done", p.Text(1))
	})
}

func TestNested_ErrorsOfTheClient(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		p.Call(1, "ask", nil)
		p.RespondError(p.Asked(method, 1), -32601, "no such\nthing")
		m := p.Answer(1)
		require.Nil(t, m.Error, "a client's error is no protocol error of the server's: %s", m.Raw)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), `"no such\nthing"`)
		require.Contains(t, m.Text(), "-32601")
	})
}

func TestNested_MalformedResults(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		if method == "ping" || method == "acme/ask" {
			return // their results are not looked at
		}
		for id, result := range []any{nil, 5, "text", []int{1}, M{"action": 7, "role": 7, "roots": 7}} {
			p.Call(id, "ask", nil)
			p.Respond(p.Asked(method, id+1), result)
			if !p.Answer(id).IsError() && result != nil {
				t.Errorf("%v was taken", result)
			}
		}
	})
}

func TestPeerError(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		got := make(chan error, 1)
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			got <- req.Ping(ctx)
			return nil, nil
		})
		p.Call(1, "ask", nil)
		p.RespondError(p.Asked("ping", 1), -5, "away")
		err := <-got
		var peer *server.PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, "ping", peer.Method)
		require.EqualValues(t, -5, peer.Err.Code)
		require.ErrorIs(t, err, peer.Err)
		var rpc *sdkrpc.Error
		require.False(t, errors.As(err, &rpc))
		p.Call(2, "ask", nil)
		p.Raw("", `{"jsonrpc":"2.0","id":`+string(p.Asked("ping", 2).ID)+`,"error":{"code":"x"}}`)
		require.ErrorContains(t, <-got, "malformed error")
	})
}

// Without the capability there is an error at once, and nothing is sent.
func TestCase24_CapabilityMissing(t *testing.T) {
	eachNested(t, nil, peerOptions{Caps: M{"elicitation": nil, "experimental": M{}}}, func(t *testing.T, f *fixture, p *peer, method string, answer any) {
		p.Call(1, "ask", nil)
		if method == "ping" || method == "acme/ask" {
			p.Respond(p.Asked(method, 1), answer)
			require.Equal(t, "done", p.Text(1))
			return
		}
		p.settle()
		require.Empty(t, p.Sent(method))
		m := p.Answer(1)
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, m.Code(), m.Raw)
		require.Contains(t, m.Error.Message, "client does not declare the capability")
	})
}

// A session that ends frees the handler with the session's end.
func TestNested_SessionEnds(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		p.Call(1, "ask", tagged{Tag: "background"})
		p.Asked(method, 1)
		p.ss.Close(cancellation.SessionEnd, "deleted")
		require.NoError(t, p.ss.Wait(t.Context()))
		require.Equal(t, "session_end", f.Await("ask", "asked").Origin)
		p.Silent(1)
	})
}

// A stream that is gone fails the question at once.
func TestCase21_NoStream(t *testing.T) {
	eachNested(t, nil, peerOptions{NoSend: true}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		r := p.ready(1, "ask")
		r.fail = errors.New("the stream is gone")
		p.ss.Receive([]byte(r.line), r, p.extra, nil)
		m := p.Answer(1)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "the stream is gone")
	})
}

// A step after the cancel is not taken.
func TestCase26_SequenceStops(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("sequence", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for range 3 {
				// A loop that does not look at errors.
				_, _ = req.CreateMessage(ctx, &mcp.CreateMessageParams{})
				f.add("s", "step", nil)
			}
			return nil, nil
		})
		p.Call(1, "sequence", nil)
		p.Respond(p.Asked("sampling/createMessage", 1), sampled)
		p.Asked("sampling/createMessage", 2)
		p.Cancel(1, "stop")
		f.Done(1)
		p.settle()
		require.Len(t, p.Sent("sampling/createMessage"), 2)
		require.Len(t, p.Sent("notifications/cancelled"), 1)
	})
}

// Answers are read while the handler runs, also when no slot is free for another one.
func TestCase27_AnswersWithAllSlotsTaken(t *testing.T) {
	inBubbleWith(t, &server.Options{MaxConcurrent: 1}, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			return "done", req.Ping(ctx)
		})
		p.Call(1, "ask", nil)
		for id := 2; id < 50; id++ {
			p.Call(id, "echo", nil)
		}
		p.Respond(p.Asked("ping", 1), M{})
		require.Equal(t, "done", p.Text(1))
		p.Answer(49)
	})
}

// A client that never answers: the limit frees the handler, and nothing is left behind.
func TestCase23_AClientThatNeverAnswers(t *testing.T) {
	eachNested(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer, method string, _ any) {
		p.Call(1, "ask", tagged{Tag: "background"})
		q := p.Asked(method, 1)
		m := p.Answer(1)
		require.Equal(t, 5*time.Minute, m.At.Sub(q.At), "the default")
		require.Len(t, p.Sent("notifications/cancelled"), 1)
	})
}

// Many nested calls at once have ids of their own; answers find theirs in any order.
func TestNested_Concurrent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{})
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			var out struct{ N int }
			err := req.Call(ctx, "acme/n", M{"n": in.N}, &out)
			return out.N, err
		})
		for id := range 20 {
			p.Call(id, "ask", tagged{N: id})
		}
		p.Asked("acme/n", 20)
		all := p.Sent("acme/n")
		ids := map[string]bool{}
		for i := len(all) - 1; i >= 0; i-- {
			ids[string(all[i].ID)] = true
			p.Respond(all[i], M{"n": all[i].Param("n")})
		}
		require.Len(t, ids, 20)
		for id := range 20 {
			require.Equal(t, encode(t, id), p.Text(id))
		}
	})
}

// A request may be notified of anything but params that are no object.
func TestNotify_Params(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("notify", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for _, good := range []any{nil, M{}, (*tagged)(nil), tagged{Tag: "a"}, json.RawMessage("{\n}")} {
				assert.NoError(t, req.Notify("notifications/acme", good))
			}
			for _, bad := range []any{5, "x", []int{}, json.RawMessage(`{`), make(chan int), panicker{}} {
				assert.Error(t, req.Notify("notifications/acme", bad))
			}
			return nil, nil
		})
		p.Call(1, "notify", nil)
		p.Answer(1)
		require.Len(t, p.Sent("notifications/acme"), 5)
	})
}
