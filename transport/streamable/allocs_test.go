//go:build !race

package streamable_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// allocations counts those of a request that is served.
func allocations(t *testing.T, h http.Handler, c call) float64 {
	return testing.AllocsPerRun(500, func() {
		h.ServeHTTP(&sinkWriter{header: http.Header{}}, c.request(t.Context(), 1))
	})
}

// What a call costs is checked here without regard to the machine: its
// allocations beyond those of a handler that has nothing to do.
func TestAllocationsPerCall(t *testing.T) {
	h := streamable.NewHandler(plain(), nil)
	t.Cleanup(func() { _ = h.Close() })
	c := modernTool(1, "add", M{"a": 1, "b": 2})
	static := allocations(t, http.HandlerFunc(staticJSON), c)
	require.LessOrEqual(t, allocations(t, h, c)-static, 17.0, "stateless")
	session := classicTool(1, "add", M{"a": 1, "b": 2}).with("Mcp-Session-Id", welcomed(t, h))
	require.LessOrEqual(t, allocations(t, h, session)-static, 23.0, "session")
}

// An event stream: three reports of progress and the answer, each an event of its own. Sessions
// keep each event for a client that resumes.
func TestAllocationsPerEventStream(t *testing.T) {
	s := server.New(&mcp.Implementation{Name: "stream", Version: "1"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "report"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		for i := range 3 {
			if err := req.Progress(ctx, float64(i+1), 3, ""); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	h := streamable.NewHandler(s, nil)
	t.Cleanup(func() { _ = h.Close() })
	static := allocations(t, http.HandlerFunc(staticJSON), modern(1, "tools/call", reports))
	stateless := allocations(t, h, modern(1, "tools/call", reports))
	require.LessOrEqual(t, stateless-static, 23.0, "stateless")
	session := allocations(t, h, classic(1, "tools/call", reports).with("Mcp-Session-Id", welcomed(t, h)))
	require.LessOrEqual(t, session-static, 49.0, "session")
}
