package streamable_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHandshakeEraWithoutSessions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{NoSessions: true})
		a := e.do(classic(1, "initialize", M{"protocolVersion": server.Version20250618, "capabilities": M{}}))
		require.Equal(t, 200, a.status)
		require.Empty(t, a.header.Get("Mcp-Session-Id"))
		e.accept(classic(nil, "notifications/initialized", nil))
		e.accept(newCall("POST", `{"jsonrpc":"2.0","id":1,"result":{}}`))
		for _, version := range []string{"", server.Version20250326, server.Version20250618, server.Version20251125} {
			a = e.do(classicTool(1, "echo", M{"text": "x"}).with("MCP-Protocol-Version", version))
			assert.Equalf(t, 200, a.status, "%q: %s", version, a.body)
			assert.NotContains(t, a.body, "resultType")
		}
		assert.Equal(t, 400, e.do(classicTool(1, "echo", M{"text": "x"}).with("MCP-Protocol-Version", "2099-01-01")).status)
		assert.Equal(t, 200, e.do(modernTool(1, "echo", M{"text": "x"})).status, "the other era is served as well")
		assert.Equal(t, 405, e.do(newCall("GET", "").with("Mcp-Session-Id", "x")).status)
		assert.Equal(t, 405, e.do(newCall("DELETE", "").with("Mcp-Session-Id", "x")).status)
		a = e.do(newCall("POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`))
		assert.Equal(t, 200, a.status, "without a header it is 2025-03-26, which has batches")
		assert.True(t, strings.HasPrefix(a.body, "["))
		a = e.do(newCall("POST", `[{"jsonrpc":"2.0","method":"notifications/x"}]`))
		assert.Equal(t, http.StatusAccepted, a.status)

		// Nobody could cancel or resume it, so a drop is the cancel.
		w := e.open(classicTool(1, "wait", M{"tag": "a"}))
		e.accept(cancelOf(1, "r"))
		synctest.Wait()
		f.untouched("a")
		w.drop()
		require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
		synctest.Wait()
		require.Zero(t, f.s.Stats().Sessions)
	})
}

func TestOfficialClientWithoutSessions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, &streamable.Options{NoSessions: true})
		cs := e.connect(nil, server.Version20250618)
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "x"}})
		require.NoError(t, err)
	})
}
