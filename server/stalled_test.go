package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

// A client that has stopped reading holds up its handler, but no shutdown: what is
// owed to it is answered if it reads again. (No bubble: what waits for a lock stops
// its clock.)
func TestDrain_DoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	for what, drain := range map[string]func(context.Context, *fixture, *peer) error{
		"server":  func(ctx context.Context, f *fixture, _ *peer) error { return f.Drain(ctx) },
		"session": func(ctx context.Context, _ *fixture, p *peer) error { return p.ss.Drain(ctx, 0, "over") },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, &server.Options{DrainGrace: -1, Grace: time.Hour})
			p := newPeer(t, f.Server, peerOptions{})
			talk, talks, read, end := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
			f.tool("talk", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
				<-talk
				return nil, req.Notify("notifications/acme", nil)
			})
			f.tool("ignore", func(context.Context, *servercontext.Request, tagged) (any, error) {
				<-end
				return nil, nil
			})
			r := p.Call(1, "talk", nil)
			r.mu.Lock()
			r.onSend = func([]byte) { close(talks); <-read }
			r.mu.Unlock()
			p.Call(2, "ignore", nil)
			close(talk)
			<-talks

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			drained := make(chan error, 1)
			go func() { drained <- drain(ctx, f, p) }()
			select {
			case err := <-drained:
				require.ErrorIs(t, err, server.ErrHandlersLeft)
				require.True(t, p.Answer(2).IsError(), "the others have their answer")
				p.Pending(1)
			case <-time.After(patience()):
				t.Error("the drain waits for the client")
			}
			close(read)
			close(end)
			p.Answer(1)
			require.NoError(t, p.ss.Wait(t.Context()))
		})
	}
}
