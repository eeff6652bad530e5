//go:build !oldest

package main

import (
	"log/slog"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the clients' newest versions, those of go.mod, do in another way than the oldest.

func officialOptions(c *complaints, o mcp.ClientOptions) *mcp.ClientOptions {
	o.Logger = slog.New(c)
	return &o
}

func officialSession(revision string) *mcp.ClientSessionOptions {
	return &mcp.ClientSessionOptions{ProtocolVersion: revision}
}

func officialClose(s *official) error { return s.session.Close() }

// mcpgoCancels tells whether mcp-go's client sends notifications/cancelled over stdio.
const mcpgoCancels = true

func mcpgoOptions(revision string) []client.ClientOption {
	return []client.ClientOption{
		client.WithProtocolVersion(revision),
		client.WithDiscoverTimeout(-1), // or a busy machine is taken for an old server
	}
}

func mcpgoHTTPLogger(c *complaints) transport.StreamableHTTPCOption {
	return transport.WithHTTPLogger(slog.New(c))
}

func mcpgoStdioOptions(c *complaints) []transport.StdioOption {
	return []transport.StdioOption{transport.WithCommandLogger(slog.New(c)), transport.WithCommandStderrWriter(os.Stderr)}
}
