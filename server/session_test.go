package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request's id is taken until its answer is written or, without one, until it was
// cancelled; then it is free at once, though the handler may still run.
func TestInvariant_S1_AnIDIsTakenUntilTheEnd(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_ignore", tagged{Tag: "a", MS: 1000})
		f.Await("a", "started")
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.dup(1, "echo").Code())
		p.Cancel(1, "")
		p.Call(1, "echo", M{"text": "new"}) // while the first one lingers
		require.Equal(t, "new", p.Text(1))

		p.Call(2, "cancel_ignore", tagged{Tag: "b", MS: 1000})
		f.Await("b", "started")
		require.True(t, f.Server.Cancel("", "2", "operator"))
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.dup(2, "echo").Code(), "its answer is owed")
		require.Equal(t, "done", p.Text(2))
		p.Call(2, "echo", M{"text": "new"})
		require.Equal(t, "new", p.Text(2))
	})
}

// dup sends a request whose id is in flight and returns what it was answered,
// leaving the first request in its place.
func (p *peer) dup(id any, tool string) *message {
	p.t.Helper()
	text := idText(p.t, id)
	first := p.replies[text]
	answer := p.Call(id, tool, nil).answer()
	p.mu.Lock()
	p.replies[text] = first
	p.mu.Unlock()
	require.NotNil(p.t, answer, "it is refused at once")
	return answer
}

// The client may reuse an id from within the answer's write.
func TestInvariant_S1_AnIDIsFreeWhenItsAnswerIsWritten(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		second := make(chan *message, 1)
		p.ss.Receive([]byte(p.Line(1, "tools/call", callParams("echo", M{"text": "first"}))), answerFunc(func([]byte, int) {
			p.Call(1, "echo", M{"text": "second"})
			go func() { second <- p.Answer(1) }()
		}), p.extra, nil)
		require.Equal(t, "second", (<-second).Text())
	})
}

// A cancel hits neither a request that has ended nor a later one with its id.
func TestInvariant_S2_ACancelHitsNoLaterRequest(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "echo", M{"text": "a"})
		p.Answer(1)
		p.Cancel(1, "late")
		p.Call(1, "cancel_wait", tagged{Tag: "b", MS: 10})
		require.Equal(t, "done", p.Text(1))
		require.Equal(t, []string{"started", "elapsed"}, f.Events("b"))

		p.Call(1, "cancel_wait", tagged{Tag: "c"})
		f.Await("c", "started")
		p.Cancel(1, "first")
		p.Cancel(1, "second")
		require.Equal(t, "first", f.Await("c", "observed").Reason)
		p.Silent(1)
		p.Call(1, "cancel_wait", tagged{Tag: "d", MS: 10})
		require.Equal(t, "done", p.Text(1))
	})
}

// A cancel and the end of its request race: each is either answered or silent, and
// the next request with the id is whole.
func TestInvariant_S2_CancelRacesWithTheEnd(t *testing.T) {
	for _, version := range []string{server.Version20251125, server.Version20260728} {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{Version: version})
		for i := range 1000 {
			r := p.Call(1, "echo", M{"text": "x"})
			if i%3 == 0 {
				p.await("settled", func() bool { return r.silenced() || r.answer() != nil })
			}
			p.Cancel(1, "r")
			p.await("settled", func() bool { return r.silenced() || r.answer() != nil })
			p.Call(1, "echo", M{"text": "whole"})
			require.Equal(t, "whole", p.Text(1))
		}
	}
}

func TestInvariant_S3_SessionsCannotNameEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		peers := []*peer{
			newPeer(t, f.Server, peerOptions{ID: "a"}),
			newPeer(t, f.Server, peerOptions{ID: "b", Unordered: true}),
			newPeer(t, f.Server, peerOptions{Version: server.Version20260728}),
			newPeer(t, f.Server, peerOptions{Version: server.Version20260728, Scope: true}),
		}
		for i, p := range peers {
			p.Call(1, "cancel_wait", tagged{Tag: fmt.Sprint(i)})
			f.Await(fmt.Sprint(i), "started")
		}
		for i, p := range peers[:3] {
			p.Cancel(1, "mine")
			p.Silent(1)
			for j, other := range peers[i+1:] {
				other.Pending(1)
				require.Equal(t, []string{"started"}, f.Events(fmt.Sprint(i+1+j)))
			}
		}
		peers[3].Cancel(1, "nobody's")
		peers[3].Pending(1)
	})
}

// Requests of the stateless era over HTTP share no ids, not even by being duplicates.
func TestInvariant_S3_ScopeKeepsNoIDs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		calls := map[string]*server.Call{}
		var peers []*peer
		for _, tag := range []string{"a", "b"} {
			p := newPeer(t, f.Server, peerOptions{Version: server.Version20260728, Scope: true, Start: func(c *server.Call) {
				calls[tag] = c
				go c.Run()
			}})
			p.Call(1, "cancel_wait", tagged{Tag: tag})
			f.Await(tag, "started")
			peers = append(peers, p)
		}
		require.True(t, calls["a"].Cancel(cancellation.Disconnect, "stream closed"))
		peers[0].Silent(1)
		peers[1].Pending(1)
		require.Equal(t, "disconnect", f.Await("a", "observed").Origin)
		require.Equal(t, 1, f.Stats().InFlight)
		calls["b"].Cancel(cancellation.Disconnect, "")
	})
}

func TestInvariant_S4_CloseCancelsAndRefuses(t *testing.T) {
	for _, origin := range []cancellation.Origin{cancellation.Disconnect, cancellation.SessionEnd, cancellation.Shutdown} {
		t.Run(origin.String(), func(t *testing.T) {
			eachEraWith(t, &server.Options{MaxConcurrent: 2}, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
				p.Call(1, "cancel_wait", tagged{Tag: "1"})
				p.Call(2, "cancel_ignore", tagged{Tag: "2", MS: 2000})
				p.settle()
				p.Call(3, "cancel_wait", tagged{Tag: "3"}) // waits for a slot
				p.ss.Close(origin, "over")
				p.ss.Close(cancellation.Timeout, "a second Close does nothing")
				p.Call(4, "echo", nil)
				require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer(4).Code())
				for _, id := range []int{1, 2, 3} {
					d := f.Done(id)
					require.Equal(t, origin, d.Origin, "request %d", id)
					require.Equal(t, "over", d.Reason)
				}
				require.NoError(t, p.ss.Wait(t.Context()))
				require.Empty(t, f.Events("3"), "what was queued never starts")
				require.True(t, f.Done(3).Started.IsZero())
				require.Zero(t, f.Stats().InFlight)
				require.Zero(t, f.Stats().Lingering)
				require.Zero(t, f.Stats().Sessions)
				if origin == cancellation.Shutdown {
					require.Contains(t, p.Answer(1).Raw, "shutdown")
					require.Equal(t, "done", p.Text(2))
					return
				}
				p.Silent(1)
				p.Silent(2)
				p.Silent(3)
			})
		})
	}
}

// Notification handlers end with their session as others do.
func TestInvariant_S4_NotificationHandlersAreCancelled(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		server.MustAddMethod(f.Server, "notifications/acme/wait", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			f.add("n", "started", nil)
			return nil, f.wait(ctx, tagged{Tag: "n", MS: 60_000})
		})
		p.Notify("notifications/acme/wait", nil)
		f.Await("n", "started")
		p.ss.Close(cancellation.Disconnect, "gone")
		require.NoError(t, p.ss.Wait(t.Context()))
		require.Equal(t, []string{"started", "observed"}, f.Events("n"))
		require.Equal(t, "disconnect", f.Await("n", "observed").Origin)
	})
}

// Requests that arrive while the session is being closed are refused or cancelled.
func TestInvariant_S4_CloseRacesWithRequests(t *testing.T) {
	for range 60 {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{})
		line := p.Line(1, "tools/call", M{"name": "cancel_wait"})
		var closing sync.WaitGroup
		closing.Go(func() { p.ss.Close(cancellation.Disconnect, "gone") })
		for id := range 5 {
			p.Call(id, "cancel_wait", nil)
		}
		p.ss.Close(cancellation.Disconnect, "gone")
		ctx, cancel := context.WithTimeout(t.Context(), patience())
		assert.NoError(t, p.ss.Wait(ctx), line)
		cancel()
		closing.Wait() // what it has cancelled may have returned before it was silenced
		require.Zero(t, f.Stats().InFlight)
		require.Zero(t, f.Stats().Lingering)
	}
}

func TestSession_NoHandshakeAfterClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{Raw: true})
		p.ss.Close(cancellation.Disconnect, "")
		p.Request("init", "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer("init").Code())
		require.Empty(t, p.ss.InitializeVersion())
	})
}

func TestSession_WaitEndsWithItsContext(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		require.NoError(t, p.ss.Wait(t.Context()), "nothing runs")
		require.False(t, p.ss.Busy())
		p.Call(1, "cancel_ignore", tagged{Tag: "a", MS: 1000})
		require.True(t, p.ss.Busy())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.ss.Wait(ctx), context.DeadlineExceeded)
		require.NoError(t, p.ss.Wait(t.Context()))
		require.False(t, p.ss.Busy())
	})
}

// Values of the transport's context are visible to handlers; its end is not.
func TestSession_ContextOfTheTransport(t *testing.T) {
	type key struct{}
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "request's"))
		p := newPeer(t, f.Server, peerOptions{Extra: &server.Extra{Context: ctx}})
		f.tool("value", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			cancel()
			if err := cancellation.Checkpoint(ctx); err != nil {
				return nil, err
			}
			found, ok := servercontext.FromContext(ctx)
			assert.True(t, ok)
			assert.Same(t, req, found)
			assert.NotNil(t, req.Session())
			return ctx.Value(key{}), ctx.Err()
		})
		p.Call(1, "value", nil)
		require.Equal(t, "request's", p.Text(1))
	})
}
