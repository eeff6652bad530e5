package main

import (
	"context"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pace is the time between two reports.
const pace = 50 * time.Millisecond

// addReports adds the tools that report while they work.
func (f *fixture) addReports() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_tool_with_logging", Description: "Logs three messages while it runs.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		for i, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if i > 0 {
				if err := pause(ctx, pace); err != nil {
					return "", err
				}
			}
			req.Log(servercontext.LevelInfo, message)
		}
		return "Tool with logging executed successfully", nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_tool_with_progress", Description: "Reports progress three times while it runs.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		for _, percent := range []float64{0, 50, 100} {
			if err := req.Progress(ctx, percent, 100, ""); err != nil {
				return "", err
			}
			if err := pause(ctx, pace); err != nil {
				return "", err
			}
		}
		return "Tool with progress executed successfully", nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_logging_tool", Description: "Logs a message, which is sent only to clients that ask for it.",
	}, func(_ context.Context, req *servercontext.Request, _ nothing) (string, error) {
		req.Log(servercontext.LevelInfo, "test_logging_tool was called")
		return "The message was logged, for whoever asked for it.", nil
	})
}

// pause waits for d, or until ctx's request is cancelled, whose error it then returns.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancellation.Checkpoint(ctx)
	}
}
