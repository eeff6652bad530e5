package streamable_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
)

// endpoint is a handler behind an in-memory HTTP server, and a client of it.
type endpoint struct {
	t       testing.TB
	s       *server.Server
	h       *streamable.Handler
	l       *bubble.Listener
	srv     *http.Server
	client  *http.Client
	url     string
	session string // the Mcp-Session-Id that requests carry, "" for none
	bearer  string // the token that requests carry, "" for none
}

// serve starts an endpoint that ends with the test.
func serve(t testing.TB, s *server.Server, o *streamable.Options) *endpoint {
	t.Helper()
	h := streamable.NewHandler(s, o)
	return serveHandler(t, s, h, h)
}

// serveHandler is serve for a handler with something around it.
func serveHandler(t testing.TB, s *server.Server, h *streamable.Handler, outer http.Handler) *endpoint {
	t.Helper()
	l := bubble.Listen()
	e := &endpoint{t: t, s: s, h: h, l: l, url: "http://mem.example/mcp"}
	e.srv = &http.Server{Handler: outer}
	e.client = &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableCompression: true}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = e.srv.Serve(l) // returns http.ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = h.Close()
		e.client.CloseIdleConnections()
		_ = e.srv.Close()
		<-served
		<-time.After(time.Second) // net/http lingers on a connection that it closes early
	})
	return e
}
