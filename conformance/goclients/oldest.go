//go:build oldest

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the oldest versions, those of oldest.mod, do in another way than the newest. Neither has a
// choice of revisions before it speaks, and the official SDK's complains to nobody.

func officialOptions(_ *complaints, o mcp.ClientOptions) *mcp.ClientOptions { return &o }

func officialSession(string) *mcp.ClientSessionOptions { return nil }

// officialClose ends the session from outside: until version 1.2 the SDK's own Close waits for the answers
// to cancelled calls, and servers must not send any.
func officialClose(s *official) error {
	if s.command != nil {
		if err := s.command.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		_ = s.session.Wait() // says how the server's end was noticed
		return nil
	}
	request, err := http.NewRequest(http.MethodDelete, s.target.url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Mcp-Session-Id", s.session.ID())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

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
	line := fmt.Sprintf(format, args...)
	if strings.Contains(line, os.ErrClosed.Error()) {
		return // it reads on for a moment from a pipe that it has closed itself
	}
	_ = p.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelError, line, 0))
}
