package server_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

// No request starts once Drain has returned, however close it came.
func TestDrain_NothingStartsAfterwards(t *testing.T) {
	for range 100 {
		f := newFixture(t, nil)
		var drained, late atomic.Bool
		f.tool("late", func(context.Context, *servercontext.Request, tagged) (any, error) {
			if drained.Load() {
				late.Store(true)
			}
			return nil, nil
		})
		var readers sync.WaitGroup
		for range 4 {
			p := newPeer(t, f.Server, peerOptions{})
			line := p.Line(1, "tools/call", M{"name": "late"})
			readers.Go(func() {
				for refused := false; !refused; {
					done := make(chan bool, 1)
					p.ss.Receive([]byte(line), answerFunc(func(_ []byte, code int) { done <- code != 0 }), nil, nil)
					refused = <-done
				}
			})
		}
		require.NoError(t, f.Drain(t.Context()))
		drained.Store(true)
		readers.Wait()
		require.False(t, late.Load())
	}
}

// A handler that asks for input while the server drains would wait for a retry that is refused.
func TestDrain_NothingParksAnyMore(t *testing.T) {
	inBubbleWith(t, &server.Options{DrainGrace: 5 * time.Second}, peerOptions{Version: server.Version20260728, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		ask := make(chan struct{})
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			<-ask
			_, err := req.Elicit(ctx, form)
			f.add(in.Tag, "asked", err)
			return nil, err
		})
		p.Call(1, "ask", tagged{Tag: "a"})
		p.settle()
		drained := make(chan error)
		go func() { drained <- f.Drain(t.Context()) }()
		p.settle()
		close(ask)
		start := time.Now()
		require.NoError(t, <-drained)
		require.Less(t, time.Since(start), time.Second)
		require.Equal(t, "shutdown", f.Await("a", "asked").Origin)
		require.Contains(t, p.Answer(1).Raw, "shutdown")
	})
}

// A parked handler that ignores the shutdown is left like any other.
func TestDrain_ListsParkedHandlersThatAreLeft(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("stubborn", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			_, err := req.Elicit(ctx, form)
			time.Sleep(time.Minute)
			return nil, err
		})
		p.Call(1, "stubborn", nil)
		p.Answer(1).State(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := f.Drain(ctx)
		require.ErrorIs(t, err, server.ErrHandlersLeft)
		var left *server.DrainError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Name)
		require.Equal(t, cancellation.Shutdown, left.Left[0].Cancelled.Origin)
		require.Len(t, f.Ignoring(), 1)
		require.Contains(t, f.Ignoring()[0].Stack, "ListsParkedHandlersThatAreLeft")
	})
}

// Running handlers get the grace period, then the cancel; what is owed is answered.
func TestDrain_GraceThenCancel(t *testing.T) {
	eachEraWith(t, &server.Options{DrainGrace: 2 * time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_wait", tagged{Tag: "quick", MS: 1000})
		p.Call(2, "cancel_wait", tagged{Tag: "slow", MS: 60_000})
		p.Call(3, "cancel_value", tagged{Tag: "value", MS: 60_000})
		p.settle()
		start := time.Now()
		drained := make(chan error)
		go func() { drained <- f.Drain(t.Context()) }()
		p.settle()
		require.True(t, f.Draining())
		p.Call(4, "echo", nil)
		m := p.Answer(4)
		require.EqualValues(t, -32603, m.Code())
		require.JSONEq(t, `{"origin":"shutdown"}`, string(m.Error.Data))
		p.Cancel(3, "a peer may still cancel")
		p.Silent(3)
		require.NoError(t, <-drained)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, "done", p.Text(1))
		require.Contains(t, p.Answer(2).Text(), "shutdown")
		require.Equal(t, event{"slow", "observed", "shutdown", "the server is shutting down"}, f.Await("slow", "observed"))
		require.NoError(t, f.Drain(t.Context()), "a second one finds nothing to wait for")
		late := newPeer(t, f.Server, peerOptions{Raw: true})
		late.Request("init", "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.NotZero(t, late.Answer("init").Code())
	})
}

func TestDrain_CancelsAtOnceWithoutGrace(t *testing.T) {
	eachEraWith(t, &server.Options{DrainGrace: -1}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_wait", tagged{Tag: "a"})
		p.settle()
		start := time.Now()
		require.NoError(t, f.Drain(t.Context()))
		require.Zero(t, time.Since(start))
		require.Contains(t, p.Answer(1).Text(), "shutdown")
	})
}

// Handlers that ignore the shutdown are answered for and listed, and hold nothing up.
func TestDrain_ListsWhoIsLeft(t *testing.T) {
	o := &server.Options{DrainGrace: time.Second, Grace: time.Hour}
	eachEraWith(t, o, peerOptions{ID: "s1"}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 7 {
			p.Call(id, "cancel_ignore", tagged{MS: 3_600_000 / 2})
		}
		p.Call("peer", "cancel_ignore", tagged{MS: 3_600_000 / 2})
		p.settle()
		p.Cancel("peer", "")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := f.Drain(ctx)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.ErrorIs(t, err, server.ErrHandlersLeft)
		var left *server.DrainError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 8)
		for _, l := range left.Left {
			require.Equal(t, "s1", l.Session)
			require.Equal(t, "tools/call", l.Method)
			require.Equal(t, "cancel_ignore", l.Name)
		}
		require.Regexp(t, `^server: handlers are still running: 8: tools/call cancel_ignore \(id .*, …$`, err.Error())
		for id := range 7 {
			require.Contains(t, p.Answer(id).Text(), "shutdown")
		}
		p.Silent("peer")
	})
}

// Parked handlers and subscriptions end first: nobody could continue them.
func TestDrain_WaitingOnesEndFirst(t *testing.T) {
	inBubbleWith(t, &server.Options{DrainGrace: time.Minute}, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.addAsk()
		p.Call(1, "ask", nil)
		p.Answer(1)
		p.Request(2, "subscriptions/listen", M{"notifications": M{"toolsListChanged": true}})
		p.Asked("notifications/subscriptions/acknowledged", 1)
		start := time.Now()
		require.NoError(t, f.Drain(t.Context()))
		require.Zero(t, time.Since(start), "nothing is left that could use the grace")
		require.Equal(t, "shutdown", f.Await("ask", "asked").Origin)
		require.Nil(t, p.Answer(2).Error)
	})
}

// A session can be drained alone.
func TestDrain_Session(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		other := newPeer(t, f.Server, peerOptions{Version: p.version, ID: "other"})
		other.Call(1, "cancel_wait", tagged{Tag: "other"})
		p.Call(1, "cancel_wait", tagged{Tag: "a", MS: 60_000})
		p.Call(2, "cancel_wait", tagged{Tag: "b", MS: 500})
		p.settle()
		start := time.Now()
		require.NoError(t, p.ss.Drain(t.Context(), time.Second, "moving"))
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, event{"a", "observed", "shutdown", "moving"}, f.Await("a", "observed"))
		require.Equal(t, "done", p.Text(2))
		p.Call(3, "echo", nil)
		require.NotZero(t, p.Answer(3).Code())
		require.False(t, f.Draining())
		other.Pending(1)
		other.Call(2, "echo", M{"text": "open"})
		require.Equal(t, "open", other.Text(2))

		other.Call(3, "cancel_ignore", tagged{MS: 60_000})
		other.settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, other.ss.Drain(ctx, 0, "now"), server.ErrHandlersLeft)
		require.Contains(t, other.Answer(3).Text(), "shutdown")
	})
}
