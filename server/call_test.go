package server_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A test's handler may fail the test, which ends its goroutine.
func TestInvariant_C1_HandlerThatEndsItsGoroutine(t *testing.T) {
	for _, caps := range []M{{}, allCaps} {
		eachEraWith(t, nil, peerOptions{Caps: caps}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("goexit", func(context.Context, *servercontext.Request, tagged) (any, error) {
				runtime.Goexit()
				return nil, nil
			})
			p.Call(1, "goexit", nil)
			m := p.Answer(1)
			require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
			f.Done(1)
			require.Zero(t, f.Stats().InFlight)
		})
	}
}

// Nil input requests end their request, not the process.
func TestInvariant_C5_NilInputRequests(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("nil", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"a": map[string]mcp.InputRequest{
				"elicit": (*mcp.ElicitParams)(nil), "sample": (*mcp.CreateMessageParams)(nil), "roots": (*mcp.ListRootsParams)(nil), "nothing": nil,
			}[in.Tag]}}, nil
		})
		for id, tag := range []string{"elicit", "sample", "roots", "nothing"} {
			p.Call(id, "nil", tagged{Tag: tag})
			p.settle()
			if m := p.Answer(id); !m.IsError() {
				t.Errorf("%s: %s", tag, m.Raw)
			}
		}
	})
}
