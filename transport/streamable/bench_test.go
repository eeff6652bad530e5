package streamable_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// plain is a server with one typed tool and nothing that observes it.
func plain() *server.Server {
	s := server.New(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *servercontext.Request, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (struct {
		Sum int `json:"sum"`
	}, error) {
		return struct {
			Sum int `json:"sum"`
		}{in.A + in.B}, nil
	})
	return s
}

// sinkWriter is a ResponseWriter that costs next to nothing.
type sinkWriter struct{ header http.Header }

func (w *sinkWriter) Header() http.Header         { return w.header }
func (w *sinkWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *sinkWriter) WriteHeader(int)             {}
func (w *sinkWriter) Flush()                      {}

// staticJSON answers as a handler does that has nothing to do: the yardstick.
func staticJSON(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}}`))
}

func welcomed(tb testing.TB, h http.Handler) string {
	tb.Helper()
	g := newGuard()
	h.ServeHTTP(g, classic(0, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}).request(tb.Context(), 1))
	return g.header.Get("Mcp-Session-Id")
}

// BenchmarkHandler measures one call from ServeHTTP to its return, without a network. The
// request and the writer are made anew each time, which "static" pays as well.
func BenchmarkHandler(b *testing.B) {
	h := streamable.NewHandler(plain(), nil)
	b.Cleanup(func() { _ = h.Close() })
	for _, c := range []struct {
		name    string
		handler http.Handler
		call    call
	}{
		{"static", http.HandlerFunc(staticJSON), modernTool(1, "add", M{"a": 1, "b": 2})},
		{"stateless", h, modernTool(1, "add", M{"a": 1, "b": 2})},
		{"session", h, classicTool(1, "add", M{"a": 1, "b": 2}).with("Mcp-Session-Id", welcomed(b, h))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.handler.ServeHTTP(&sinkWriter{header: http.Header{}}, c.call.request(context.Background(), 1))
			}
		})
	}
}

// BenchmarkLoopback measures one call over a kept connection on the loopback interface.
func BenchmarkLoopback(b *testing.B) {
	h := streamable.NewHandler(plain(), nil)
	b.Cleanup(func() { _ = h.Close() })
	for _, c := range []struct {
		name    string
		handler http.Handler
		call    call
	}{
		{"static", http.HandlerFunc(staticJSON), modernTool(1, "add", M{"a": 1, "b": 2})},
		{"stateless", h, modernTool(1, "add", M{"a": 1, "b": 2})},
		{"session", h, classicTool(1, "add", M{"a": 1, "b": 2}).with("Mcp-Session-Id", welcomed(b, h))},
	} {
		b.Run(c.name, func(b *testing.B) {
			srv := httptest.NewServer(c.handler)
			defer srv.Close()
			client := srv.Client()
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(c.call.body))
				require.NoError(b, err)
				r.Header = c.call.header
				resp, err := client.Do(r)
				require.NoError(b, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
