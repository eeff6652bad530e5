package streamable_test

import (
	"context"
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
