package server_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestSession_NoHandshakeAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{Raw: true})
		p.ss.Close(cancellation.Disconnect, "")
		p.Request("init", "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer("init").Code())
	})
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
		e := f.Await("n", "observed")
		require.Equal(t, "disconnect", e.Origin)
	})
}
