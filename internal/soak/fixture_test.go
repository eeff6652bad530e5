package soak_test

import (
	"context"
	"log/slog"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Text string `json:"text"`
	MS   int    `json:"ms"`
}

// newServer makes the server under load.
func newServer() *server.Server {
	s := server.New(&mcp.Implementation{Name: "soak", Version: "1"}, &server.Options{Logger: slog.New(slog.DiscardHandler)})
	server.MustAddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *servercontext.Request, in input) (string, error) { return in.Text, nil })
	server.MustAddTool(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, req *servercontext.Request, in input) (string, error) {
		for i := range 3 {
			if err := req.Progress(ctx, float64(i+1), 3, ""); err != nil {
				return "", err
			}
			select {
			case <-time.After(time.Duration(in.MS) * time.Millisecond / 3):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return in.Text, nil
	})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ input) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	server.MustAddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, in input) (string, error) {
		result, err := req.CreateMessage(ctx, &mcp.CreateMessageParams{
			MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}},
		})
		if err != nil {
			return "", err
		}
		text, _ := result.Content.(*mcp.TextContent)
		if text == nil {
			return "", context.Canceled
		}
		return text.Text, nil
	})
	return s
}
