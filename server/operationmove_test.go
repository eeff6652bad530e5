package server_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addTwice adds a tool that asks, works for a second, and asks again.
func (f *fixture) addTwice() {
	f.tool("twice", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
		if _, err := req.Elicit(ctx, nameForm); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		_, err := req.Elicit(ctx, nameForm)
		f.add("twice", "asked", err)
		return nil, err
	})
}

// moved is an operation that began in p's session and goes on in that of the peer returned,
// whose request 2 attends it; p's session has ended since.
func (f *fixture) moved(p *peer, to peerOptions) *peer {
	f.t.Helper()
	p.Call(1, "twice", nil)
	first := p.Answer(1)
	other := newPeer(f.t, f.Server, to)
	other.Retry(2, first, callParams("twice", nil), first.all(f.t, named("x")))
	p.settle()
	p.ss.Close(cancellation.Disconnect, "bye")
	require.NoError(f.t, p.ss.Wait(f.t.Context()), "it runs elsewhere")
	require.True(f.t, other.ss.Busy())
	return other
}

// A retry takes the operation along to its session, with whose end or drain it ends, and with no other's.
func TestInvariant_P3_AnOperationMovesWithItsRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		origin string
		end    func(t *testing.T, other *peer)
	}{
		"end":             {"session_end", func(_ *testing.T, other *peer) { other.ss.Close(cancellation.SessionEnd, "bye") }},
		"drain":           {"shutdown", func(t *testing.T, other *peer) { assert.NoError(t, other.ss.Drain(t.Context(), time.Hour, "over")) }},
		"server's drain":  {"shutdown", func(t *testing.T, other *peer) { assert.NoError(t, other.s.Drain(t.Context())) }},
		"cancel of an id": {"peer", func(_ *testing.T, other *peer) { other.Cancel(2, "stop") }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
				f.addTwice()
				other := f.moved(p, statelessScopes["stream"])
				other.Answer(2) // asks again
				other.settle()
				require.Equal(t, 1, f.Stats().Parked, "the end of its first session is not its own")
				began := time.Now()
				tt.end(t, other)
				require.Equal(t, tt.origin, f.Await("twice", "asked").Origin)
				other.settle()
				require.Zero(t, time.Since(began))
				require.Zero(t, f.Stats().Parked+f.Stats().Lingering)
				require.False(t, other.ss.Busy())
			})
		})
	}
}

// An operation that is parked in the very instant of a drain does not wait for its time
// limit, wherever it has begun.
func TestInvariant_P3_ADrainMeetsParking(t *testing.T) {
	for name, drain := range map[string]func(context.Context, *peer) error{
		"server":  func(ctx context.Context, p *peer) error { return p.s.Drain(ctx) },
		"session": func(ctx context.Context, p *peer) error { return p.ss.Drain(ctx, time.Hour, "over") },
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 100 {
				inBubbleWith(t, nil, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
					f.addTwice()
					other := f.moved(p, statelessScopes["stream"])
					time.Sleep(time.Second + time.Millisecond) // it is parked again at this very instant
					for range i % 50 {
						runtime.Gosched()
					}
					began := time.Now()
					require.NoError(t, drain(t.Context(), other))
					require.Zero(t, time.Since(began))
					require.Equal(t, "shutdown", f.Await("twice", "asked").Origin)
					require.Zero(t, f.Stats().Parked)
				})
			}
		})
	}
}
