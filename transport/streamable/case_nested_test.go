package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

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
