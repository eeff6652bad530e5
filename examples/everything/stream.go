package main

import (
	"context"
	"errors"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// retryAfter is when the client of a closed stream shall come back.
	retryAfter = 10 * time.Millisecond
	// absence is how long test_reconnection works after it has closed the stream.
	absence = 100 * time.Millisecond
)

// addStreams adds the tool that closes its own response stream.
func (f *fixture) addStreams() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_reconnection", Description: "Closes its stream where there is one, and answers when the client has come back.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		if err := req.CloseStream(retryAfter); err != nil && !errors.Is(err, servercontext.ErrNotSupported) {
			return "", err
		}
		if err := pause(ctx, absence); err != nil {
			return "", err
		}
		return "The result was worth coming back for.", nil
	})
}
