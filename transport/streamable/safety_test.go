package streamable_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOrigins(t *testing.T) {
	f := newFixture(t, nil)
	h := streamable.NewHandler(f.s, &streamable.Options{AllowedOrigins: []string{"https://app.example", "null"}})
	open := streamable.NewHandler(f.s, &streamable.Options{AllowedOrigins: []string{"*"}})
	for origin, allowed := range map[string]bool{
		"http://mem.example":           true, // its own
		"https://mem.example":          true, // the same behind a proxy that speaks TLS
		"http://MEM.example:80":        true,
		"https://mem.example:8443":     false,
		"http://mem.example.evil.com":  false,
		"http://evilmem.example":       false,
		"http://localhost":             true,
		"http://localhost:3000":        true,
		"https://127.0.0.1:9":          true,
		"http://127.9.9.9":             true,
		"http://[::1]:5173":            true,
		"http://[::ffff:127.0.0.1]":    true,
		"http://localhost.evil.com":    false,
		"http://127.0.0.1.nip.io":      false,
		"https://app.example":          true,
		"https://APP.example":          true,
		"https://app.example.evil.com": false,
		"https://evil.com":             false,
		"null":                         true, // listed
		"file://":                      false,
		"":                             false,
		"http://user@localhost":        false,
		"http://localhost/path":        false,
		"javascript:alert(1)":          false,
		"http://":                      false,
	} {
		for _, c := range []call{modernTool(1, "echo", M{"text": "x"}), newCall(http.MethodGet, ""), newCall(http.MethodOptions, "")} {
			c.header.Set("Origin", origin)
			g := newGuard()
			h.ServeHTTP(g, c.request(t.Context(), 1))
			assert.Equalf(t, allowed, g.status != http.StatusForbidden, "%q %s", origin, c.method)
			if !allowed {
				assert.Contains(t, g.body.String(), `"error"`)
				assert.Contains(t, g.body.String(), `"id":null`)
			}
			g = newGuard()
			open.ServeHTTP(g, c.request(t.Context(), 1))
			assert.NotEqualf(t, http.StatusForbidden, g.status, "%q", origin)
		}
	}
	c := modernTool(1, "echo", M{"text": "x"})
	c.header["Origin"] = []string{"http://localhost", "https://evil.com"}
	g := newGuard()
	h.ServeHTTP(g, c.request(t.Context(), 1))
	require.Equal(t, http.StatusForbidden, g.status)
	require.Empty(t, f.started)
}

func TestHostsOnLoopback(t *testing.T) {
	f := newFixture(t, nil)
	h := streamable.NewHandler(f.s, &streamable.Options{AllowedHosts: []string{"proxy.example", "other.example:99"}})
	for _, c := range []struct {
		local, host string
		allowed     bool
	}{
		{"127.0.0.1:80", "localhost", true},
		{"127.0.0.1:80", "LOCALHOST:8080", true},
		{"127.0.0.1:80", "127.0.0.1:8080", true},
		{"[::1]:80", "[::1]:8080", true},
		{"[::1]:80", "[::1]", true},
		{"127.0.0.1:80", "proxy.example", true},
		{"127.0.0.1:80", "proxy.example:1234", true},
		{"127.0.0.1:80", "other.example:99", true},
		{"127.0.0.1:80", "other.example", false},
		{"127.0.0.1:80", "evil.com", false},
		{"127.0.0.1:80", "evil.com:8080", false},
		{"127.0.0.1:80", "localhost.evil.com", false},
		{"127.0.0.1:80", "", false},
		{"[::1]:80", "evil.com", false},
		{"192.0.2.1:80", "evil.com", true}, // whoever listens in public is called by any name
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.local)
		require.NoError(t, err)
		r := modernTool(1, "echo", M{"text": "x"}).request(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(addr)), 1)
		r.Host = c.host
		g := newGuard()
		h.ServeHTTP(g, r)
		assert.Equalf(t, c.allowed, g.status == http.StatusOK, "%s %q: %d", c.local, c.host, g.status)
		if !c.allowed {
			assert.Equal(t, http.StatusForbidden, g.status)
		}
	}
}

func TestCORS(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{
			AllowedOrigins: []string{"https://app.example"},
			CORS:           &streamable.CORS{Headers: []string{"X-Trace"}, Expose: []string{"X-Cost"}, MaxAge: time.Hour},
			Auth:           &streamable.Auth{Verifier: byName, AllowMissingExpiration: true},
		})
		preflight := newCall(http.MethodOptions, "").with("Origin", "https://app.example").
			with("Access-Control-Request-Method", "POST").
			with("Access-Control-Request-Headers", "content-type,mcp-protocol-version, Mcp-Param-Region,x-trace,x-evil,authorization")
		a := e.do(preflight)
		require.Equal(t, http.StatusNoContent, a.status)
		require.Equal(t, "https://app.example", a.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "GET, POST, DELETE", a.header.Get("Access-Control-Allow-Methods"))
		require.Equal(t, "content-type, mcp-protocol-version, mcp-param-region, x-trace, authorization", a.header.Get("Access-Control-Allow-Headers"))
		require.Equal(t, "3600", a.header.Get("Access-Control-Max-Age"))
		require.Equal(t, "Origin", a.header.Get("Vary"))

		a = e.do(preflight.with("Origin", "https://evil.com"))
		require.Equal(t, http.StatusForbidden, a.status)
		require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))

		// A page must be able to read why it was refused.
		a = e.do(modernTool(1, "echo", M{"text": "x"}).with("Origin", "https://app.example"))
		require.Equal(t, http.StatusUnauthorized, a.status)
		require.Equal(t, "https://app.example", a.header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, a.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id")
		require.Contains(t, a.header.Get("Access-Control-Expose-Headers"), "X-Cost")

		e.bearer = "ann"
		a = e.do(modernTool(1, "echo", M{"text": "x"}))
		require.Equal(t, 200, a.status)
		require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "Origin", a.header.Get("Vary"), "a cache must tell the two apart")
		require.Equal(t, http.StatusMethodNotAllowed, e.do(newCall(http.MethodOptions, "").with("Origin", "https://app.example")).status)
	})
}

func TestTooManyInFlight(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{MaxInFlight: 2})
		one, two := e.open(modernTool(1, "wait", M{"tag": "a"})), e.open(modernTool(2, "wait", M{"tag": "a"}))
		a := e.do(modernTool(3, "echo", M{"text": "x"}))
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Equal(t, -32603, a.code(t))
		require.Equal(t, "3", string(a.message(t).ID))
		one.drop()
		f.next("a")
		synctest.Wait()
		require.Equal(t, 200, e.do(modernTool(3, "echo", M{"text": "x"})).status)
		two.drop()
		f.next("a")
	})
}

func TestParamHeaders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "sql", InputSchema: M{"type": "object", "properties": M{
			"region": M{"type": "string", "x-mcp-header": "region"},
			"limit":  M{"type": "integer", "x-mcp-header": "Limit"},
			"dry":    M{"type": "boolean", "x-mcp-header": "Dry-Run"},
			"where":  M{"type": "object", "properties": M{"tenant": M{"type": "string", "x-mcp-header": "Tenant"}}},
		}}}, func(context.Context, *servercontext.Request, M) (string, error) { return "ran", nil })
		e := serve(t, f.s, nil)
		for _, c := range []struct {
			arguments string
			headers   map[string]string
			ok        bool
		}{
			{`{}`, nil, true},
			{`{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "eu"}, true},
			{`{"region":"eu"}`, map[string]string{"mcp-param-REGION": " eu\t"}, true},
			{`{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "=?base64?ZXU=?="}, true},
			{`{"region":"日本"}`, map[string]string{"Mcp-Param-Region": "=?base64?5pel5pys?="}, true},
			{`{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "=?base64?ZXU?="}, false},
			{`{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "EU"}, false},
			{`{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "us"}, false},
			{`{"region":"eu"}`, nil, false},
			{`{"region":""}`, map[string]string{"Mcp-Param-Region": ""}, true},
			{`{"region":""}`, nil, false},
			{`{}`, map[string]string{"Mcp-Param-Region": "eu"}, false},
			{`{"region":null}`, map[string]string{"Mcp-Param-Region": "null"}, false},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "42"}, true},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "42.0"}, true},
			{`{"limit":42.0}`, map[string]string{"Mcp-Param-Limit": "42"}, true},
			{`{"limit":-7}`, map[string]string{"Mcp-Param-Limit": "-7"}, true},
			{`{"limit":4e1}`, map[string]string{"Mcp-Param-Limit": "40"}, true},
			{`{"limit":9007199254740991}`, map[string]string{"Mcp-Param-Limit": "9007199254740991"}, true},
			{`{"limit":9007199254740993}`, map[string]string{"Mcp-Param-Limit": "9007199254740993"}, false},
			{`{"limit":9007199254740993}`, map[string]string{"Mcp-Param-Limit": "9007199254740992"}, false},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "43"}, false},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "0x2a"}, false},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "+42"}, false},
			{`{"limit":42}`, map[string]string{"Mcp-Param-Limit": "4_2"}, false},
			{`{"dry":true}`, map[string]string{"Mcp-Param-Dry-Run": "true"}, true},
			{`{"dry":true}`, map[string]string{"Mcp-Param-Dry-Run": "True"}, false},
			{`{"dry":false}`, map[string]string{"Mcp-Param-Dry-Run": "true"}, false},
			{`{"where":{"tenant":"t"}}`, map[string]string{"Mcp-Param-Tenant": "t"}, true},
			{`{"where":{"tenant":"t"}}`, nil, false},
			{`{"where":{}}`, nil, true},
			{`{"where":7}`, nil, true}, // wrong, but that is for the tool's schema to say
			{`{}`, map[string]string{"Mcp-Param-Unknown": "x"}, true},
		} {
			call := modernTool(1, "sql", nil)
			call.body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sql","arguments":%s,"_meta":{%q:%q,%q:{}}}}`,
				c.arguments, mcp.MetaKeyProtocolVersion, server.Version20260728, mcp.MetaKeyClientCapabilities)
			for name, value := range c.headers {
				call.header[http.CanonicalHeaderKey(name)] = []string{value}
			}
			a := e.do(call)
			if c.ok {
				assert.Equalf(t, 200, a.status, "%s %v: %s", c.arguments, c.headers, a.body)
			} else {
				assert.Equalf(t, 400, a.status, "%s %v: %s", c.arguments, c.headers, a.body)
				assert.Equalf(t, -32020, a.code(t), "%s %v", c.arguments, c.headers)
			}
		}
		call := modernTool(1, "sql", M{"region": "eu"})
		call.header["Mcp-Param-Region"] = []string{"eu", "us"}
		require.Equal(t, 400, e.do(call).status)
	})
}
