package streamable_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every status of the stateless era.
func TestStatelessStatuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		echo := modernTool(1, "echo", M{"text": "x"})
		meta := func(version any) call {
			c := modernTool(1, "echo", M{"text": "x"})
			c.body = encode(message(1, "tools/call", M{"name": "echo", "arguments": M{"text": "x"},
				"_meta": M{mcp.MetaKeyProtocolVersion: version, mcp.MetaKeyClientCapabilities: M{}}}))
			return c
		}
		other := func(method string) call { return modern(1, method, nil) }
		for _, c := range []struct {
			name   string
			call   call
			status int
			code   int
		}{
			{"a call", echo, 200, 0},
			{"discover", other("server/discover"), 200, 0},
			{"list", other("tools/list"), 200, 0},
			{"a tool's own error", modernTool(1, "echo", M{"text": 1}), 200, 0},
			{"no version header", echo.with("MCP-Protocol-Version", ""), 400, -32020},
			{"another version header", echo.with("MCP-Protocol-Version", server.Version20251125), 400, -32020},
			{"an unknown version header", echo.with("MCP-Protocol-Version", "2099-01-01"), 400, -32020},
			{"an empty version header", echo.with("MCP-Protocol-Version", " "), 400, -32020},
			{"a body of another version", meta("2099-01-01"), 400, -32020},
			{"an unknown version", meta("2099-01-01").with("MCP-Protocol-Version", "2099-01-01"), 400, -32022},
			{"an old unknown version", meta("1900-01-01").with("MCP-Protocol-Version", "1900-01-01"), 400, -32022},
			{"an old version told like a new one", meta(server.Version20251125).with("MCP-Protocol-Version", server.Version20251125), 400, -32022},
			{"a version that is no string", meta(7), 400, -32602},
			{"no _meta", call{method: "POST", body: encode(message(1, "tools/list", nil)), header: other("tools/list").header}, 400, -32602},
			{"no capabilities", call{method: "POST", body: encode(message(1, "tools/list", M{"_meta": M{mcp.MetaKeyProtocolVersion: server.Version20260728}})), header: other("tools/list").header}, 400, -32602},
			{"capabilities under no version", call{method: "POST", body: encode(message(1, "tools/list", M{"_meta": M{mcp.MetaKeyClientCapabilities: M{}}})), header: other("tools/list").header}, 400, -32602},
			{"capabilities under an old header", call{method: "POST", body: encode(message(1, "tools/list", M{"_meta": M{mcp.MetaKeyClientCapabilities: M{}}})), header: other("tools/list").with("MCP-Protocol-Version", server.Version20251125).header}, 400, -32020},
			{"discover without headers", classic(1, "server/discover", nil), 400, -32020},
			{"no method header", echo.with("Mcp-Method", ""), 400, -32020},
			{"another method header", echo.with("Mcp-Method", "tools/list"), 400, -32020},
			{"a method header in another case", echo.with("Mcp-Method", "Tools/Call"), 400, -32020},
			{"a method header with white space", echo.with("Mcp-Method", " tools/call\t"), 200, 0},
			{"no name header", echo.with("Mcp-Name", ""), 400, -32020},
			{"another name header", echo.with("Mcp-Name", "wait"), 400, -32020},
			{"a name header with white space", echo.with("Mcp-Name", "  echo "), 200, 0},
			{"a name header and no name", call{method: "POST", body: modern(1, "tools/call", nil).body, header: echo.header}, 400, -32020},
			{"neither name header nor name", modern(1, "tools/call", nil), 400, -32602},
			{"a method that never was", other("no/such"), 404, -32601},
			{"initialize", other("initialize"), 404, -32601},
			{"ping", other("ping"), 404, -32601},
			{"setLevel", other("logging/setLevel"), 404, -32601},
			{"subscribe", modern(1, "resources/subscribe", M{"uri": "a:b"}), 404, -32601},
			{"unsubscribe", modern(1, "resources/unsubscribe", M{"uri": "a:b"}), 404, -32601},
			{"a notification with an id", other("notifications/initialized"), 404, -32601},
			{"a tool that does not exist", modernTool(1, "nothing", M{}), 400, -32602},
			{"params that are no object", call{method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, header: other("tools/list").header}, 400, -32602},
			{"a batch", call{method: "POST", body: "[" + echo.body + "]", header: echo.header}, 400, -32600},
			{"a response", call{method: "POST", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, header: echo.header}, 400, -32600},
			{"an unknown log level", modern(1, "tools/list", M{"_meta": M{mcp.MetaKeyLogLevel: "loud"}}), 400, -32602},
		} {
			a := e.do(c.call)
			assert.Equalf(t, c.status, a.status, "%s: %s", c.name, a.body)
			assert.Equalf(t, "application/json", a.header.Get("Content-Type"), c.name)
			assert.Equalf(t, c.code, a.code(t), "%s: %s", c.name, a.body)
			assert.Emptyf(t, a.header.Get("Mcp-Session-Id"), c.name)
			if c.name != "a response" && c.name != "a batch" {
				assert.Equalf(t, "1", string(a.message(t).ID), "%s: the error names its request", c.name)
			}
		}
	})
}

func TestUnsupportedVersionNamesTheSupportedOnes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		c := modern(1, "tools/list", M{"_meta": M{mcp.MetaKeyProtocolVersion: "2099-01-01"}}).with("MCP-Protocol-Version", "2099-01-01")
		a := e.do(c)
		require.Equal(t, 400, a.status)
		require.JSONEq(t, encode(M{"supported": server.Versions(), "requested": "2099-01-01"}), string(a.message(t).Error.Data))
	})
}

func TestStatelessIgnoresWhatItDoesNotHave(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		a := e.do(modernTool(1, "echo", M{"text": "x"}).with("Mcp-Session-Id", "nonsense").with("Last-Event-ID", "nonsense"))
		require.Equal(t, 200, a.status)
		require.Empty(t, a.header.Get("Mcp-Session-Id"))
		for _, n := range []call{
			modern(nil, "notifications/cancelled", M{"requestId": 1}),
			modern(nil, "notifications/unknown", nil).with("Mcp-Method", ""),
		} {
			a := e.do(n)
			assert.Equal(t, http.StatusAccepted, a.status)
			assert.Empty(t, a.body)
		}
	})
}

// Every status that does not depend on the era.
func TestCommonStatuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, &streamable.Options{MaxBody: 4096})
		echo := modernTool(1, "echo", M{"text": "x"})
		for _, c := range []struct {
			name   string
			call   call
			status int
		}{
			{"charset", echo.with("Content-Type", "application/json; charset=UTF-8"), 200},
			{"upper-case type", echo.with("Content-Type", "Application/JSON"), 200},
			{"other charset", echo.with("Content-Type", "application/json; charset=latin1"), 415},
			{"no type", echo.with("Content-Type", ""), 415},
			{"text", echo.with("Content-Type", "text/plain"), 415},
			{"malformed type", echo.with("Content-Type", "application/json; ;"), 415},
			{"compressed", echo.with("Content-Encoding", "gzip"), 415},
			{"no accept", echo.with("Accept", ""), 200},
			{"anything", echo.with("Accept", "*/*"), 200},
			{"json only", echo.with("Accept", "application/json"), 200},
			{"ranges", echo.with("Accept", "text/*;q=0.5, application/*"), 200},
			{"html", echo.with("Accept", "text/html"), 406},
			{"nothing wanted", echo.with("Accept", "application/json;q=0, text/event-stream;q=0.0"), 406},
			{"all but ours", echo.with("Accept", "*/*, application/json;q=0, text/event-stream;q=0"), 406},
			{"GET", newCall(http.MethodGet, ""), 405},
			{"GET of the stateless era", newCall(http.MethodGet, "").with("MCP-Protocol-Version", server.Version20260728).with("Mcp-Session-Id", "x"), 405},
			{"DELETE", newCall(http.MethodDelete, ""), 405},
			{"PUT", newCall(http.MethodPut, ""), 405},
			{"OPTIONS", newCall(http.MethodOptions, ""), 405},
			{"too large", call{method: "POST", body: modernTool(1, "echo", M{"text": strings.Repeat("x", 5000)}).body, header: echo.header}, 413},
			{"no JSON", call{method: "POST", body: "{", header: echo.header}, 400},
			{"nothing", call{method: "POST", body: "", header: echo.header}, 400},
			{"two values", call{method: "POST", body: echo.body + echo.body, header: echo.header}, 400},
			{"deep", call{method: "POST", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, header: echo.header}, 400},
			{"two of a key", call{method: "POST", body: `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}`, header: echo.header}, 400},
		} {
			a := e.do(c.call)
			assert.Equalf(t, c.status, a.status, "%s: %s", c.name, a.body)
			assert.Equalf(t, "application/json", a.header.Get("Content-Type"), c.name)
			if c.status == 405 {
				allow := "GET, POST, DELETE"
				if c.call.method == http.MethodGet || c.call.method == http.MethodDelete {
					allow = "POST" // these need a session
				}
				assert.Equalf(t, allow, a.header.Get("Allow"), c.name)
			}
			if c.status != 200 {
				assert.NotZerof(t, a.code(t), c.name)
			}
		}
		a := e.do(newCall(http.MethodHead, ""))
		require.Equal(t, 405, a.status)
	})
}

func TestUnknownLengthIsBoundedToo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, &streamable.Options{MaxBody: 4096})
		for size, status := range map[int]int{100: 200, 3000: 200, 5000: 413, 1 << 20: 413} {
			c := modernTool(1, "echo", M{"text": strings.Repeat("x", size)})
			r, err := http.NewRequest(http.MethodPost, e.url, struct{ *strings.Reader }{strings.NewReader(c.body)})
			require.NoError(t, err)
			r.Header = c.header
			r.ContentLength = -1
			resp, err := e.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, status, resp.StatusCode, size)
		}
	})
}

func TestLargeBodiesArriveWhole(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		text := strings.Repeat("0123456789", 100_000)
		a := e.do(modernTool(1, "echo", M{"text": text}))
		require.Equal(t, 200, a.status)
		require.Contains(t, a.body, text)
	})
}

// Every status of the handshake era.
func TestSessionStatuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		in := e.initialize(server.Version20251125, nil)
		version := func(v string) call { return classic(1, "ping", nil).with("MCP-Protocol-Version", v) }
		for _, c := range []struct {
			name   string
			at     *endpoint
			call   call
			status int
			code   int // 0: none
		}{
			{"ping", in, classic(1, "ping", nil), 200, 0},
			{"negotiated version", in, version(server.Version20251125), 200, 0},
			{"another known version", in, version(server.Version20250618), 200, 0},
			{"unknown version", in, version("2099-01-01"), 400, -32022},
			{"malformed version", in, version("latest"), 400, -32022},
			{"no session", e, classic(1, "tools/list", nil), 400, -32600},
			{"notification without session", e, classic(nil, "notifications/initialized", nil), 400, -32600},
			{"response without session", e, newCall("POST", `{"jsonrpc":"2.0","id":1,"result":{}}`), 400, -32600},
			{"batch without session", e, newCall("POST", `[]`), 400, -32600},
			{"no JSON without session", e, newCall("POST", `{`), 400, -32700},
			{"unknown session", e, classic(1, "ping", nil).with("Mcp-Session-Id", "nonsense"), 404, -32600},
			{"initialize in an unknown session", e, classic(1, "initialize", M{}).with("Mcp-Session-Id", "nonsense"), 404, -32600},
			{"initialize twice", in, classic(1, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}), 400, -32600},
			{"initialize without version", e, classic(1, "initialize", M{}), 200, -32602},
			{"unknown method", in, classic(1, "no/such", nil), 200, -32601},
			{"unknown tool", in, classicTool(1, "nothing", M{}), 200, -32602},
			{"discover needs the other era", in, classic(1, "server/discover", nil), 400, -32020},
			{"batch", in, newCall("POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), 400, -32600},
			{"no JSON", in, newCall("POST", `{`), 400, -32700},
			{"bad id", in, newCall("POST", `{"jsonrpc":"2.0","id":true,"method":"ping"}`), 400, -32600},
			{"bad params", in, newCall("POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`), 200, -32602},
			{"bad notification", in, newCall("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`), 400, -32602},
			{"GET of an unknown session", e, newCall("GET", "").with("Mcp-Session-Id", "nonsense"), 404, -32600},
			{"GET for JSON", in, newCall("GET", "").with("Accept", "application/json"), 406, -32600},
			{"GET of another version", in, newCall("GET", "").with("MCP-Protocol-Version", "2099-01-01"), 400, -32600},
			{"DELETE of an unknown session", e, newCall("DELETE", "").with("Mcp-Session-Id", "nonsense"), 404, -32600},
			{"malformed event id", in, newCall("GET", "").with("Last-Event-ID", "nonsense"), 400, -32600},
			{"event id of no stream", in, resumeAt("999999-0"), 400, -32600},
			{"event id of a listener that never was", in, resumeAt("0-0"), 400, -32600},
			{"two event ids", in, twice(resumeAt("1-0")), 400, -32600},
		} {
			a := c.at.do(c.call)
			assert.Equalf(t, c.status, a.status, "%s: %s", c.name, a.body)
			assert.Equalf(t, c.code, a.code(t), "%s: %s", c.name, a.body)
			assert.Equalf(t, "application/json", a.header.Get("Content-Type"), c.name)
		}
		require.Equal(t, http.StatusNoContent, in.do(newCall(http.MethodDelete, "")).status)
		require.Equal(t, http.StatusNotFound, in.do(classic(1, "ping", nil)).status)
		require.Equal(t, http.StatusNotFound, in.do(newCall(http.MethodDelete, "")).status)
		require.Equal(t, http.StatusNotFound, in.do(newCall(http.MethodGet, "")).status)
	})
}

func TestServersOfOneEra(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		initialize := classic(1, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		modernOnly := serve(t, newFixture(t, &server.Options{Versions: []string{server.Version20260728}}).s, nil)
		for _, c := range []struct {
			name   string
			call   call
			status int
			code   int
		}{
			{"a call", modernTool(1, "echo", M{"text": "x"}), 200, 0},
			{"no header", classic(1, "tools/list", nil), 400, -32020},
			{"initialize", initialize, 400, -32022},
			{"an old header", classic(1, "tools/list", nil).with("MCP-Protocol-Version", server.Version20251125), 400, -32022},
		} {
			a := modernOnly.do(c.call)
			assert.Equalf(t, c.status, a.status, "%s: %s", c.name, a.body)
			assert.Equalf(t, c.code, a.code(t), "%s: %s", c.name, a.body)
		}
		assert.Equal(t, 405, modernOnly.do(newCall("GET", "").with("Mcp-Session-Id", "x")).status)

		classicOnly := serve(t, newFixture(t, &server.Options{Versions: []string{server.Version20251125}}).s, nil)
		in := classicOnly.initialize(server.Version20251125, nil)
		assert.Equal(t, 200, in.do(classicTool(1, "echo", M{"text": "x"})).status)
		a := classicOnly.do(modernTool(1, "echo", M{"text": "x"}))
		assert.Equal(t, 400, a.status)
		assert.Equal(t, -32600, a.code(t), "no error of an era that the server does not know")
	})
}
