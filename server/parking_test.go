package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

func TestParking_TheBoundHolds(t *testing.T) {
	inBubbleWith(t, &server.Options{MaxParked: 2}, peerOptions{Version: server.Version20260728, Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("ask", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			_, err := req.Elicit(ctx, form)
			return nil, err
		})
		for id := range 10 {
			p.Call(id, "ask", nil)
		}
		refused := 0
		for id := range 10 {
			if m := p.Answer(id); m.IsError() {
				require.Contains(t, m.Text(), "too many")
				refused++
			}
		}
		require.Equal(t, 8, refused)
		require.Equal(t, 2, f.Stats().Parked)
	})
}
