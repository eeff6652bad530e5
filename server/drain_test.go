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
