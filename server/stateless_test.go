package server_test

import (
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/server"
	"github.com/stretchr/testify/require"
)

func TestStateless_ScopeOfAServerWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{Versions: []string{server.Version20251125}})
		p := newPeer(t, f.Server, peerOptions{Version: server.Version20260728, Scope: true})
		p.Request(1, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.NotZero(t, p.Answer(1).Code(), "the shared scope has no handshake")
		p.Request(2, "tools/list", nil)
		require.NotZero(t, p.Answer(2).Code())
		require.Empty(t, f.Stateless().InitializeVersion())
	})
}
