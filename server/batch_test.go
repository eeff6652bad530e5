package server_test

import (
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/stretchr/testify/require"
)

// A malformed notification in a batch has no answer, and the others' are not held up by it.
func TestBatch_MalformedNotification(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20250326}, func(t *testing.T, f *fixture, p *peer) {
		r := p.Raw("batch", `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","result":{},"id":5,"params":3}]`)
		p.settle()
		require.NotNil(t, r.answer())
		require.JSONEq(t, `[{"jsonrpc":"2.0","id":1,"result":{}}]`, r.answer().Raw)
	})
}
