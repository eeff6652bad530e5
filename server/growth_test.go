package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func registerRaw(tb testing.TB, s *server.Server, n int) {
	tb.Helper()
	for i := range n {
		err := s.AddRawTool(&mcp.Tool{Name: fmt.Sprintf("tool-%d", i), InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		require.NoError(tb, err)
	}
}

// What one registration allocates must not depend on how many there were before,
// also while a session is open that is told of them. (In a bubble: each time that the
// session is told, which time decides, the registry is published, at a cost that does grow.)
func TestRegistrationCostsTheSameHoweverManyThereAre(t *testing.T) {
	perTool := func(n int) (cost float64) {
		bubble.Test(t, func(t *testing.T) {
			s := server.New(&mcp.Implementation{Name: "growth", Version: "1"}, nil)
			told := 0
			ss := s.Open(t.Context(), server.SessionOptions{Send: func([]byte) error { told++; return nil }, Version: server.Version20251125})
			defer ss.Close(0, "")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			registerRaw(t, s, n)
			runtime.ReadMemStats(&after)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, 1, told)
			cost = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
		})
		return cost
	}
	perTool(10) // whatever is made once
	few, many := perTool(100), perTool(5000)
	require.Less(t, many, 1.5*few, "bytes per tool: %.0f for 100, %.0f for 5000", few, many)
}

// BenchmarkRegister measures registering one tool after the other.
func BenchmarkRegister(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				registerRaw(b, server.New(&mcp.Implementation{Name: "growth", Version: "1"}, nil), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/tool")
		})
	}
}
