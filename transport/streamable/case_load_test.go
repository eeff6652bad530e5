package streamable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

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
