package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ended returns what the observer was told of the request with that id, in order.
func (f *fixture) ended(id any) []server.RequestDone {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []server.RequestDone
	for _, d := range f.done {
		if d.ID == idText(f.t, id) {
			all = append(all, d)
		}
	}
	return all
}

// A retry that is cancelled while it waits for its turn ends the operation that it was
// to resume, whoever cancels it.
func TestInvariant_P2_AQueuedRetryIsCancelled(t *testing.T) {
	for _, origin := range []cancellation.Origin{cancellation.Peer, cancellation.Disconnect, cancellation.Shutdown} {
		for name, o := range map[string]server.ToolOptions{"server": {}, "tool": {MaxConcurrent: 1}} {
			t.Run(fmt.Sprint(origin, "/", name), func(t *testing.T) {
				eachParked(t, &server.Options{MaxConcurrent: 1}, func(t *testing.T, f *fixture, p *peer) {
					calls := map[string]*server.Call{}
					p.start = func(c *server.Call) { calls[fmt.Sprint(len(calls))] = c; go c.Run() }
					f.tool("form", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
						if in.Tag == "busy" {
							return "done", f.wait(ctx, in)
						}
						_, err := req.Elicit(ctx, nameForm)
						f.add("form", "asked", err)
						return "done", err
					}, &o)
					p.Call(1, "form", nil)
					first := p.Answer(1)
					p.Call(2, "form", tagged{Tag: "busy", MS: 60_000})
					p.settle()
					p.Retry(3, first, callParams("form", nil), first.all(t, named("x")))
					p.settle()
					require.Empty(t, f.Events("form"), "the retry waits")
					require.True(t, calls["2"].Cancel(origin, "stop"))
					require.Equal(t, event{"form", "asked", origin.String(), "stop"}, f.Await("form", "asked"))
					p.settle()
					require.Zero(t, f.Stats().Parked)
					p.Retry(4, first, callParams("form", nil), first.all(t, named("x")))
					require.NotZero(t, p.Answer(4).Code(), "there is nothing left to go on with")
				})
			})
		}
	}
}

// The cancel of a queued retry with an old state ends nothing: what goes on has a newer one.
func TestInvariant_P4_AnOldStateEndsNothing(t *testing.T) {
	eachParked(t, &server.Options{MaxConcurrent: 1}, func(t *testing.T, f *fixture, p *peer) {
		var queued *server.Call
		p.Call(1, "ask", tagged{N: 2})
		first := p.Answer(1)
		p.Retry(2, first, callParams("ask", tagged{N: 2}), first.all(t, named("a")))
		second := p.Answer(2)
		p.Call(3, "cancel_wait", tagged{MS: 1000})
		p.settle()
		p.start = func(c *server.Call) { queued = c; go c.Run() }
		p.Retry(4, first, callParams("ask", tagged{N: 2}), first.all(t, named("replayed")))
		p.settle()
		require.True(t, queued.Cancel(cancellation.Disconnect, "closed"))
		p.Silent(4)
		require.Equal(t, 1, f.Stats().Parked)
		p.Retry(5, second, callParams("ask", tagged{N: 2}), second.all(t, named("b")))
		require.Equal(t, "ab", p.Text(5))
	})
}

// An operation that is cancelled while it is parked is told of like any other, under
// the id that it was parked for.
func TestInvariant_P6_TheEndOfAParkedHandlerIsTold(t *testing.T) {
	inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.tool("tidy", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			if _, err := req.Elicit(ctx, nameForm); err != nil {
				return nil, err
			}
			_, err := req.Elicit(ctx, nameForm)
			assert.ErrorIs(t, cancellation.Checkpoint(ctx), cancellation.ErrCancelled) // is seen at once
			time.Sleep(time.Second)
			return nil, err
		})
		begun := time.Now()
		p.Call(1, "tidy", nil)
		m := p.Answer(1)
		p.settle()
		require.Equal(t, []server.RequestDone{{
			ID: "1", Method: "tools/call", Name: "tidy", Started: begun, Returned: m.At, Answered: true, Parked: true,
		}}, f.ended(1))
		p.Retry(2, m, callParams("tidy", nil), m.all(t, named("x")))
		p.Answer(2)
		time.Sleep(time.Minute)
		requested := time.Now()
		p.Cancel(2, "stop")
		p.settle()
		require.Equal(t, 1, f.Stats().Lingering)
		listed := f.InFlight()
		require.Len(t, listed, 1)
		require.Equal(t, "2", listed[0].ID)
		require.Equal(t, begun, listed[0].Accepted)
		require.Equal(t, "stop", listed[0].Cancelled.Reason)
		require.NoError(t, p.ss.Wait(t.Context()))

		require.Len(t, f.ended(1), 1)
		all := f.ended(2)
		require.Len(t, all, 2)
		require.True(t, all[0].Parked)
		require.False(t, all[0].Cancelled)
		require.ErrorIs(t, all[1].Err, cancellation.ErrCancelled)
		all[1].Err = nil
		require.Equal(t, server.RequestDone{
			ID: "2", Method: "tools/call", Name: "tidy", Cancelled: true, Origin: cancellation.Peer, Reason: "stop",
			Started: begun, Requested: requested, Observed: requested, Returned: requested.Add(time.Second),
		}, all[1])
		require.Zero(t, f.Stats().Lingering)
		require.Empty(t, f.InFlight())
	})
}

// A handler that ends by itself while it is parked is told of when its retry comes, or
// when none came in time, and never twice.
func TestInvariant_P6_AnOutcomeIsToldOnce(t *testing.T) {
	eachParked(t, &server.Options{ParkTimeout: time.Minute}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("impatient", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = req.Elicit(soon, nameForm)
			return nil, errOwn
		})
		for id, retried := range []bool{true, false} {
			id *= 10
			p.Call(id, "impatient", nil)
			first := p.Answer(id)
			time.Sleep(2 * time.Second)
			p.settle()
			require.Len(t, f.ended(id), 1)
			if retried {
				p.Retry(id+1, first, callParams("impatient", nil), nil)
				require.True(t, p.Answer(id+1).IsError())
			}
			time.Sleep(2 * time.Minute)
			p.settle()
			require.Zero(t, f.Stats().Parked)
			if retried {
				require.Len(t, f.ended(id), 1)
				require.Len(t, f.ended(id+1), 1)
				continue
			}
			all := f.ended(id)
			require.Len(t, all, 2)
			require.ErrorIs(t, all[1].Err, errOwn)
			require.False(t, all[1].Cancelled || all[1].Answered || all[1].Parked)
			require.Equal(t, time.Second, all[1].Returned.Sub(all[1].Started))
		}
	})
}

// The cancels and ends of many parked handlers leave every figure as it was.
func TestParked_FiguresAddUp(t *testing.T) {
	for name, po := range statelessScopes {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &server.Options{ParkTimeout: time.Millisecond})
			f.addAsk()
			p := newPeer(t, f.Server, po)
			for id := range 300 {
				p.Call(id, "ask", nil)
			}
			for id := range 300 {
				p.Answer(id)
				p.Cancel(id, "too late or not")
			}
			f.await("all told", func() bool { return len(f.done) == 600 })
			require.NoError(t, p.ss.Wait(t.Context()))
			s := f.Stats()
			require.Zero(t, s.Lingering+s.Parked+s.InFlight)
		})
	}
}

// The limit of a request runs out in the very moment in which its handler is parked. Then either the client is asked, and its
// answer counts, or it is told of the limit: nobody is asked in vain.
func TestInvariant_P5_NobodyIsAskedInVain(t *testing.T) {
	eachParked(t, &server.Options{Timeout: time.Second}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("late", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			time.Sleep(time.Second - time.Millisecond) // and a moment later it is parked
			r, err := req.Elicit(ctx, nameForm)
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(r.Content["name"]), nil
		})
		asked, limited := 0, 0
		for id := 0; id < 400; id += 2 {
			p.Call(id, "late", nil)
			m := p.Answer(id)
			if !strings.Contains(m.Raw, "input_required") {
				require.Contains(t, m.Raw, "cancelled by timeout")
				limited++
				continue
			}
			asked++
			p.Retry(id+1, m, callParams("late", nil), m.all(t, named("x")))
			require.Equal(t, "x", p.Text(id+1))
		}
		t.Logf("asked %d times, limited %d times", asked, limited)
	})
}
