package server_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// Cancels of every origin, the end of the handler, a limit and the grace period come at
// the same instants; the peer's replies check that each request is settled exactly once.
func TestInvariant_C1_SettledExactlyOnce(t *testing.T) {
	o := &server.Options{Grace: 200 * time.Microsecond, Timeout: 300 * time.Microsecond}
	eachEraWith(t, o, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("short", func(_ context.Context, req *servercontext.Request, in tagged) (any, error) {
			_ = req.Progress(context.Background(), 1, 0, "")
			time.Sleep(time.Duration(in.N) * 100 * time.Microsecond)
			_ = req.Progress(context.Background(), 2, 0, "")
			return "done", nil
		})
		var calls sync.WaitGroup
		n := 0
		p.start = func(c *server.Call) {
			n++
			wait := time.Duration(n%7) * 100 * time.Microsecond
			calls.Go(c.Run)
			for _, o := range origins {
				calls.Go(func() {
					time.Sleep(wait)
					c.Cancel(o, "race")
				})
			}
		}
		for id := range 200 {
			p.Call(id, "short", tagged{N: id % 6}, M{"progressToken": id})
		}
		calls.Wait()
		p.settle()
		require.Zero(t, f.Stats().InFlight)
		require.Zero(t, f.Stats().Lingering)
	})
}

// What a request counted for is given back when its end is reported, also when its handler
// returns while somebody else is cancelling it.
func TestStats_OfACancelThatRacesWithTheReturn(t *testing.T) {
	var f *fixture
	var wrong atomic.Pointer[server.Stats]
	f = newFixture(t, &server.Options{Observer: &server.Observer{RequestDone: func(d server.RequestDone) {
		if s := f.Stats(); d.Method == "tools/call" && (s.InFlight != 0 || s.Lingering != 0) {
			wrong.CompareAndSwap(nil, &s)
		}
	}}})
	var both sync.WaitGroup
	p := newPeer(t, f.Server, peerOptions{})
	p.start = func(c *server.Call) {
		both.Go(c.Run)
		both.Go(func() { c.Cancel(cancellation.Peer, "race") })
	}
	for id := range 2000 {
		p.Call(id, "cancel_value", tagged{MS: 1})
		both.Wait()
		require.Nil(t, wrong.Load())
	}
}

// A test's handler may fail the test, which ends its goroutine.
func TestInvariant_C1_HandlerThatEndsItsGoroutine(t *testing.T) {
	for _, caps := range []M{{}, allCaps} {
		eachEraWith(t, nil, peerOptions{Caps: caps}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("goexit", func(context.Context, *servercontext.Request, tagged) (any, error) {
				runtime.Goexit()
				return nil, nil
			})
			p.Call(1, "goexit", nil)
			m := p.Answer(1)
			require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
			f.Done(1)
			require.Zero(t, f.Stats().InFlight)
		})
	}
}

// The same return values, cancelled and not: TestWireRule has them all. Here the
// handler's result and the cancel come at the same instant, in both orders.
func TestInvariant_C2_TheTokenDecides(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("late", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			if in.Tag == "cancel first" {
				p.Cancel(1, "from within")
			}
			return "done", nil // without looking
		})
		p.Call(1, "late", tagged{Tag: "cancel first"})
		f.Done(1)
		p.Silent(1)
		require.EqualValues(t, 1, f.Stats().Dropped, "the result")
		p.Call(1, "late", nil)
		require.Equal(t, "done", p.Text(1))
		p.Cancel(1, "late")
		require.False(t, f.Done(1).Answered, "the first one")
	})
}

// Everything that a handler can send is dropped from the moment the cancel is received.
func TestInvariant_C3_NothingIsSentAfterACancel(t *testing.T) {
	for _, o := range origins {
		t.Run(o.String(), func(t *testing.T) {
			eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
				resume := make(chan struct{})
				f.tool("chatty", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
					f.add("a", "started", nil)
					<-resume
					background := context.Background() // a handler that does not look
					assert.NoError(t, req.Progress(background, 1, 2, "x"))
					req.Log("error", "x")
					req.Logger("l").Error("x")
					assert.NoError(t, req.Notify("notifications/acme", M{}))
					_, err := req.Elicit(background, form)
					assert.ErrorIs(t, err, cancellation.ErrCancelled)
					_, err = req.ListRoots(background)
					assert.ErrorIs(t, err, cancellation.ErrCancelled)
					_, err = req.CreateMessage(background, &mcp.CreateMessageParams{})
					assert.ErrorIs(t, err, cancellation.ErrCancelled)
					if !req.Stateless() {
						assert.ErrorIs(t, req.Ping(background), cancellation.ErrCancelled)
						assert.ErrorIs(t, req.Call(background, "acme/x", nil, nil), cancellation.ErrCancelled)
					}
					return nil, errOwn
				})
				var call *server.Call
				p.start = func(c *server.Call) { call = c; go c.Run() }
				if p.handshake() {
					p.Request("level", "logging/setLevel", M{"level": "debug"})
					p.Answer("level")
				}
				p.Call(1, "chatty", nil, M{"progressToken": 1, mcp.MetaKeyLogLevel: "debug"})
				f.Await("a", "started")
				call.Cancel(o, "stop")
				close(resume)
				f.Done(1)
				p.settle()
				for _, m := range p.Lines() {
					if m.On == "1" && m.Method != "" {
						t.Errorf("sent after the cancel: %s", m.Raw)
					}
				}
				if o.AnswerOwed() {
					require.Contains(t, p.Answer(1).Raw, o.String())
				} else {
					p.Silent(1)
				}
			})
		})
	}
}

// A message that is being written when the cancel comes may slip past; the next may not.
func TestInvariant_C3_OneMessageMaySlipPast(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("notify", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for i := range 5 {
				assert.NoError(t, req.Notify("notifications/acme", M{"n": i}))
			}
			return nil, nil
		})
		writing, written := make(chan struct{}), make(chan struct{})
		r := p.ready(1, "notify")
		r.onSend = func([]byte) {
			close(writing)
			<-written
		}
		p.ss.Receive([]byte(r.line), r, p.extra, nil)
		<-writing
		p.Cancel(1, "") // does not wait for the write
		require.True(t, r.silenced(), "the stream ends though a write is under way")
		close(written)
		f.Done(1)
		require.Len(t, p.Sent("notifications/acme"), 1)
		require.EqualValues(t, 5, f.Stats().Dropped, "four notifications and the result")
	})
}

// ready makes a request's reply without sending it, so that a test can prepare it.
func (p *peer) ready(id any, tool string) *reply {
	r := &reply{peer: p, id: idText(p.t, id), line: p.Line(id, "tools/call", M{"name": tool})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies[r.id] = r
	p.all = append(p.all, r)
	return r
}

// What outlives its handler cannot send any more.
func TestInvariant_C4_TheAnswerIsTheLastMessage(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		resume, done := make(chan struct{}), make(chan struct{})
		f.tool("leak", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			go func() {
				defer close(done)
				<-resume
				assert.ErrorIs(t, req.Progress(ctx, 1, 0, ""), cancellation.ErrFinished)
				assert.NoError(t, req.Progress(context.Background(), 1, 0, ""))
				req.Log("error", "x")
				assert.NoError(t, req.Notify("notifications/acme", nil))
				_, err := req.Elicit(context.Background(), form)
				assert.ErrorIs(t, err, cancellation.ErrFinished)
			}()
			return "done", nil
		})
		p.Call(1, "leak", nil, M{"progressToken": 1, mcp.MetaKeyLogLevel: "debug"})
		p.Text(1)
		close(resume)
		<-done
		p.settle()
		for _, m := range p.Lines() {
			require.False(t, m.On == "1" && m.Method != "", "sent after the answer: %s", m.Raw)
		}
	})
}

// A nested call that is under way when the handler returns ends, and is retracted first.
func TestInvariant_C4_NestedCallsEndBeforeTheAnswer(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		ended := make(chan error, 1)
		f.tool("leak", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			go func() {
				_, err := req.Elicit(context.Background(), form)
				ended <- err
			}()
			p.Asked("elicitation/create", 1)
			return "done", nil
		})
		p.Call(1, "leak", nil)
		require.Equal(t, "done", p.Text(1))
		require.ErrorIs(t, <-ended, cancellation.ErrFinished)
		var order []string
		for _, m := range p.Lines() {
			if m.On == "1" {
				order = append(order, m.Method)
			}
		}
		require.Equal(t, []string{"elicitation/create", "notifications/cancelled", ""}, order)
	})
}

func TestInvariant_C5_APanicEndsItsRequestOnly(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("panic", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
			switch in.Tag {
			case "error":
				panic(errors.New(handlerSecret))
			case "nil":
				panic(nil)
			case "map":
				var m map[string]int
				//lint:ignore SA5000 the panic is the point
				m["a"] = 1
			}
			panic(handlerSecret)
		})
		server.MustAddMethod(f.Server, "notifications/acme/panic", func(context.Context, *servercontext.Request, tagged) (any, error) {
			panic(handlerSecret)
		})
		p.Call("other", "cancel_wait", tagged{Tag: "other"})
		p.Notify("notifications/acme/panic", nil)
		for _, tag := range []string{"error", "nil", "map", "text"} {
			p.Call(tag, "panic", tagged{Tag: tag})
			m := p.Answer(tag)
			require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
			require.NotContains(t, m.Raw, handlerSecret)
		}
		p.settle()
		logged := f.logs.Find("handler panicked")
		require.Equal(t, 4, len(logged))
		require.Contains(t, logged[0].Attrs["stack"], "TestInvariant_C5")
		require.NotEmpty(t, f.logs.Find("notification"), "the panic of a notification's handler")
		p.Pending("other")
		p.Cancel("other", "")
		f.Await("other", "observed")
	})
}

func TestInvariant_C5_APanicOfMiddlewareEndsItsRequestOnly(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		for _, when := range []string{"before", "after"} {
			f.Server.Use(func(next server.Handler) server.Handler {
				return func(ctx context.Context, req *servercontext.Request) (any, error) {
					if strings.Contains(string(req.Params()), `"tag":"`+when+`"`) {
						if when == "after" {
							_, _ = next(ctx, req)
						}
						panic(handlerSecret)
					}
					return next(ctx, req)
				}
			})
		}
		p.Call("other", "cancel_wait", tagged{Tag: "other"})
		for _, when := range []string{"before", "after"} {
			p.Call(when, "cancel_wait", tagged{Tag: when, MS: 1})
			m := p.Answer(when)
			require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
			require.NotContains(t, m.Raw, handlerSecret)
		}
		p.settle()
		require.Len(t, f.logs.Find("handler panicked"), 2)
		require.Equal(t, 1, f.Server.Stats().InFlight, "the other one goes on")
		p.Cancel("other", "")
	})
}

// Nil input requests end their request, not the process.
func TestInvariant_C5_NilInputRequests(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("nil", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"a": map[string]mcp.InputRequest{
				"elicit": (*mcp.ElicitParams)(nil), "sample": (*mcp.CreateMessageParams)(nil), "roots": (*mcp.ListRootsParams)(nil), "nothing": nil,
			}[in.Tag]}}, nil
		})
		for id, tag := range []string{"elicit", "sample", "roots", "nothing"} {
			p.Call(id, "nil", tagged{Tag: tag})
			m := p.Answer(id)
			require.True(t, m.IsError(), "%s: %s", tag, m.Raw)
		}
	})
}

// Hooks, observers and the operator's ErrorText are contained as well.
func TestInvariant_C5_PanicsOfHooksObserversAndOptions(t *testing.T) {
	o := &server.Options{
		Observer: &server.Observer{
			RequestDone:  func(server.RequestDone) { panic("observer") },
			Unresponsive: func(server.Unresponsive) { panic("observer") },
		},
		ErrorText: func(error) string { panic("text") },
	}
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, o)
		p := newPeer(t, f.Server, peerOptions{})
		f.tool("hook", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			req.Token().OnCancel(func(*cancellation.Error) { panic("hook") })
			return nil, f.wait(ctx, tagged{})
		})
		p.Call(1, "hook", nil)
		p.settle()
		p.Cancel(1, "")
		p.Silent(1)
		require.Len(t, f.logs.Find("hook panicked"), 1)
		p.Call(2, "cancel_ignore", tagged{MS: 10_000})
		p.settle()
		p.Cancel(2, "")
		time.Sleep(11 * time.Second)
		p.Call(3, "cancel_error", tagged{MS: 1})
		m := p.Answer(3)
		require.True(t, m.IsError())
		require.Equal(t, "internal error", m.Text())
		p.settle()
		require.Len(t, f.logs.Find("observer panicked"), 4, "three requests, one of them unresponsive")
	})
}
