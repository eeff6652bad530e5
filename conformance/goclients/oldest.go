//go:build oldest

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the oldest versions, those of oldest.mod, do in another way than the newest. Neither has a
// choice of revisions before it speaks, and the official SDK's complains to nobody.

func officialOptions(_ *complaints, o mcp.ClientOptions) *mcp.ClientOptions { return &o }

func officialSession(string) *mcp.ClientSessionOptions { return nil }

// mcpgoCancels tells whether mcp-go's client sends notifications/cancelled over stdio. This one never
// does, and its application cannot: it does not learn the request's id.
const mcpgoCancels = false

func mcpgoOptions(string) []client.ClientOption { return nil }

func mcpgoHTTPLogger(c *complaints) transport.StreamableHTTPCOption {
	return transport.WithHTTPLogger(printf{c})
}

func mcpgoStdioOptions(c *complaints) []transport.StdioOption {
	return []transport.StdioOption{transport.WithCommandLogger(printf{c})}
}

// printf makes complaints of an older kind of logger.
type printf struct{ *complaints }

func (printf) Infof(string, ...any) {}

func (p printf) Errorf(format string, args ...any) {
	_ = p.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelError, fmt.Sprintf(format, args...), 0))
}
