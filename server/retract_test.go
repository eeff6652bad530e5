package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A handler hears of a cancel before the server has come to its questions, and
// may be gone by then. They are retracted all the same, once each.
func TestQuestionsOfQuickHandlersAreRetracted(t *testing.T) {
	const rounds = 500
	for name, handler := range map[string]func(context.Context, *servercontext.Request) error{
		"asks and returns": func(ctx context.Context, req *servercontext.Request) error { return req.Ping(ctx) },
		"returns while another goroutine asks": func(ctx context.Context, req *servercontext.Request) error {
			go func() { _ = req.Ping(context.WithoutCancel(ctx)) }()
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := server.New(&mcp.Implementation{Name: "retract", Version: "1"}, nil)
				server.MustAddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
					return "", handler(ctx, req)
				})
				p := newPeer(t, s, peerOptions{})
				for id := 1; id <= rounds; id++ {
					p.Call(id, "ask", M{})
					question := p.Asked("ping", id)
					p.Cancel(id, "stop")
					p.Silent(id)
					retracted := p.Sent("notifications/cancelled")
					require.Equal(t, id, len(retracted), "retracted so far")
					require.Equal(t, string(question.ID), encode(t, retracted[id-1].Param("requestId")))
				}
			})
		})
	}
}
