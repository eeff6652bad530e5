package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

func TestSlots_WaitingForAToolBlocksNoOther(t *testing.T) {
	eachEraWith(t, &server.Options{MaxConcurrent: 2}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("single", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			f.add(in.Tag, "started", nil)
			return "done", f.wait(ctx, in)
		}, &server.ToolOptions{MaxConcurrent: 1})
		p.Call(1, "single", tagged{Tag: "a"})
		p.Call(2, "single", tagged{Tag: "b"})
		p.settle()
		p.Call(3, "echo", M{"text": "not behind the second"})
		p.settle()
		require.NotNil(t, p.answerLocked("3"), "a slot of the server is held by a call that waits for its tool")
		p.Cancel(1, "")
		p.Cancel(2, "")
	})
}
