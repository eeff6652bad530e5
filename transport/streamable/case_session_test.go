package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// session starts an endpoint with a session of the newest handshake-era revision.
func session(t testing.TB, f *fixture, o *streamable.Options) *endpoint {
	t.Helper()
	return serve(t, f.s, o).initialize(server.Version20251125, nil)
}

// accept sends what has no answer.
func (e *endpoint) accept(c call) {
	e.t.Helper()
	a := e.do(c)
	require.Equalf(e.t, http.StatusAccepted, a.status, "%s", a.body)
	require.Empty(e.t, a.body)
}

// messages are the JSON-RPC messages among events.
func messages(t testing.TB, events []event) (all []wire) {
	t.Helper()
	for _, ev := range events {
		if ev.data != "" {
			all = append(all, ev.message(t))
		}
	}
	return all
}

func TestCase01_CancelledCallsAreSilentInASession(t *testing.T) {
	for _, tool := range []string{"wait", "value", "panic", "fail"} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			in := session(t, f, nil)
			w := in.open(classicTool(1, tool, M{"tag": "a"}))
			f.begun("a")
			in.accept(cancelOf(1, "r"))
			got := f.next("a")
			require.Equal(t, cancellation.Peer, got.Origin)
			require.Equal(t, "r", got.Reason)
			require.Empty(t, messages(t, w.end()), tool)
			require.NoError(t, w.err)
			require.False(t, (<-f.done).Answered)
			require.Equal(t, 200, in.do(classicTool(2, "echo", M{"text": "x"})).status)
		})
	}
}

func TestCase02_AHundredCancelledCallsLeaveNoTrace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		for i := range 100 {
			w := in.open(classicTool(i, "wait", M{"tag": "a"}))
			in.accept(cancelOf(i, "r"))
			require.Empty(t, messages(t, w.end()))
			f.next("a")
		}
		synctest.Wait()
		require.Zero(t, f.s.Stats().InFlight)
		require.Zero(t, f.s.Stats().Lingering)
	})
}

func TestCase03_NoProgressAfterACancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "loop"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for i := range 1000 {
				time.Sleep(10 * time.Millisecond)
				_ = req.Progress(context.Background(), float64(i+1), 0, "") // goes on whatever happens
			}
			return "done", nil
		})
		in := session(t, f, nil)
		w := in.open(classic(1, "tools/call", M{"name": "loop", "arguments": M{}, "_meta": progress("p")}))
		for range 5 {
			w.next()
		}
		before := len(w.events)
		in.accept(cancelOf(1, "r"))
		require.LessOrEqual(t, len(w.end())-before, 1, "one that was being written may slip past")
		<-f.done
	})
}

func TestCase06_TheStreamOfACancelledCallEndsThoughItsHandlerRuns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		begin := time.Now()
		in.accept(cancelOf(1, "r"))
		require.Empty(t, messages(t, w.end()))
		require.Zero(t, time.Since(begin), "at once")
		require.Equal(t, 1, f.s.Stats().Lingering)
		require.Zero(t, f.s.Stats().InFlight)
		time.Sleep(time.Minute) // no keep-alive panics on a response that is over
		close(f.release)
		<-f.done
		synctest.Wait()
		require.Zero(t, f.s.Stats().Lingering)
	})
}

func TestCase07_CancelledCallsInJSONMode(t *testing.T) {
	for accept, want := range map[string]int{"application/json, text/event-stream": 204, "application/json": 204} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			in := session(t, f, &streamable.Options{Response: streamable.JSON})
			done := make(chan answer, 1)
			go func() { done <- in.do(classicTool(1, "ignore", M{"tag": "a"}).with("Accept", accept)) }()
			f.begun("a")
			in.accept(cancelOf(1, "r"))
			a := <-done
			require.Equal(t, want, a.status, accept)
			require.Empty(t, a.body)
			close(f.release)
		})
	}
}

func TestCase07_CancelledBeforeTheStreamBegan(t *testing.T) {
	for accept, want := range map[string]string{"application/json, text/event-stream": "text/event-stream", "application/json": ""} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			in := session(t, f, nil)
			done := make(chan answer, 1)
			go func() { done <- in.do(classicTool(1, "ignore", M{"tag": "a"}).with("Accept", accept)) }()
			f.begun("a")
			in.accept(cancelOf(1, "r"))
			a := <-done
			require.Equal(t, want, a.header.Get("Content-Type"), accept)
			require.Empty(t, a.body)
			close(f.release)
		})
	}
}

func TestCase10_IDsOfDifferentKindsAreDifferent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		in.open(classicTool(7, "wait", M{"tag": "a"}))
		text := in.open(classicTool("7", "wait", M{"tag": "b"}))
		in.accept(cancelOf("7", "r"))
		f.next("b")
		require.Empty(t, messages(t, text.end()))
		f.untouched("a")
	})
}

func TestCase11_UnusableCancelsDoNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		in.open(classicTool(3, "wait", M{"tag": "a"}))
		for _, params := range []string{
			`{"requestId":3.7}`, `{"requestId":9007199254740993}`, `{"requestId":true}`, `{"requestId":null}`,
			`{"requestId":[3]}`, `{}`, `{"requestId":"3"}`, `{"requestId":3.0}`, `{"requestId":3e0}`,
		} {
			in.accept(newCall("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+params+`}`))
		}
		for _, params := range []string{`[]`, `"x"`, `null`} {
			a := in.do(newCall("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+params+`}`))
			assert.Equal(t, http.StatusBadRequest, a.status, params)
			assert.Equal(t, "null", string(a.message(t).ID), params)
		}
		synctest.Wait()
		f.untouched("a")
		in.accept(newCall("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":{"not":"text"}}}`))
		require.Empty(t, f.next("a").Reason)
	})
}

func TestCase12_AnEarlyCancelIsRemembered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		in.accept(cancelOf(1, "overtook"))
		a := in.do(classicTool(1, "wait", M{"tag": "a"}))
		require.Equal(t, 200, a.status)
		require.Empty(t, a.body)
		d := <-f.done
		require.Equal(t, "overtook", d.Reason)
		require.True(t, d.Started.IsZero(), "it never starts")
	})
}

func TestCase13_AnIDIsFreeAfterACancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		in.accept(cancelOf(1, "r"))
		w.end()
		a := in.do(classicTool(1, "echo", M{"text": "again"}))
		require.Contains(t, a.body, "again")
		close(f.release)
	})
}

func TestCase14_ADuplicateLeavesTheFirstAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		a := in.do(classicTool(1, "wait", M{"tag": "b"}))
		require.Equal(t, http.StatusBadRequest, a.status)
		require.Equal(t, -32600, a.code(t))
		f.untouched("a")
		in.accept(cancelOf(1, "r"))
		f.next("a")
		require.Empty(t, messages(t, w.end()))
	})
}

func TestCase15_NotificationsWithAnIDDoNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		in.open(classicTool(1, "wait", M{"tag": "a"}))
		a := in.do(classic(2, "notifications/cancelled", M{"requestId": 1}))
		require.Equal(t, -32601, a.code(t))
		synctest.Wait()
		f.untouched("a")
	})
}

func TestCase16_SessionsDoNotReachEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		one, two := e.initialize(server.Version20251125, nil), e.initialize(server.Version20251125, nil)
		one.open(classicTool(1, "wait", M{"tag": "a"}))
		two.open(classicTool(1, "wait", M{"tag": "b"}))
		one.accept(cancelOf(1, "r"))
		f.next("a")
		synctest.Wait()
		f.untouched("b")
	})
}

func TestCase18_ACancelRightAfterTheRequestTakesEffect(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		for i := range 100 {
			done := make(chan answer, 1)
			go func() { done <- in.do(classicTool(i, "value", M{"tag": "a"})) }()
			in.accept(cancelOf(i, "r"))
			require.Empty(t, messages(t, (<-done).events(t)))
			d := <-f.done
			require.True(t, d.Cancelled)
			require.False(t, d.Answered)
		}
	})
}

func TestCase19_ReasonsReachTheHandler(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		for i, reason := range []string{"user pressed stop", "%s %d %!", "line\nbreak\x00\u2028", strings.Repeat("x", 1<<20)} {
			in.open(classicTool(i, "wait", M{"tag": "a"}))
			in.accept(cancelOf(i, reason))
			got := f.next("a").Reason
			require.NotEmpty(t, got)
			if i < 2 {
				require.Equal(t, reason, got)
			}
			require.LessOrEqual(t, len(got), 4096)
			require.Equal(t, got, (<-f.done).Reason)
		}
	})
}

// asking adds a tool that asks for sampling, and tells how that ended.
func asking(f *fixture, ctx func(context.Context) context.Context) chan error {
	ended := make(chan error, 16)
	server.MustAddTool(f.s, &mcp.Tool{Name: "ask"}, func(c context.Context, req *servercontext.Request, _ tagged) (string, error) {
		_, err := req.CreateMessage(ctx(c), &mcp.CreateMessageParams{MaxTokens: 1})
		ended <- err
		return "", err
	})
	return ended
}

func same(ctx context.Context) context.Context { return ctx }

// question waits for the nested request on a stream.
func question(w *flow) wire {
	w.t.Helper()
	for range 100 { // a stream that is kept alive has events for ever
		if ev := w.next(); ev.data != "" {
			m := ev.message(w.t)
			require.Equal(w.t, "sampling/createMessage", m.Method)
			return m
		}
	}
	require.FailNow(w.t, "no question came")
	return wire{}
}

func TestCase20_ANestedCallIsRetractedBeforeTheStreamEnds(t *testing.T) {
	for name, around := range map[string]func(context.Context) context.Context{
		"its own context": same,
		// Case 25.
		"another context": func(context.Context) context.Context { return context.Background() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				ended := asking(f, around)
				in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
				w := in.open(classicTool(1, "ask", M{"tag": "a"}))
				q := question(w)
				in.accept(cancelOf(1, "user pressed stop"))
				var cancelled *cancellation.Error
				require.ErrorAs(t, <-ended, &cancelled)
				require.Equal(t, "user pressed stop", cancelled.Reason)
				rest := messages(t, w.end())
				require.Len(t, rest, 1)
				require.Equal(t, "notifications/cancelled", rest[0].Method)
				require.JSONEq(t, fmt.Sprintf(`{"requestId":%s,"reason":"user pressed stop"}`, q.ID), string(rest[0].Params))

				// Case 22: the answer comes too late, and harms nobody.
				in.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)))
				require.Equal(t, 200, in.do(classicTool(2, "echo", M{"text": "x"})).status)
			})
		})
	}
}

func TestCase21_NestedCallsTravelOnTheirParentsStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
		listening := in.open(newCall(http.MethodGet, ""))
		listening.next() // the priming event
		w := in.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		in.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}}`, q.ID)))
		require.NoError(t, <-ended)
		rest := messages(t, w.end())
		require.Len(t, rest, 1)
		require.NotNil(t, rest[0].Result)
		require.Empty(t, listening.events, "not on a stream that is for others")
	})
}

func TestCase21_WithoutAStreamANestedCallFailsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
		begin := time.Now()
		a := in.do(classicTool(1, "ask", M{"tag": "a"}).with("Accept", "application/json"))
		require.Equal(t, 200, a.status)
		require.Contains(t, a.body, `"isError":true`)
		require.Error(t, <-ended)
		require.Zero(t, time.Since(begin))
	})
}

func TestCase23_AClientThatNeverAnswersIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{ClientTimeout: time.Minute})
		ended := asking(f, same)
		in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
		w := in.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		rest := messages(t, w.end())
		require.Len(t, rest, 2)
		require.Equal(t, "notifications/cancelled", rest[0].Method)
		require.Contains(t, string(rest[0].Params), string(q.ID))
		require.Contains(t, string(rest[1].Result), `"isError":true`)
	})
}

func TestCase28_ACancelledParentAsksNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := make(chan error, 1)
		server.MustAddTool(f.s, &mcp.Tool{Name: "late"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			<-req.Token().Done()
			_, err := req.CreateMessage(context.Background(), &mcp.CreateMessageParams{MaxTokens: 1})
			ended <- err
			return "", err
		})
		in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
		w := in.open(classicTool(1, "late", M{}))
		in.accept(cancelOf(1, "r"))
		require.ErrorIs(t, <-ended, cancellation.ErrCancelled)
		require.Empty(t, messages(t, w.end()))
	})
}

func TestCase30_ADroppedStreamIsResumed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		prime := w.next()
		require.Empty(t, prime.data)
		require.NotEmpty(t, prime.id)
		w.drop()
		time.Sleep(time.Hour)
		f.untouched("a")
		again := in.open(newCall(http.MethodGet, "").with("Last-Event-ID", prime.id))
		close(f.release)
		rest := messages(t, again.end())
		require.Len(t, rest, 1)
		require.Equal(t, "1", string(rest[0].ID))
		require.Contains(t, string(rest[0].Result), "returned")
	})
}

func TestCase31_DeleteCancelsWithTheSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		listening := in.open(newCall(http.MethodGet, ""))
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		begin := time.Now()
		require.Equal(t, http.StatusNoContent, in.do(newCall(http.MethodDelete, "")).status)
		require.Zero(t, time.Since(begin), "answered while the handler runs")
		require.Equal(t, cancellation.SessionEnd, f.next("a").Origin)
		require.Empty(t, messages(t, w.end()))
		listening.end()
		require.Zero(t, time.Since(begin))
		// Case 33.
		require.Equal(t, http.StatusNotFound, in.do(classic(2, "ping", nil)).status)
		close(f.release)
		require.False(t, (<-f.done).Answered)
	})
}

func TestCase32_RunningRequestsKeepTheirSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute, MaxSessions: 1})
		in := e.initialize(server.Version20251125, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		w.next()
		w.drop() // the handler runs on without any HTTP request
		time.Sleep(time.Hour)
		f.untouched("a")
		require.Equal(t, 1, f.s.Stats().Sessions)
		a := e.do(classic(0, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}))
		require.Equal(t, http.StatusServiceUnavailable, a.status, "the one session is in use")
		require.NotEmpty(t, a.header.Get("Retry-After"))
		f.untouched("a")
		close(f.release)
		<-f.done
		// Case 33.
		time.Sleep(2 * time.Minute)
		require.Zero(t, f.s.Stats().Sessions)
		require.Equal(t, http.StatusNotFound, in.do(classic(2, "ping", nil)).status)
	})
}

func TestCase34_AnotherPrincipalIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{Verifier: byName, AllowMissingExpiration: true}})
		e.bearer = "alice"
		alice := e.initialize(server.Version20251125, nil)
		alice.open(classicTool(1, "wait", M{"tag": "a"}))
		mallory := *alice
		mallory.bearer = "mallory"
		for name, c := range map[string]call{
			"call":   classic(2, "ping", nil),
			"cancel": cancelOf(1, "r"),
			"GET":    newCall(http.MethodGet, ""),
			"resume": newCall(http.MethodGet, "").with("Last-Event-ID", "1-0"),
			"DELETE": newCall(http.MethodDelete, ""),
		} {
			a := mallory.do(c)
			assert.Equalf(t, http.StatusNotFound, a.status, name)
		}
		synctest.Wait()
		f.untouched("a")
		require.Equal(t, 200, alice.do(classic(2, "ping", nil)).status)
		alice.accept(cancelOf(1, "r"))
		f.next("a")
	})
}

func TestCase36_AReaderThatStallsHoldsNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{ProgressInterval: -1})
		gone := make(chan error, 1)
		server.MustAddTool(f.s, &mcp.Tool{Name: "talk"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for i := range 10_000 {
				if err := req.Progress(ctx, float64(i+1), 0, strings.Repeat("x", 1000)); err != nil {
					gone <- err
					return "", err
				}
			}
			gone <- nil
			return "", nil
		})
		e := serve(t, f.s, nil)
		resp, err := e.send(modern(1, "tools/call", M{"name": "talk", "arguments": M{}, "_meta": progress(1)}))
		require.NoError(t, err) // and then nothing is read: a pipe has no buffer
		begin := time.Now()
		require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
		require.Zero(t, time.Since(begin))
		require.ErrorIs(t, <-gone, cancellation.ErrCancelled)
		require.LessOrEqual(t, time.Since(begin), 16*time.Second)
		require.NoError(t, resp.Body.Close())
	})
}

func TestCase36_AStalledReaderDoesNotHoldUpACancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{ProgressInterval: -1})
		gone := make(chan error, 1)
		server.MustAddTool(f.s, &mcp.Tool{Name: "talk"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for i := range 100_000 {
				if err := req.Progress(ctx, float64(i+1), 0, strings.Repeat("x", 1000)); err != nil {
					gone <- err
					return "", err
				}
			}
			gone <- nil
			return "", nil
		})
		in := session(t, f, nil)
		resp, err := in.send(classic(1, "tools/call", M{"name": "talk", "arguments": M{}, "_meta": progress(1)}))
		require.NoError(t, err)
		begin := time.Now()
		in.accept(cancelOf(1, "r"))
		require.Zero(t, time.Since(begin))
		require.ErrorIs(t, <-gone, cancellation.ErrCancelled)
		require.NoError(t, resp.Body.Close())
	})
}

func TestCase41_ALingeringHandlerHoldsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		unresponsive := make(chan server.Unresponsive, 1)
		f := newFixture(t, &server.Options{Grace: time.Second, Observer: &server.Observer{Unresponsive: func(u server.Unresponsive) { unresponsive <- u }}})
		in := session(t, f, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		in.accept(cancelOf(1, "r"))
		w.end()
		u := <-unresponsive
		require.Contains(t, u.Stack, "newFixture")
		require.Equal(t, in.session, u.Session)
		require.Equal(t, 200, in.do(classic(1, "ping", nil)).status)
		close(f.release)
	})
}

func TestCase45_OperatorsSeeAFailureAfterACancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "fail", M{"tag": "a"}))
		in.accept(cancelOf(1, "r"))
		require.Empty(t, messages(t, w.end()))
		d := <-f.done
		require.False(t, d.Answered)
		require.ErrorContains(t, d.Err, "a failure of its own")
		require.False(t, errors.Is(d.Err, cancellation.ErrCancelled))
	})
}

func TestCase57_APingAndACancelAmongManyWaitingCalls(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		in.open(classicTool(0, "wait", M{"tag": "a"}))
		for i := range 300 {
			in.open(classicTool(i+1, "wait", M{"tag": "b"}))
		}
		begin := time.Now()
		require.Equal(t, 200, in.do(classic(1000, "ping", nil)).status)
		in.accept(cancelOf(0, "r"))
		f.next("a")
		require.Zero(t, time.Since(begin))
		f.untouched("b")
	})
}

func TestCase58_NothingOfAFloodRunsOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		const wave = 50 // fewer than the cancels that a session remembers for requests they overtook
		done := make(chan answer, wave)
		for first := 0; first < 200; first += wave {
			for i := first; i < first+wave; i++ {
				go func() { done <- in.do(classicTool(i, "wait", M{"tag": "a"})) }()
				go func() { in.accept(cancelOf(i, "r")) }()
			}
			for range wave {
				require.Empty(t, messages(t, (<-done).events(t)))
			}
		}
		synctest.Wait()
		require.Zero(t, f.s.Stats().InFlight)
		require.Zero(t, f.s.Stats().Lingering)
	})
}

func TestCase22_ALateAnswerIsDropped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		in := serve(t, f.s, nil).initialize(server.Version20251125, M{"sampling": M{}})
		w := in.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		in.accept(cancelOf(1, "r"))
		require.ErrorIs(t, <-ended, cancellation.ErrCancelled)
		w.end()
		for _, body := range []string{`"result":{"role":"assistant"}`, `"error":{"code":1,"message":"late"}`, `"result":[]`} {
			in.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, body)))
		}
		next := in.open(classicTool(2, "ask", M{"tag": "a"}))
		require.NotEqual(t, string(q.ID), string(question(next).ID))
		require.Empty(t, ended, "an old answer is none to a new question")
		in.accept(cancelOf(2, "r"))
		<-ended
	})
}

// An answer counts only from the session that was asked.
func TestCase22_ASessionCannotAnswerForAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		e := serve(t, f.s, nil)
		asked, other := e.initialize(server.Version20251125, M{"sampling": M{}}), e.initialize(server.Version20251125, M{"sampling": M{}})
		w := asked.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		other.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)))
		synctest.Wait()
		require.Empty(t, ended)
		asked.accept(cancelOf(1, "r"))
		<-ended
	})
}

func TestCase33_AnEndedSessionIsNotFoundAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute})
		for name, end := range map[string]func(*endpoint){
			"DELETE": func(in *endpoint) { in.do(newCall(http.MethodDelete, "")) },
			"expiry": func(*endpoint) { time.Sleep(time.Minute + time.Nanosecond) },
		} {
			in := e.initialize(server.Version20251125, nil)
			end(in)
			begin := time.Now()
			for _, c := range []call{classic(1, "ping", nil), cancelOf(1, "r"), newCall(http.MethodGet, ""), newCall(http.MethodDelete, ""), resumeAt("1-0")} {
				assert.Equalf(t, http.StatusNotFound, in.do(c).status, "%s %s", name, c.method)
			}
			assert.Zero(t, time.Since(begin))
		}
	})
}
