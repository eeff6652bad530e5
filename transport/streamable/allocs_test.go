//go:build !race

package streamable_test

import (
	"net/http"
	"testing"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/require"
)

// What a call costs is checked here without regard to the machine: its
// allocations beyond those of a handler that has nothing to do.
func TestAllocationsPerCall(t *testing.T) {
	h := streamable.NewHandler(plain(), nil)
	t.Cleanup(func() { _ = h.Close() })
	count := func(handler http.Handler, c call) float64 {
		return testing.AllocsPerRun(500, func() {
			handler.ServeHTTP(&sinkWriter{header: http.Header{}}, c.request(t.Context(), 1))
		})
	}
	c := modernTool(1, "add", M{"a": 1, "b": 2})
	static := count(http.HandlerFunc(staticJSON), c)
	require.LessOrEqual(t, count(h, c)-static, 24.0, "stateless")
	session := classicTool(1, "add", M{"a": 1, "b": 2}).with("Mcp-Session-Id", welcomed(t, h))
	require.LessOrEqual(t, count(h, session)-static, 36.0, "session")
}
