package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// fuzzTemplates are of every kind.
var fuzzTemplates = []string{
	"test://{id}", "test://{+path}/end", "test://x{/path*}", "test://x{?q,lang}", "test://x{?all*}", "test://{a:3}{b}", "{+all}", "test://{a}{b}{c}{d}",
	"test://{;a,b*}", "test://{#f}", "test://{.d*}", "test://{+a}/{+b}/{+c}", "test://é{a}", "test://{a,b,c}{/d,e*}{?f,g*}{&h*}",
}

// FuzzTemplate reads any URI by templates of every kind: the URI is answered once, and what a handler gets is
// that URI, with a bounded number of values, for its template's variables only.
func FuzzTemplate(f *testing.F) {
	for i, uri := range []string{
		"test://7", "test://a%2Fb", "test://a/b/end", "test://x/a/b/c", "test://x?q=1&lang=%20", "test://x?a=1", "test://abcdef", "anything:at all",
		"test://" + strings.Repeat("x", 200), "test://;a=1;b=2", "test://#f", "test://.a.b", "%zz", "test://é\x00", "test://1,2,3/4/5?f=6&g=7&h=8",
	} {
		f.Add(uint8(i), uri)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f.Fuzz(func(t *testing.T, which uint8, uri string) {
		template := fuzzTemplates[int(which)%len(fuzzTemplates)]
		s := server.New(&mcp.Implementation{Name: "fuzz", Version: "1"}, &server.Options{Logger: quiet})
		var got *server.ReadIn
		err := s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: template},
			func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
				got = &in
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: in.URI, Text: "x"}}}, nil
			})
		require.NoError(t, err)
		quoted, err := json.Marshal(uri)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(quoted, &uri)) // JSON has no invalid UTF-8
		ss := s.Open(context.Background(), server.SessionOptions{Version: server.Version20251125})
		answers := 0
		ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":`+string(quoted)+`}}`), answerFunc(func(msg []byte, code int) {
			answers++
			require.True(t, json.Valid(msg), "%s", msg)
			require.Equal(t, code == 0, got != nil, "%s", msg)
		}), nil, run)
		ss.Close(0, "")
		require.Equal(t, 1, answers)
		if got != nil {
			require.Equal(t, uri, got.URI)
			for name, values := range got.Variables {
				name, _, _ = strings.Cut(name, ":")
				require.Contains(t, template, name)
				require.LessOrEqual(t, len(values), 64)
			}
		}
	})
}
