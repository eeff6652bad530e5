package main

import (
	"context"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addCapabilities adds the tools that depend on what the client can do.
func (f *fixture) addCapabilities() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_missing_capability", Description: "Needs a client that can sample a model.",
	}, func(_ context.Context, req *servercontext.Request, _ nothing) (string, error) {
		if err := req.RequireClientCapability("sampling"); err != nil {
			return "", err
		}
		return "The client can sample a model.", nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_streaming_elicitation", Description: "Reports progress: no request to the client may be among what it sends.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		for step := 1; step <= 3; step++ {
			if err := req.Progress(ctx, float64(step), 3, ""); err != nil {
				return "", err
			}
		}
		return "Only notifications came before this result.", nil
	})
}
