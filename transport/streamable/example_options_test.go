package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Behind a reverse proxy, for pages of one origin, with clients that do not resume.
func ExampleOptions() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	// region options
	h := streamable.NewHandler(s, &streamable.Options{
		AllowedHosts:    []string{"mcp.example"},         // what the proxy on this machine passes on
		AllowedOrigins:  []string{"https://app.example"}, // whose pages may call
		CORS:            &streamable.CORS{MaxAge: time.Hour},
		DisconnectGrace: 30 * time.Second, // handshake era: a client that is away for longer has gone
		MaxBody:         1 << 20,
	})
	// endregion
	r := httptest.NewRequest(http.MethodOptions, "http://mcp.example/mcp", http.NoBody)
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Origin"), h.Close())
	// Output: 204 https://app.example <nil>
}

// In the stateless era closing the response is the Stop.
func ExampleHandler() {
	done := make(chan server.RequestDone, 1)
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		Observer: &server.Observer{RequestDone: func(d server.RequestDone) { done <- d }},
	})
	ctx, closeResponse := context.WithCancel(context.Background())
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		closeResponse() // the client has had enough
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	})
	srv := httptest.NewServer(streamable.NewHandler(s, nil))
	defer srv.Close()

	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(call))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait",
	} {
		r.Header.Set(name, value)
	}
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
	}
	d := <-done
	fmt.Println(d.Origin, d.Answered)
	// Output: disconnect false
}

// After Shutdown new requests are refused; whoever runs is cancelled in time.
func ExampleHandler_Shutdown() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	h := streamable.NewHandler(s, nil)
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(h.Shutdown(grace))

	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	// Output:
	// <nil>
	// 503 1
}

// Events of streams that clients may resume are kept in a bounded store. Another
// mcp.EventStore keeps them where several processes can read them.
func ExampleRingStore() {
	store := streamable.NewRingStore(1 << 20) // bytes
	ctx := context.Background()
	_ = store.Open(ctx, "session", "stream")
	_ = store.Append(ctx, "session", "stream", []byte("first"))
	_ = store.Append(ctx, "session", "stream", []byte("second"))
	for event, err := range store.After(ctx, "session", "stream", 0) {
		fmt.Println(string(event), err)
	}
	fmt.Println(store.Size() > 0, store.Forget(ctx, "session", "stream"), store.SessionClosed(ctx, "session"), store.Size())
	// Output:
	// second <nil>
	// true <nil> <nil> 0
}

func nobody(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
	return nil, auth.ErrInvalidToken
}

// Authorization can also stand in front of more than MCP.
func ExampleAuth_Wrap() {
	a := &streamable.Auth{Verifier: nobody}
	h := a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") }))
	r := httptest.NewRequest(http.MethodGet, "http://localhost/metrics", http.NoBody)
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output: 401
}
