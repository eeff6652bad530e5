package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// One handler serves clients of every revision, here the official SDK's.
func ExampleNewHandler() {
	s := server.New(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, req *servercontext.Request, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return fmt.Sprintf("hello %s, in %s", in.Name, req.ProtocolVersion()), nil
	})
	h := streamable.NewHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	srv := httptest.NewServer(mux)
	defer srv.Close()

	ctx := context.Background()
	for _, version := range []string{server.Version20260728, server.Version20250618} {
		client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
		cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp"},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			fmt.Println(err)
			return
		}
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ann"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Content[0].(*mcp.TextContent).Text)
		_ = cs.Close()
	}

	grace, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println(h.Shutdown(grace))
	// Output:
	// hello Ann, in 2026-07-28
	// hello Ann, in 2025-06-18
	// <nil>
}

// Tokens are checked with each request, and a tool may need scopes of its own.
func ExampleAuth() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	// region auth
	h := streamable.NewHandler(s, &streamable.Options{Auth: &streamable.Auth{
		Verifier: func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			if token != "ann's" {
				return nil, auth.ErrInvalidToken
			}
			return &auth.TokenInfo{UserID: "ann", Scopes: []string{"jobs.read"}, Expiration: time.Now().Add(time.Hour)}, nil
		},
		MetadataURL: "https://jobs.example/.well-known/oauth-protected-resource/mcp",
		Scopes:      []string{"jobs.read"},
		ScopesFor: func(method, name string) []string {
			if name == "close_stale" {
				return []string{"jobs.write"}
			}
			return nil
		},
	}})
	// endregion
	defer func() { _ = h.Close() }()

	r := httptest.NewRequest(http.MethodPost, "http://jobs.example/mcp", http.NoBody)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output:
	// 401 Bearer scope="jobs.read", resource_metadata="https://jobs.example/.well-known/oauth-protected-resource/mcp"
}
