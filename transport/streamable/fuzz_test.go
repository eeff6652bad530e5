package streamable_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/require"
)

// Whatever is in the headers, a request whose headers do not say what its body says
// never reaches a handler, and every answer is a proper one.
func FuzzHeaders(f *testing.F) {
	f.Add("2026-07-28", "tools/call", "echo", "application/json", "application/json")
	f.Add("2026-07-28", "tools/call", "=?base64?ZWNobw==?=", "*/*", "application/json; charset=utf-8")
	f.Add("2025-11-25", "tools/list", "=?base64?=", "text/event-stream;q=0.1, */*;q=0", "application/json;;")
	f.Add("", " ", "=?base64?!?=", ",,;q=,", "")
	fix := newFixture(f, nil)
	h := streamable.NewHandler(fix.s, nil)
	f.Cleanup(func() { _ = h.Close() })
	f.Fuzz(func(t *testing.T, version, method, name, accept, content string) {
		c := modernTool(1, "echo", M{"text": "x"})
		c.header = http.Header{"Mcp-Protocol-Version": {version}, "Mcp-Method": {method}, "Mcp-Name": {name}, "Accept": {accept}, "Content-Type": {content}}
		g := newGuard()
		h.ServeHTTP(g, c.request(t.Context(), 1))
		require.Zero(t, g.overlaps.Load())
		body := g.body.String()
		if g.status != http.StatusOK {
			require.Contains(t, []int{400, 406, 415}, g.status)
			require.Contains(t, body, `"error":{"code":`)
			return
		}
		require.Equal(t, server.Version20260728, strings.Trim(version, " \t"))
		require.Equal(t, "tools/call", strings.Trim(method, " \t"))
		told := strings.Trim(name, " \t")
		if inner, ok := strings.CutPrefix(told, "=?base64?"); ok {
			text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			require.NoError(t, err)
			told = string(text)
		}
		require.Equal(t, "echo", told)
		require.Contains(t, body, `"result"`)
		require.True(t, utf8.ValidString(body))
	})
}

// Whatever a client says that it has seen last, it gets at most what is its own.
func FuzzLastEventID(f *testing.F) {
	for _, id := range []string{"0-0", "1-0", "1-1", "1-2147483648", "01-0", "1--1", "-", "1-0 ", "18446744073709551616-0", "1-0\n", "2-0", "x"} {
		f.Add(id)
	}
	fix := newFixture(f, nil)
	h := streamable.NewHandler(fix.s, nil)
	f.Cleanup(func() { _ = h.Close() })
	welcome := newGuard()
	h.ServeHTTP(welcome, classic(0, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}).request(f.Context(), 1))
	session := welcome.header.Get("Mcp-Session-Id")
	for i := range 2 {
		g := newGuard()
		h.ServeHTTP(g, classic(i, "tools/call", M{"name": "echo", "arguments": M{"text": "text", "progress": 1}, "_meta": progress(1)}).with("Mcp-Session-Id", session).request(f.Context(), 1))
		require.Contains(f, g.body.String(), `"id":`)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if strings.HasPrefix(strings.Trim(id, " \t"), "0-") {
			return // would listen until the end of the test
		}
		c := newCall(http.MethodGet, "")
		c.header["Mcp-Session-Id"] = []string{session}
		c.header["Last-Event-Id"] = []string{id}
		g := newGuard()
		h.ServeHTTP(g, c.request(t.Context(), 1))
		switch g.status {
		case http.StatusNoContent, http.StatusBadRequest:
		case http.StatusOK:
			stream, _, _ := strings.Cut(strings.Trim(id, " \t"), "-")
			for _, ev := range parseEvents(t, g.body.String()) {
				require.True(t, strings.HasPrefix(ev.id, stream+"-"), "an event of another stream: %q", ev.id)
			}
		default:
			require.FailNow(t, "unexpected status", "%d", g.status)
		}
	})
}
